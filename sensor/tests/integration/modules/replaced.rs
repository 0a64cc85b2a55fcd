//! Modules that are added, changed and removed at runtime: calls into one never overlap, and none is lost.

use crate::modules::rig::{COLLECTOR, Rig, is_alive, until};
use sensor::module::life::State;
use sensor::module::worker::Refusal;
use wire::api::modules::ModuleAct;

/// Returns a script that records the start and the end of its life and of each call.
fn noting(rig: &Rig, version: u32, hello: &str, answer: &str) -> String {
    let dir = rig.folder.path().display();
    format!(
        "#!/bin/sh\ndir={dir}\necho \"life $$\" >> $dir/notes\nwhile read -r call; do case $call in\n\
         '{{\"hello\":'*) echo '{hello}' ;;\n\
         *) echo \"call {version} $$\" >> $dir/notes; printf '%s\\n' \"$call\" >> $dir/calls\n\
         i=0; while [ $i -lt 500 ]; do i=$((i + 1)); done\n\
         echo \"answered $$\" >> $dir/notes; echo '{answer}' ;;\nesac; done\necho \"end $$\" >> $dir/notes\n"
    )
}

/// Checks that lives do not overlap, nor the calls in each life. A life that is slow to end is killed, and
/// then does not record its end; a life that continued would record something after the next one has started.
fn assert_in_order(notes: &[String]) {
    let (mut life, mut call): (Option<&str>, bool) = (None, false);
    for (number, note) in notes.iter().enumerate() {
        let (what, pid) = (note.split(' ').next().unwrap(), note.rsplit(' ').next().unwrap());
        let context = &notes[number.saturating_sub(3)..=number];
        match what {
            "life" => {
                assert!(!call, "a call of another life was under way: {context:?}");
                life = Some(pid);
            }
            "call" => {
                assert!(life == Some(pid) && !call, "a call overlaps: {context:?}");
                call = true;
            }
            "answered" => {
                assert!(life == Some(pid) && call, "an answer without a call: {context:?}");
                call = false;
            }
            _ => {
                assert!(life == Some(pid) && !call, "it was ended within a call: {context:?}");
                life = None;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_replaced_again_and_again_receives_each_event_once_and_never_two_at_a_time() {
    const EVENTS: u64 = 600;
    let mut rig = Rig::start();
    let hello = r#"{"protocol":1,"name":"noting","kind":"handler","events":[]}"#;
    let program = rig.program("noting.sh", &noting(&rig, 0, hello, "{}"));
    rig.load("noting", &program, "cpu_ms = 1000\nanswer_s = 30").await;
    rig.state("noting", "running").await;
    for version in 1..=20 {
        for _ in 0..6 {
            rig.member.read(EVENTS / 120);
            tokio::task::yield_now().await;
        }
        match version % 4 {
            0 => rig.order("noting", ModuleAct::Reload).await,
            _ => {
                let text = noting(&rig, version, hello, "{}");
                rig.program("noting.sh", &text);
                rig.reload().await;
            }
        }
    }
    let status = |rig: &Rig| -> Vec<u64> {
        let calls = rig.lines("calls");
        let entries = calls.iter().flat_map(|call| {
            let call: serde_json::Value = serde_json::from_str(call).unwrap();
            call["handle"]["entries"].as_array().unwrap().clone()
        });
        entries.map(|entry| entry["event"]["job"].as_str().unwrap().parse().unwrap()).collect()
    };
    assert!(until(|| status(&rig).len() as u64 >= EVENTS).await, "{} events", status(&rig).len());
    assert_eq!(status(&rig), (0..EVENTS).collect::<Vec<_>>(), "each once, in order");
    let stands = rig.status_when("noting", "unharmed", |_| true).await;
    assert_eq!(stands.counts.failures_total, 0, "{:?}", stands.last_error);
    assert!(stands.counts.starts_total >= 15, "{:?}", stands.counts);
    let calls = stands.counts.calls_total;
    rig.order("noting", ModuleAct::Stop).await;
    let notes = rig.lines("notes");
    assert_eq!(
        notes.iter().filter(|note| note.starts_with("call")).count() as u64,
        calls,
        "every call was answered"
    );
    assert_in_order(&notes);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_still_being_written_is_no_failure() {
    let rig = Rig::start();
    let program = rig.script("one.sh", COLLECTOR, "echo '{}'");
    let writing = std::fs::OpenOptions::new().append(true).open(&program).unwrap();
    rig.load("one", &program, "").await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    drop(writing);
    rig.goes_on("one", 1).await;
    let stands = rig.status_when("one", "running", |_| true).await;
    assert_eq!(stands.counts.failures_total, 0, "{:?}", stands.last_error);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_holds_from_the_next_call_on() {
    let rig = Rig::start();
    let text = |value: u32| format!(r#"echo "{{\"figures\":[{{\"name\":\"x\",\"value\":{value}}}]}}""#);
    let program = rig.script("one.sh", COLLECTOR, &text(1));
    rig.load("one", &program, "").await;
    rig.until_figure("module.one.x", 1.0).await;
    rig.script("one.sh", COLLECTOR, &text(2));
    // The sensor detects the change by itself.
    rig.until_figure("module.one.x", 2.0).await;
    let status = rig.status_when("one", "running", |status| status.rate_hz.is_some()).await;
    assert!((status.rate_hz.unwrap() - 10.0).abs() < 1e-6);
    rig.load("one", &program, "rate = 2").await;
    rig.status_when("one", "asked less often", |status| {
        status.rate_hz.is_some_and(|hz| (hz - 2.0).abs() < 1e-6)
    })
    .await;
    rig.load("one", &program, "on = false").await;
    rig.state("one", "off").await;
    rig.until_figure("module.one.x", None).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_half_written_for_a_moment_costs_a_handler_nothing() {
    let mut rig = Rig::start();
    let hello = r#"{"protocol":1,"name":"noting","kind":"handler","events":[]}"#;
    let body = "printf '%s\\n' \"$call\" >> $dir/calls; echo '{}'";
    let program = rig.script("one.sh", hello, body);
    rig.load("one", &program, "").await;
    rig.state("one", "running").await;
    let (file, mut len) = (rig.path("modules/one.toml"), 0);
    let mut writing = tokio::time::interval(std::time::Duration::from_millis(20));
    // A partial file is written slowly, until the sensor reads it meanwhile.
    while rig.handle.trouble().is_none() {
        len += 1;
        std::fs::write(&file, format!("run = ['{}", "x".repeat(len))).unwrap();
        writing.tick().await;
    }
    let trouble = rig.handle.trouble().unwrap();
    assert!(trouble.starts_with("module one goes on as before"), "{trouble}");
    rig.member.read(5);
    rig.load("one", &program, "cpu_ms = 1000").await;
    let events = || -> Vec<u64> {
        let calls = rig.lines("calls").into_iter();
        let calls = calls.map(|call| serde_json::from_str::<serde_json::Value>(&call).unwrap());
        let entries = calls.flat_map(|call| call["handle"]["entries"].as_array().unwrap().clone());
        entries.map(|entry| entry["event"]["job"].as_str().unwrap().parse().unwrap()).collect()
    };
    assert!(until(|| events().len() >= 5).await, "{:?}", events());
    assert_eq!(events(), (0..5).collect::<Vec<_>>());
    assert!(rig.handle.trouble().is_none() && rig.handle.refused().is_empty());
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_removed_is_gone_and_its_name_is_free() {
    let rig = Rig::start();
    let program = rig.script("one.sh", COLLECTOR, r#"echo '{"figures":[{"name":"x","value":1}]}'"#);
    rig.load("one", &program, "").await;
    rig.until_figure("module.one.x", 1.0).await;
    let pid = rig.status_when("one", "running", |status| status.pid.is_some()).await.pid.unwrap().to_string();
    std::fs::remove_file(rig.path("modules/one.toml")).unwrap();
    rig.reload().await;
    assert!(until(|| rig.handle.statuses().is_empty() && !is_alive(&pid)).await);
    assert_eq!(rig.figure("module.one.x"), None);
    let unknown = rig.handle.order(Some("one".to_owned()), ModuleAct::Start).await;
    assert_eq!(unknown, Err(Refusal::Unknown("one".to_owned())));
    rig.load("one", &program, "").await;
    rig.until_figure("module.one.x", 1.0).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_stop_and_start_one_and_leave_the_others() {
    let rig = Rig::start();
    let program = rig.script("one.sh", COLLECTOR, "echo '{}'");
    rig.load("one", &program, "cpu_ms = 1000").await;
    rig.load("two", &program, "cpu_ms = 1000").await;
    rig.goes_on("one", 1).await;
    for _ in 0..10 {
        let pid =
            rig.status_when("one", "running", |status| status.pid.is_some()).await.pid.unwrap().to_string();
        rig.order("one", ModuleAct::Stop).await;
        let status = rig.handle.statuses().into_iter().find(|status| status.name == "one").unwrap();
        assert_eq!((status.state, status.pid), (State::Stopped, None), "reported when the order is obeyed");
        assert!(!is_alive(&pid), "it has ended when the order is obeyed");
        rig.order("one", ModuleAct::Start).await;
    }
    rig.order("one", ModuleAct::Stop).await;
    assert_eq!(rig.state("one", "stopped").await, "");
    rig.reload().await;
    rig.goes_on("two", 3).await;
    assert_eq!(
        rig.status_when("one", "there", |_| true).await.state,
        State::Stopped,
        "a look starts nothing"
    );
    rig.order("one", ModuleAct::Start).await;
    rig.goes_on("one", 1).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_end_with_the_sensor_whether_they_want_to_or_not() {
    let rig = Rig::start();
    let good = rig.script("good.sh", COLLECTOR, "echo '{}'");
    let hello = COLLECTOR;
    let stubborn = format!(
        "#!/bin/sh\ntrap '' TERM INT HUP\nread -r call; echo '{hello}'\nwhile :; do if read -r call; then echo '{{}}'; else sleep 1000; fi; done\n"
    );
    let stubborn = rig.program("stubborn.sh", &stubborn);
    rig.load("good", &good, "").await;
    rig.load("stubborn", &stubborn, "").await;
    rig.goes_on("good", 1).await;
    rig.goes_on("stubborn", 1).await;
    let pids: Vec<String> =
        rig.handle.statuses().iter().filter_map(|status| status.pid).map(|pid| pid.to_string()).collect();
    assert!(pids.len() == 2 && pids.iter().all(|pid| is_alive(pid)), "{pids:?}");
    let handle = rig.handle.clone();
    rig.end().await;
    assert!(!pids.iter().any(|pid| is_alive(pid)), "{pids:?}");
    assert_eq!(handle.order(None, ModuleAct::Reload).await, Err(Refusal::Ended));
}
