//! Shipped modules in a real sensor: figures of a collector among those of the host, and a handler that
//! writes plots of them.

use crate::modules::rig::{Rig, mode, until};
use rpc::codec::value::{Name, Value};
use rpc::dispatch::Dispatcher;
use rpc::dispatch::forward::Caller;
use rpc::limits::Limits;
use sensor::config::{Config, RawConfig};
use sensor::module::spec::Spec;
use sensor::run::Sensor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::id::PeerKey;

const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/modules/nvidia-counters");
const PATIENCE: Duration = Duration::from_secs(60);

/// Copies a file with permissions that let no other user write it, whatever those of the source tree are.
fn copied(from: &str, to: PathBuf) -> String {
    std::fs::copy(from, &to).unwrap();
    mode(&to, 0o755);
    to.display().to_string()
}

/// The program of the example, which `cargo test` builds beside this one.
fn gnuplot() -> String {
    let own = std::env::current_exe().unwrap();
    let program = own.ancestors().nth(2).unwrap().join("examples/visperf-gnuplot");
    let path = program.display().to_string();
    assert!(
        program.exists(),
        "no {path}: run `cargo build --package sensor --example visperf-gnuplot` first"
    );
    path
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    mode(path, 0o644);
}

async fn ask(
    dispatcher: &Dispatcher,
    caller: &Caller,
    method: &str,
    params: &[(&'static str, &str)],
) -> Value {
    let params = params.iter().map(|(name, value)| (Name::Borrowed(*name), Value::from(*value))).collect();
    dispatcher.call_for(caller, method, params).await.unwrap()
}

fn figure(metrics: &Value, name: &str, gpu: &str) -> Option<f64> {
    let metrics = metrics.get("metrics")?.as_array()?;
    let found = metrics.iter().find(|metric| {
        metric.get("name").and_then(Value::as_text) == Some(name)
            && metric.get("labels").and_then(|labels| labels.get("gpu")).and_then(Value::as_text) == Some(gpu)
    })?;
    let value = found.get("value")?;
    if let Value::UInt(whole) = value {
        return i32::try_from(whole >> 10).ok().map(|kib| f64::from(kib) * 1024.0);
    }
    if let Value::Double(real) = value { Some(*real) } else { None }
}

/// Creates a folder with counters of two GPUs, and a sensor configuration with both shipped modules.
fn furnish(folder: &Path) -> Config {
    for (gpu, load) in [("0", "93"), ("1", "7.5 %")] {
        let gpu = folder.join("gpus").join(gpu);
        write(&gpu.join("utilization.gpu"), &format!("{load}\n"));
        write(&gpu.join("memory.used"), "1024 MiB\n");
        write(&gpu.join("fan.speed"), "[N/A]\n");
    }
    let counters = copied(SHIPPED, folder.join("nvidia-counters"));
    let gnuplot = copied(&gnuplot(), folder.join("visperf-gnuplot"));
    let (modules, gpus) = (folder.join("modules"), folder.join("gpus"));
    let bounds = "cpu_ms = 1000\nanswer_s = 30\n";
    write(
        &modules.join("gpu.toml"),
        &format!("run = ['{counters}', '{}']\nrate = 10\n{bounds}", gpus.display()),
    );
    write(
        &modules.join("plot.toml"),
        &format!("run = ['{gnuplot}', '--top', '3', 'module.gpu.*', 'node_load1']\n{bounds}"),
    );
    mode(&modules, 0o755);
    let text = format!("sample_hz = 10\n[modules]\nfolder = '{}'\n", modules.display());
    let raw: RawConfig = daemon::config_file::load(Path::new("f"), &text).unwrap();
    Config::new(raw, "wn07", jiff::tz::TimeZone::UTC).unwrap()
}

async fn gpu_figures(dispatcher: &Dispatcher, client: &Caller) -> Value {
    let looking = async {
        let mut look = tokio::time::interval(Duration::from_millis(50));
        loop {
            look.tick().await;
            let wanted = vec![("name".into(), "module.gpu.*".into())];
            let Ok(all) = dispatcher.call_for(client, "sensor.metrics", wanted).await else { continue };
            if figure(&all, "module.gpu.utilization", "1").is_some() {
                return all;
            }
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("the collector's figures")
}

async fn assert_drawn(plot: &Path) {
    let points = |name: &str| std::fs::read_to_string(plot.join(name)).unwrap_or_default();
    let names = ["module.gpu.utilization gpu=0", "node_load1", "["];
    let is_drawn = || names.iter().all(|name| points("plot.gp").contains(name));
    assert!(
        until(is_drawn).await,
        "figures of a module, of the host and of processes: {}",
        points("plot.gp")
    );
    assert!(until(|| points("module.gpu.utilization_gpu_0.dat").lines().count() >= 3).await);
    for line in points("module.gpu.utilization_gpu_0.dat").lines() {
        let (time, value) = line.split_once(' ').unwrap();
        assert!(time.parse::<f64>().unwrap() > 1e9 && value == "0.93", "{line}");
    }
}

fn text(module: &Value, name: &str) -> String {
    module.get(name).and_then(Value::as_text).unwrap_or_default().to_owned()
}

fn modules(answer: &Value) -> &[Value] {
    answer.get("modules").unwrap().as_array().unwrap()
}

/// Checks that the state of modules is reported, to other daemons without possible secrets, and that other
/// daemons cannot change modules.
async fn assert_reported(dispatcher: &Dispatcher, client: &Caller) {
    let answer = ask(dispatcher, client, "sensor.modules", &[]).await;
    let kinds = modules(&answer)
        .iter()
        .map(|one| [text(one, "name"), text(one, "kind"), text(one, "state")].join(" "));
    assert_eq!(kinds.collect::<Vec<_>>(), ["gpu collector running", "plot handler running"]);
    let is_whole = |one: &Value| one.get("runs").is_some() && one.get("last_error").is_none();
    assert!(modules(&answer).iter().all(is_whole), "{answer:?}");
    let peer = Caller { peer: Some(PeerKey([1; 32])), ..*client };
    let answer = ask(dispatcher, &peer, "sensor.modules", &[]).await;
    let words = ["runs", "stderr", "program", "wants"];
    let has_secrets = |one: &Value| words.iter().any(|word| one.get(word).is_some());
    assert!(modules(&answer).len() == 2 && !modules(&answer).iter().any(has_secrets), "{answer:?}");
    let stop = vec![("name".into(), "gpu".into()), ("act".into(), "stop".into())];
    assert!(dispatcher.call_for(&peer, "sensor.change_module", stop).await.is_err());
    assert_eq!(text(&modules(&answer)[0], "state"), "running");
}

#[tokio::test(flavor = "multi_thread")]
async fn gpus_are_read_from_files_and_drawn_by_gnuplot() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let sensor = Sensor::open(furnish(folder.path()), &state).unwrap();
    let dispatcher = Dispatcher::new(sensor.methods().unwrap(), Limits::default(), Arc::default());
    let shutdown = CancellationToken::new();
    let run = tokio::spawn(sensor.run(shutdown.clone()));
    let client = Caller::client(PATIENCE);
    let all = gpu_figures(&dispatcher, &client).await;
    assert_eq!(figure(&all, "module.gpu.utilization", "0"), Some(0.93));
    assert_eq!(figure(&all, "module.gpu.utilization", "1"), Some(0.075));
    assert_eq!(figure(&all, "module.gpu.memory_used_bytes", "0"), Some(f64::from(1 << 30)));
    assert_eq!(figure(&all, "module.gpu.fan_speed", "0"), None, "what is not known is left out");
    assert_drawn(&state.join("modules/plot")).await;
    assert_reported(&dispatcher, &client).await;
    shutdown.cancel();
    run.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn more_figures_than_a_module_may_open_files_are_drawn_in_part_and_harm_nothing() {
    let rig = Rig::start();
    let program = copied(&gnuplot(), rig.path("visperf-gnuplot"));
    rig.write("plot", &format!("run = ['{program}', 'load*']\ncpu_ms = 1000\nanswer_s = 30\n"));
    rig.reload().await;
    rig.state("plot", "running").await;
    let names: Vec<String> = (0..70).map(|number| format!("load{number}")).collect();
    let figures: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    rig.sweep(&figures);
    rig.until_figure("module.plot.series", 64.0).await;
    let stands = rig.status_when("plot", "running", |_| true).await;
    assert_eq!((stands.counts.failures_total, stands.last_error), (0, None));
    assert_eq!(std::fs::read_dir(rig.path("state/modules/plot")).unwrap().count(), 64 + 1, "and the script");
    rig.end().await;
}

#[test]
fn the_examples_of_module_files_are_good() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/modules");
    let mut count = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let spec = Spec::parse(&path, &text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(spec.is_on);
        // Settings in comments are valid too.
        let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# ")).collect();
        let keys: Vec<&str> = lines.into_iter().filter(|line| line.contains(" = ")).collect();
        Spec::parse(&path, &format!("{text}\n{}", keys.join("\n")))
            .unwrap_or_else(|error| panic!("{error}: {keys:?}"));
        count += 1;
    }
    assert!(count >= 2);
}
