//! WebAssembly modules, run by the same worker as programs.

use crate::modules::rig::{Rig, mode, until};

/// A collector with constant answers in its memory. The first call is the hello; `body` runs at each later
/// call.
fn module(body: &str) -> Vec<u8> {
    let hello = r#"{\22protocol\22:1,\22name\22:\22w\22,\22kind\22:\22collector\22,\22rate\22:10}"#;
    let answer = r#"{\22figures\22:[{\22name\22:\22x\22,\22value\22:5}]}"#;
    let len = |text: &str| text.replace(r"\22", "\"").len();
    let text = format!(
        r#"(module (import "visperf" "log" (func $log (param i32 i32))) (memory (export "memory") 1)
        (data (i32.const 0) "{hello}") (data (i32.const 512) "{answer}")
        (global $greeted (mut i32) (i32.const 0))
        (func (export "alloc") (param i32) (result i32) (i32.const 1024))
        (func (export "call") (param i32 i32) (result i64)
          (if (i32.eqz (global.get $greeted)) (then (global.set $greeted (i32.const 1)) (return (i64.const {}))))
          {body}
          (i64.const {})))"#,
        len(hello),
        (512_u64 << 32) + len(answer) as u64,
    );
    wat::parse_str(text).unwrap()
}

async fn load(rig: &Rig, name: &str, bytes: &[u8]) {
    let path = rig.path(&format!("{name}.wasm"));
    std::fs::write(&path, bytes).unwrap();
    mode(&path, 0o644);
    rig.write(name, &format!("wasm = '{}'\nmemory_mib = 1\ncpu_ms = 1000\n", path.display()));
    rig.reload().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_never_ends_or_traps_is_quarantined_and_the_other_goes_on() {
    let rig = Rig::start();
    load(&rig, "good", &module("(call $log (i32.const 512) (i32.const 11))")).await;
    rig.until_figure("module.good.x", 5.0).await;
    load(&rig, "endless", &module("(loop br 0)")).await;
    load(&rig, "trap", &module("unreachable")).await;
    assert!(rig.state("endless", "quarantined").await.starts_with("it computed for too long"));
    assert!(rig.state("trap", "quarantined").await.starts_with("it was stopped"));
    let status = rig.status_when("trap", "counted", |_| true).await;
    assert_eq!(
        (status.counts.starts_total, status.counts.failures_total),
        (3, 3),
        "a fresh instance after each trap"
    );
    rig.goes_on("good", 2).await;
    let good = rig.status_when("good", "there", |_| true).await;
    assert_eq!(
        (good.counts.failures_total, good.pid, good.tail.lines()[0].as_str()),
        (0, None, "{\"figures\":")
    );
    load(&rig, "trap", &module("")).await;
    rig.until_figure("module.trap.x", 5.0).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_others_may_write_is_not_read() {
    let rig = Rig::start();
    load(&rig, "open", &module("")).await;
    rig.until_figure("module.open.x", 5.0).await;
    mode(&rig.path("open.wasm"), 0o666);
    rig.reload().await;
    rig.until_figure("module.open.x", None).await;
    let is_refused = || rig.handle.refused().get("open").is_some_and(|why| why.contains("found mode 666"));
    assert!(until(is_refused).await);
    rig.end().await;
}
