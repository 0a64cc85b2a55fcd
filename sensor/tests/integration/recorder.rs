//! Flight recorder of a running sensor: a log line, a command and a crash, and the recordings of processes.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use rpc::codec::value::{Name, Value};
use rpc::dispatch::Dispatcher;
use rpc::dispatch::forward::Caller;
use rpc::limits::Limits;
use sensor::config::{Config, RawConfig};
use sensor::recorder::store::Store;
use sensor::recorder::worker::{Handle, Order};
use sensor::run::Sensor;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wire::recording::segment::{Item, Player};
use wire::recording::{End, Recording};

const LOG: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../log-filters/logs/slurm/22.05.8-alpha/slurmctld.log");

/// Timeout of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

struct Running {
    dispatcher: Arc<Dispatcher>,
    recorder: Handle,
    shutdown: CancellationToken,
    run: JoinHandle<Result<(), sensor::run::Error>>,
}

impl Running {
    /// Starts a sensor in this folder that follows `slurmctld.log` there.
    fn start(folder: &Path, recorder: &str) -> Running {
        Running::start_with(folder, "", recorder)
    }

    /// As [`Running::start`], with more configuration keys of the sensor.
    fn start_with(folder: &Path, keys: &str, recorder: &str) -> Running {
        let log = folder.join("slurmctld.log");
        let text = format!(
            "{keys}\n[recorder]\n{recorder}\n[[tail]]\npath = '{}'\nfilter = 'slurmctld'\n",
            log.display()
        );
        let raw: RawConfig = daemon::config_file::load(Path::new("f"), &text).unwrap();
        let config = Config::new(raw, "head", jiff::tz::TimeZone::UTC).unwrap();
        let sensor = Sensor::open(config, &folder.join("state")).unwrap();
        let methods = sensor.methods().unwrap();
        let dispatcher = Arc::new(Dispatcher::new(methods, Limits::default(), Arc::default()));
        let recorder = sensor.recorder().unwrap();
        let shutdown = CancellationToken::new();
        let run = tokio::spawn(sensor.run(shutdown.clone()));
        Running { dispatcher, recorder, shutdown, run }
    }

    async fn ask(&self, method: &str, params: &[(&'static str, Value)]) -> Value {
        let params = params.iter().map(|(name, value)| (Name::Borrowed(*name), value.clone())).collect();
        self.dispatcher.call_for(&Caller::trusted(PATIENCE), method, params).await.unwrap()
    }

    /// Polls `sensor.recordings` until `is_wanted` accepts the answer.
    async fn recordings(&self, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let looking = async {
            let mut look = tokio::time::interval(Duration::from_millis(20));
            loop {
                let answer = self.ask("sensor.recordings", &[]).await;
                if is_wanted(&answer) {
                    return answer;
                }
                look.tick().await;
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("timed out: {what}"))
    }

    async fn until_it_reaches_back(&self, secs: f64) {
        self.recordings("the ring", |answer| number(answer, "reaches_back_secs") >= secs).await;
    }

    /// The first recording of the list once it is complete.
    async fn recorded(&self) -> Value {
        let is_over = |recording: &Value| text(recording, "state") == "whole";
        let answer =
            self.recordings("a recording", |answer| list(answer, "recordings").first().is_some_and(is_over));
        list(&answer.await, "recordings")[0].clone()
    }

    async fn end(self) {
        self.shutdown.cancel();
        self.run.await.unwrap().unwrap();
    }
}

fn list(answer: &Value, name: &str) -> Vec<Value> {
    answer.get(name).and_then(Value::as_array).unwrap_or_else(|| panic!("{name} of {answer:?}")).to_vec()
}

fn text<'a>(answer: &'a Value, name: &str) -> &'a str {
    answer.get(name).and_then(Value::as_text).unwrap_or_else(|| panic!("{name} of {answer:?}"))
}

#[allow(clippy::cast_precision_loss)]
fn number(answer: &Value, name: &str) -> f64 {
    match answer.get(name) {
        Some(Value::Double(number)) => *number,
        Some(Value::UInt(number)) => *number as f64,
        other => panic!("{name} is {other:?}"),
    }
}

/// Appends lines of the real log about failed jobs, with the current time.
#[allow(clippy::disallowed_methods)] // The log is written as by a program that has a clock.
fn write_failures(folder: &Path, count: usize) {
    let real = std::fs::read_to_string(LOG).unwrap();
    let failures = real.lines().filter(|line| line.contains("WEXITSTATUS 1")).cycle().take(count);
    let stamp = jiff::Timestamp::now().strftime("[%Y-%m-%dT%H:%M:%S.%3f]").to_string();
    let lines: String =
        failures.map(|line| format!("{stamp}{}\n", line.split_once(']').unwrap().1)).collect();
    let mut log =
        std::fs::OpenOptions::new().create(true).append(true).open(folder.join("slurmctld.log")).unwrap();
    log.write_all(lines.as_bytes()).unwrap();
}

/// A process that keeps a core busy; killed on drop.
struct Busy(Child);

impl Busy {
    #[allow(clippy::disallowed_methods)]
    fn start() -> Busy {
        Busy(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
    }

    fn pid(&self) -> Value {
        Value::Int(self.0.id().into())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_a_slurm_log_keeps_the_samples_from_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let trigger = "hz = 64\nseconds = 20\n[[recorder.triggers]]\nname = 'failed'\nkind = '^job_end$'\n\
                   outcome = 'fail|node'\nbefore_s = 7\nafter_s = 0.5";
    let running = Running::start(folder.path(), trigger);
    let busy = Busy::start();
    running.until_it_reaches_back(8.0).await;
    write_failures(folder.path(), 1);
    let kept = running.recorded().await;
    let at = number(&kept, "time");
    assert_eq!(text(&kept, "trigger"), "failed");
    assert!(text(&kept, "note").starts_with("job_end slurm:"), "{kept:?}");
    assert!((number(&kept, "from") - (at - 7.0)).abs() < 0.1, "{kept:?}");
    let asked = [("id", text(&kept, "id").into()), ("pid", busy.pid()), ("limit", Value::Int(10_000))];
    let recording = running.ask("sensor.recording", &asked).await;
    let samples = list(&recording, "samples");
    let within: Vec<f64> =
        samples.iter().map(|sample| number(sample, "time")).filter(|time| *time >= at - 7.0).collect();
    let before = within.iter().filter(|time| **time < at).count();
    let after = within.len() - before;
    // 448 and 32 on an otherwise idle machine. The window is longer than a segment.
    assert!(within[0] < at - 6.5, "from {} on", within[0] - at);
    assert!(before > 200 && after > 10, "{before} samples before the line and {after} after it");
    let last = samples.last().unwrap();
    assert!(number(last, "cpu") > 0.02 && text(last, "name") == "sh", "{last:?}");
    assert_eq!(text(&list(&recording, "events")[0], "kind"), "job_end");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_over_the_processes_keeps_what_was_before_it() {
    let folder = tempfile::tempdir().unwrap();
    // A name that no other process has.
    let shell = folder.path().join("vp-condition");
    std::fs::copy("/bin/sh", &shell).unwrap();
    let trigger = "hz = 20\n[[recorder.triggers]]\nname = 'many'\ncondition = 'count > 1'\n\
                   filter = 'name = \"vp-condition\"'\nhz = 10\nbefore_s = 1\nafter_s = 0.2";
    let running = Running::start(folder.path(), trigger);
    running.until_it_reaches_back(2.0).await;
    #[allow(clippy::disallowed_methods)] // The test is about processes.
    let start = || Busy(Command::new(&shell).args(["-c", "while :; do :; done"]).spawn().unwrap());
    let one = start();
    let subscriptions = list(&running.ask("sensor.subscriptions", &[]).await, "subscriptions");
    assert_eq!((subscriptions.len(), text(&subscriptions[0], "owner")), (1, "recorder"));
    assert!(subscriptions[0].get("subscription").is_none(), "no client can end it");
    running.until_it_reaches_back(4.0).await;
    assert!(list(&running.ask("sensor.recordings", &[]).await, "recordings").is_empty(), "one is not many");
    let _other = start();
    let kept = running.recorded().await;
    assert_eq!(text(&kept, "trigger"), "many");
    let note = text(&kept, "note");
    assert!(note.starts_with("count > 1") && note.ends_with(", at 2"), "{note}");
    let asked = [("id", text(&kept, "id").into()), ("pid", one.pid()), ("limit", Value::Int(10_000))];
    let recording = running.ask("sensor.recording", &asked).await;
    let at = number(&kept, "time");
    let before = list(&recording, "samples").iter().filter(|sample| number(sample, "time") < at).count();
    assert!(before > 5, "{before} samples of the first one from before the second");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_lines_makes_one_recording_and_counts_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let trigger =
        "hz = 10\n[[recorder.triggers]]\nname = 'failed'\noutcome = 'failed'\nbefore_s = 1\nafter_s = 0.2";
    let running = Running::start(folder.path(), trigger);
    running.until_it_reaches_back(0.5).await;
    write_failures(folder.path(), 30);
    running.recorded().await;
    let counted = |answer: &Value| number(&list(answer, "triggers")[0], "suppressed") >= 29.0;
    let answer = running.recordings("the suppressed ones", counted).await;
    assert_eq!(list(&answer, "recordings").len(), 1);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_obeyed_and_its_file_fetched_part_by_part() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), "hz = 50");
    running.until_it_reaches_back(1.0).await;
    let refused = running.dispatcher.call_for(&Caller::trusted(PATIENCE), "sensor.record", Vec::new()).await;
    assert_eq!(refused.unwrap_err().code, wire::fault::FORBIDDEN, "another daemon orders nothing");
    let (before, after) = (Duration::from_secs(1), Duration::from_secs(1));
    let id = running.recorder.order(Order { before, after, note: "by hand".into() }).await.unwrap();
    let kept = running.recorded().await;
    assert_eq!(
        (text(&kept, "id"), text(&kept, "note"), text(&kept, "trigger")),
        (id.as_str(), "by hand", "")
    );
    let mut whole = Vec::new();
    loop {
        let offset = Value::Int(i64::try_from(whole.len()).unwrap());
        let asked = [("id", text(&kept, "id").into()), ("offset", offset), ("limit", Value::Int(1000))];
        let answer = running.ask("sensor.recording_file", &asked).await;
        let Some(Value::Bytes(part)) = answer.get("data") else { panic!("{answer:?}") };
        whole.extend_from_slice(part);
        if part.is_empty() {
            break;
        }
    }
    let recording = Recording::read(&whole).unwrap();
    let (first_ns, last_ns) = recording.span_ns().unwrap();
    assert!(recording.end == Some(End::Whole) && last_ns - first_ns > 1_000_000_000);
    assert!(first_ns <= recording.header.at_ns - 800_000_000 && last_ns > recording.header.at_ns);
    running.end().await;
}

/// Runs short processes in sequence until `is_enough`. Returns their process ids, each with a start and an
/// end time between which it certainly existed, in nanoseconds since boot.
#[allow(clippy::disallowed_methods)] // The test is about processes.
fn short_lives(is_enough: &CancellationToken) -> Vec<(u32, u64, u64)> {
    let mut lives = Vec::new();
    while !is_enough.is_cancelled() {
        let began_ns = since_boot_ns();
        let mut child = Command::new("/bin/true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        lives.push((pid, began_ns, since_boot_ns()));
        std::thread::sleep(Duration::from_millis(13));
    }
    lives
}

fn since_boot_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

/// Counts how often the recording reports the end of each process id, among those that ended within its
/// window.
fn ends(recording: &Recording) -> BTreeMap<u32, usize> {
    let mut ends = BTreeMap::new();
    for segment in &recording.segments {
        let played = Player::default().play(segment, |item| {
            if let Item::Ended(life) = item {
                *ends.entry(life.key.pid).or_default() += 1;
            }
            true
        });
        played.unwrap();
    }
    ends
}

/// Every process end within a recording's window, also around its cause and at its end, is recorded exactly
/// once.
async fn no_end_is_missing(keys: &str, recorder: &str) {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start_with(folder.path(), keys, recorder);
    running.until_it_reaches_back(1.0).await;
    let reasons = list(&running.ask("sensor.processes", &[]).await, "reasons");
    let is_untold = |reason: &Value| reason.as_text().is_some_and(|reason| reason.contains("are not seen"));
    if reasons.iter().any(is_untold) {
        // Short lives are not reported on this host; tests/processes.rs checks when that is allowed.
        return running.end().await;
    }
    let is_enough = CancellationToken::new();
    let of_lives = is_enough.clone();
    let lives = tokio::task::spawn_blocking(move || short_lives(&of_lives));
    running.until_it_reaches_back(3.0).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let (before, after) = (Duration::from_secs(1), Duration::from_millis(700));
        let order = Order { before, after, note: "".into() };
        ids.push(running.recorder.order(order).await.unwrap());
        tokio::time::sleep(Duration::from_millis(330)).await;
    }
    let are_over =
        |answer: &Value| list(answer, "recordings").iter().all(|one| text(one, "state") == "whole");
    running.recordings("all to be over", are_over).await;
    is_enough.cancel();
    let lives = lives.await.unwrap();
    for id in ids {
        let path = running.recorder.store(|store| store.get(&id).unwrap().1);
        let recording = sensor::recorder::store::read(&path).unwrap();
        let ends = ends(&recording);
        let header = &recording.header;
        let within =
            lives.iter().filter(|(_, from_ns, to_ns)| *from_ns >= header.from_ns && *to_ns <= header.to_ns);
        let counts: Vec<_> = within.map(|(pid, ..)| ends.get(pid).copied().unwrap_or(0)).collect();
        assert!(counts.len() > 10, "{} processes ended within", counts.len());
        assert!(counts.iter().all(|times| *times == 1), "{keys:?}: ends were reported so often: {counts:?}");
    }
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_end_is_missing_around_an_order() {
    no_end_is_missing("", "hz = 4").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_end_is_missing_around_an_order_where_files_of_proc_are_read() {
    no_end_is_missing("process_source = 'procfs'", "hz = 1").await;
}

/// A recording left by a crash is completed, without the block that was torn.
#[test]
fn what_a_crash_left_is_completed_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(folder.path(), 1 << 20).unwrap();
    let mut header = made_up();
    header.id = store.free_id(header.booted);
    let path = store.announce(&header);
    let mut writing = sensor::recorder::store::Writing::begin(path.clone(), header.clone()).unwrap();
    writing.put(&wire::recording::Block::Serving(Vec::new())).unwrap();
    writing.sync().unwrap();
    drop((writing, store));
    let mut torn = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    torn.write_all(&[200, 0, 0, 0, 1, 2]).unwrap();
    let (store, notes) = Store::open(folder.path(), 1 << 20).unwrap();
    assert!(notes.len() == 1 && notes[0].contains("cut short"), "{notes:?}");
    let (kept, path) = store.get(&header.id).unwrap();
    assert_eq!((kept.end, path.extension().unwrap().to_str()), (Some(End::Crashed), Some("vpr")));
    let recording = Recording::read(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!((recording.end, recording.damage), (Some(End::Crashed), wire::recording::Damage::default()));
    // The start after that has nothing to report.
    let (store, notes) = Store::open(folder.path(), 1 << 20).unwrap();
    assert!(notes.is_empty() && store.list().count() == 1);
}

#[test]
fn the_oldest_go_beyond_the_budget() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(folder.path(), 1000).unwrap();
    let mut ids = Vec::new();
    for second in 0..20 {
        let mut header = made_up();
        header.id = store.free_id(header.booted.plus(Duration::from_secs(second)));
        ids.push(header.id.clone());
        let path = store.announce(&header);
        let writing = sensor::recorder::store::Writing::begin(path, header.clone()).unwrap();
        store.ended(&header.id, Some(writing.finish(End::Whole).unwrap()));
    }
    let kept: Vec<_> = store.list().map(|kept| kept.header.id.clone()).collect();
    assert!(kept.len() > 1 && kept.len() < 20, "{} kept", kept.len());
    assert_eq!(kept, ids[ids.len() - kept.len()..], "the newest");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), kept.len(), "files go with them");
    let again = Store::open(folder.path(), 1000).unwrap().0;
    assert_eq!(again.list().count(), kept.len());
}

/// Stores an empty recording by this trigger, at this second after boot; returns its path.
fn keep(store: &mut Store, second: u64, trigger: &str) -> compact_str::CompactString {
    let mut header = made_up();
    header.id = store.free_id(header.booted.plus(Duration::from_secs(second)));
    header.cause.trigger = trigger.into();
    let path = store.announce(&header);
    let writing = sensor::recorder::store::Writing::begin(path, header.clone()).unwrap();
    store.ended(&header.id, Some(writing.finish(End::Whole).unwrap()));
    header.id
}

#[test]
fn a_flood_of_orders_leaves_what_triggers_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(folder.path(), 4000).unwrap();
    let by_trigger: Vec<_> = (0..8).map(|second| keep(&mut store, second, "failed")).collect();
    let ordered: Vec<_> = (10..50).map(|second| keep(&mut store, second, "")).collect();
    let (of_trigger, of_order): (Vec<_>, Vec<_>) =
        store.list().map(|kept| kept.header.clone()).partition(|header| !header.cause.is_order());
    assert_eq!(of_trigger.iter().map(|header| header.id.clone()).collect::<Vec<_>>(), by_trigger);
    assert!(of_order.len() > 1 && of_order.len() < 40, "{} orders", of_order.len());
    assert_eq!(of_order.last().unwrap().id, *ordered.last().unwrap(), "the newest");
    // Many triggers leave room for some recordings by command, but only while nothing newer comes.
    (60..120).for_each(|second| drop(keep(&mut store, second, "failed")));
    assert!(store.list().all(|kept| !kept.header.cause.is_order()), "the oldest of all");
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_leave_places_for_triggers_and_what_finds_none_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let trigger = "hz = 10\n[[recorder.triggers]]\nname = 'failed'\noutcome = 'failed'\nbefore_s = 1\nafter_s = 9\n\
                   cool_down_s = 0";
    let running = Running::start(folder.path(), trigger);
    running.until_it_reaches_back(0.5).await;
    let order = || Order { before: Duration::ZERO, after: Duration::from_secs(9), note: "".into() };
    for _ in 0..4 {
        running.recorder.order(order()).await.unwrap();
    }
    let refusal = running.recorder.order(order()).await.unwrap_err();
    assert!(refusal.to_string().contains("order again when one is over"), "{refusal}");
    write_failures(folder.path(), 6);
    let is_counted = |answer: &Value| number(&list(answer, "triggers")[0], "refused") >= 2.0;
    let answer = running.recordings("the refused ones", is_counted).await;
    assert_eq!(number(&list(&answer, "triggers")[0], "fired"), 4.0, "{answer:?}");
    let by_trigger =
        list(&answer, "recordings").iter().filter(|one| text(one, "trigger") == "failed").count();
    assert_eq!(by_trigger, 4, "of eight places");
    assert!(text(&answer, "trouble").contains("8 recordings are under way"), "{answer:?}");
    running.end().await;
}

fn made_up() -> wire::recording::Header {
    wire::recording::Header {
        id: "".into(),
        domain: "local".try_into().unwrap(),
        host: "head".try_into().unwrap(),
        sensor: wire::id::SensorKey(1),
        cause: wire::recording::Cause::default(),
        at_ns: 0,
        from_ns: 0,
        to_ns: 0,
        booted: wire::time::Time::from_micros(1_790_000_000_000_000),
        hz: 64.0,
        source: "procfs".into(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_past_is_returned_alike_of_memory_and_of_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), "hz = 50");
    let busy = Busy::start();
    // A recording holds slightly more than requested, and memory more than that.
    running.until_it_reaches_back(8.0).await;
    let second = Duration::from_secs(1);
    running.recorder.order(Order { before: second, after: second, note: "x".into() }).await.unwrap();
    let kept = running.recorded().await;
    let window = [("from", kept.get("from").unwrap().clone()), ("to", kept.get("to").unwrap().clone())];
    let samples = |answer: &Value| -> Vec<(f64, Vec<u64>)> {
        let pids = |entry: &Value| {
            list(entry, "processes").iter().map(|process| number(process, "pid") as u64).collect()
        };
        list(answer, "entries").iter().map(|entry| (number(entry, "time"), pids(entry))).collect()
    };
    let from = number(&kept, "from");
    let earlier = [("from", Value::Double(from - 6.0)), ("to", Value::Double(from + 0.4))];
    let of_earlier = samples(&running.ask("sensor.past_processes", &earlier).await);
    assert!(of_earlier[0].0 < from - 5.5, "from {} on", of_earlier[0].0 - from);
    // Memory has the same samples as the recording.
    let of_both = samples(&running.ask("sensor.past_processes", &window).await);
    running.end().await;
    let running = Running::start(folder.path(), "hz = 50");
    let answer = running.ask("sensor.past_processes", &window).await;
    let of_recording = samples(&answer);
    assert_eq!((of_both.len() > 50, of_both.len()), (true, of_recording.len()));
    for (one, other) in of_both.iter().zip(&of_recording) {
        assert!((one.0 - other.0).abs() < 0.005 && one.1 == other.1, "{one:?} {other:?}");
    }
    assert!(of_both.is_sorted_by(|one, other| one.0 < other.0), "each sweep once");
    let Value::Int(pid) = busy.pid() else { panic!("a number") };
    let busy_sweeps = of_both.iter().filter(|(_, pids)| pids.contains(&u64::try_from(pid).unwrap())).count();
    assert!(busy_sweeps > 20, "it is busy, and reported in {busy_sweeps} sweeps");
    assert_eq!(list(&answer, "spans").last().map(|span| text(span, "recording")), Some(text(&kept, "id")));
    let nothing = [("from", Value::Double(1.0)), ("to", Value::Double(2.0))];
    let entries = list(&running.ask("sensor.past_processes", &nothing).await, "entries");
    assert_eq!((entries.len(), text(&entries[0], "what")), (1, "gap"), "it says that nothing is known");
    running.end().await;
}
