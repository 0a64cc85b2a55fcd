//! Misbehaving modules: each is reported, and none harms another.

use crate::modules::rig::{COLLECTOR, Rig, is_alive, until};
use wire::api::modules::ModuleAct;

/// Creates a rig with a module `good`, which answers.
async fn beside_a_good_one() -> Rig {
    let rig = Rig::start();
    let good = rig.script("good.sh", COLLECTOR, r#"echo '{"figures":[{"name":"x","value":42}]}'"#);
    rig.load("good", &good, "cpu_ms = 1000\nanswer_s = 30").await;
    rig.until_figure("module.good.x", 42.0).await;
    rig
}

/// Checks that a module that runs `body` at each call fails as expected, ends in quarantine, and harms no
/// other.
async fn fails(body: &str, more: &str, expected: &str) {
    let rig = beside_a_good_one().await;
    let bad = rig.script("bad.sh", COLLECTOR, body);
    rig.load("bad", &bad, more).await;
    let text = rig.state("bad", "quarantined").await;
    assert!(text.contains(expected), "{body}: expected {expected:?} in {text:?}");
    let stands = rig.status_when("bad", "counted", |_| true).await;
    assert_eq!((stands.counts.starts_total, stands.counts.failures_total, stands.pid), (3, 3, None));
    assert!(rig.handle.health().iter().any(|line| line.starts_with("module bad is quarantined; ")));
    rig.goes_on("good", 3).await;
    assert_eq!(rig.status_when("good", "whole", |_| true).await.counts.failures_total, 0);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_crashes_is_quarantined_with_its_last_words() {
    fails("echo 'out of paper' >&2; exit 3", "", "it ended (exit status 3)").await;
    let rig = Rig::start();
    let bad = rig.script("bad.sh", COLLECTOR, "echo 'out of paper' >&2; exit 3");
    rig.load("bad", &bad, "").await;
    rig.state("bad", "quarantined").await;
    let status = rig.status_when("bad", "there", |_| true).await;
    assert_eq!(status.tail.lines(), ["out of paper"; 3]);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_killed_is_reported_with_the_signal() {
    fails("kill -SEGV $$", "", "it ended (killed by signal 11)").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_silent_or_slow_is_reported() {
    fails("sleep 1000", "answer_s = 0.2", "expected an answer within 200ms (answer_s), found none").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_start_is_no_slow_answer() {
    let rig = Rig::start();
    let hello = COLLECTOR;
    // Its first line is slower than the timeout of an answer; the second never comes.
    let slow = format!("#!/bin/sh\nsleep 0.5\nread -r call; echo '{hello}'\nread -r call; sleep 1000\n");
    let slow = rig.program("slow.sh", &slow);
    rig.load("slow", &slow, "answer_s = 0.1").await;
    let text = rig.state("slow", "quarantined").await;
    assert!(text.contains("within 100ms"), "{text}");
    let counts = rig.status_when("slow", "counted", |_| true).await.counts;
    assert_eq!((counts.starts_total, counts.failures_total), (3, 3), "each said hello first");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_floods_is_reported() {
    fails("yes", "", "it wrote a line without a call").await;
    fails("yes | tr -d '\\n'", "", "expected a line of at most 262144 bytes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_floods_beside_its_answers_holds_up_itself_alone() {
    fails("yes out of paper >&2", "answer_s = 0.5", "expected an answer within 500ms").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_says_what_was_not_asked_for_is_reported() {
    fails("echo '{}'; sleep 0.05; echo '{}'", "rate = 0.1", "it wrote a line without a call").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_ends_is_reported_though_what_it_started_lives_on() {
    fails("echo '{}'; sleep 1000 & exit 3", "rate = 0.01", "it ended (exit status 3)").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lies_are_reported_with_what_was_expected() {
    fails("echo '{\"figures\":[{\"name\":\"x\",\"value\":NaN}]}'", "", "JSON has no NaN").await;
    fails("echo '{\"figures\":[{\"name\":\"x\",\"value\":1e999}]}'", "", "number out of range").await;
    fails("echo ready", "", "expected an answer such as {}").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_failed_one_started_ends_with_it() {
    let rig = Rig::start();
    let bad = rig.script("bad.sh", COLLECTOR, "sleep 1000 & echo $! >> $dir/started; exit 1");
    rig.load("bad", &bad, "").await;
    rig.state("bad", "quarantined").await;
    let started = rig.until_lines("started", 3).await;
    assert!(until(|| !started.iter().any(|pid| is_alive(pid))).await, "{started:?}");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_says_another_hello_is_not_called() {
    let rig = beside_a_good_one().await;
    let bad =
        rig.script("bad.sh", r#"{"protocol":7,"name":"x","kind":"collector"}"#, "echo called >> $dir/called");
    rig.load("bad", &bad, "").await;
    let text = rig.state("bad", "quarantined").await;
    assert!(text.starts_with("expected protocol 1 in its hello, found 7"), "{text}");
    assert!(rig.lines("called").is_empty());
    let stands = rig.status_when("bad", "counted", |_| true).await;
    assert_eq!((stands.counts.starts_total, stands.counts.failures_total), (0, 3));
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quarantined_one_is_started_by_an_order_or_another_program() {
    let rig = Rig::start();
    let bad = rig.script("bad.sh", COLLECTOR, "test -e $dir/mended || exit 1; echo '{}'");
    rig.load("bad", &bad, "answer_s = 30").await;
    rig.state("bad", "quarantined").await;
    std::fs::write(rig.path("mended"), "").unwrap();
    rig.order("bad", ModuleAct::Start).await;
    rig.goes_on("bad", 2).await;
    std::fs::remove_file(rig.path("mended")).unwrap();
    rig.state("bad", "quarantined").await;
    rig.script("bad.sh", COLLECTOR, "echo '{}'");
    rig.reload().await;
    rig.goes_on("bad", 2).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_of_one_that_failed_are_gone() {
    let rig = Rig::start();
    let body = r#"test -e $dir/broken && exit 1; echo '{"figures":[{"name":"x","value":1}]}'"#;
    let bad = rig.script("bad.sh", COLLECTOR, body);
    rig.load("bad", &bad, "").await;
    rig.until_figure("module.bad.x", 1.0).await;
    std::fs::write(rig.path("broken"), "").unwrap();
    rig.until_figure("module.bad.x", None).await;
    rig.end().await;
}
