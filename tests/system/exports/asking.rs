//! Commands read exported days (`--from`), and find what the sensor answers.
//!
//! Not here: other programs that read them (`readers`).

use super::*;

/// `visperf COMMAND … --json` of a sensor with this state, or of exported days (`--from`).
pub(super) fn asked(
    command: &[&str],
    (option, source): (&str, &OsStr),
    environment: &[(&str, &str)],
) -> Vec<Value> {
    let output = program::command(program::visperf().unwrap())
        .args(command)
        .args(["--json".as_ref(), option.as_ref(), source])
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{command:?}: {}", note(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn exported_days_answer_as_the_sensor_did() {
    let site = Site::start();
    assert_eq!(site.export(&[]).len(), DAYS as usize);
    let place = site.place();
    let (since, until) = (format!("{}T00:00Z", site.day(0)), format!("{}T00:00Z", site.day(DAYS)));
    let all = ["--since", since.as_str(), "--until", until.as_str()];
    let sources = [("--state", site.state()), ("--from", place.clone())];
    let sources = sources.each_ref().map(|(option, path)| (*option, path.as_os_str()));
    for more in [
        &["node_*", "--step", "1h"][..],
        &["node_cpu_seconds_total", "--step", "7m", "--by", "mode"],
        &["made_up", "--step", "6h", "--by", "host", "--agg", "sum", "--label", "number=7"],
        &["node_load1", "--step", "1d", "--agg", "max"],
        &["node_load1", "--step", "30m", "--agg", "p95"],
        &["*", "--step", "1d", "--agg", "count", "--host", "trial-host"],
    ] {
        let more = [&["metrics"], more, &all].concat();
        let [of_sensor, of_files] = sources.map(|source| asked(&more, source, &[]));
        assert!(!of_files.is_empty(), "{more:?}");
        assert_eq!(values(&of_files), values(&of_sensor), "{more:?}");
    }
    for more in [
        &["--limit", "500"][..],
        &["--limit", "7", "--oldest"],
        &["--user", "mrossi", "--outcome", "failed", "--outcome", "node_fail"],
        &["--job", "17"],
        &["--call", "slurm:1*"],
        &["--call", "slurm:12", "--host", "trial-host"],
        &["--call", "12"],
        &["--name", "rel*", "--limit", "40"],
        &["--since", until.as_str()],
    ] {
        let is_later = more.contains(&"--since");
        let more = [&["calls"][..], more, if is_later { &[] } else { &all }].concat();
        let [of_sensor, of_files] = sources.map(|source| asked(&more, source, &[]));
        assert_eq!(of_files.is_empty(), is_later, "{more:?}");
        assert_eq!(of_files, of_sensor, "{more:?}");
    }
}

#[test]
fn values_are_written_to_a_parquet_file_as_they_are_printed() {
    let site = Site::start();
    let (since, until) = (format!("{}T00:00Z", site.day(0)), format!("{}T00:00Z", site.day(DAYS)));
    let visperf = |more: &[&str]| {
        let all = ["metrics", "node_*", "--step", "1h", "--since", &since, "--until", &until, "--state"];
        program::command(program::visperf().unwrap()).args(all).arg(site.state()).args(more).output().unwrap()
    };
    let csv = visperf(&["--csv"]);
    let values = String::from_utf8_lossy(&csv.stdout).lines().count() - 1;
    assert!(values > 100);
    let file = site.folder.path().join("week.parquet");
    std::fs::write(&file, "older").unwrap();
    let written = visperf(&["--parquet", file.to_str().unwrap()]);
    assert!(written.status.success() && written.stdout.is_empty(), "{}", note(&written));
    let said = format!("{values} values written to {}", file.display());
    assert!(note(&written).contains(&said), "{said}: {}", note(&written));
    assert!(std::fs::read(&file).unwrap().starts_with(b"PAR1"));
    let mut unknown = program::command(program::visperf().unwrap());
    unknown.args(["metrics", "node_loadx", "--since", &since, "--parquet"]).arg(&file);
    let unknown = unknown.arg("--state").arg(site.state()).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2), "{}", note(&unknown));
    assert!(note(&unknown).contains("no metric is named node_loadx; did you mean"), "{}", note(&unknown));
    assert!(std::fs::read(&file).unwrap().starts_with(b"PAR1"), "what was there is there still");
    let folder = visperf(&["--parquet", site.folder.path().to_str().unwrap()]);
    assert_eq!(folder.status.code(), Some(1));
    assert!(note(&folder).contains("expected a file, found a folder"), "{}", note(&folder));
}

#[test]
fn processes_of_exported_days_are_those_of_the_sensor() {
    let site = Site::start();
    assert_eq!(site.export(&[]).len(), DAYS as usize);
    let place = site.place();
    let (since, until) = (format!("{}T00:00Z", site.day(0)), format!("{}T00:00Z", site.day(DAYS)));
    let all = ["processes", "--since", since.as_str(), "--until", until.as_str()];
    for more in [
        &["--order", "start"][..],
        &["--name", "rel*", "--order", "pid"],
        &["--user", "0"],
        &["--job", "slurm:1", "--order", "pid", "--limit", "2"],
        &["--pid", "71", "--since", &format!("{}T04:00Z", site.day(1))],
        // Until then the sensor may have stored other processes, its own.
        &["--until", "2033-01-01T00:00Z", "--since", &since, "--order", "pid", "--job", "slurm:1"],
        &["--pid", "71", "--until", &format!("{}T04:00Z", site.day(1))],
    ] {
        let is_shorter = |option: &&str| more.contains(option);
        let mut all: Vec<&str> = all.to_vec();
        for option in ["--since", "--until"].iter().filter(|option| is_shorter(option)) {
            let at = all.iter().position(|one| one == option).unwrap();
            all.drain(at..at + 2);
        }
        let asked = |source: (&str, &OsStr)| {
            let mut found = asked(&[&all, more].concat(), source, &[]);
            let host = |process: &mut Value| process.as_object_mut().unwrap().remove("host");
            let hosts: Vec<_> = found.iter_mut().map(host).collect();
            (hosts, found)
        };
        let (no_hosts, of_sensor) = asked(("--state", site.state().as_os_str()));
        let (hosts, of_files) = asked(("--from", place.as_os_str()));
        assert!(!of_files.is_empty(), "{more:?}");
        assert!(no_hosts.iter().all(Option::is_none));
        assert!(hosts.iter().all(|host| *host == Some(json!("trial-host"))), "{hosts:?}");
        assert_eq!(of_files, of_sensor, "{more:?}");
    }
    let other = [&all[..], &["--host", "other"]].concat();
    assert!(asked(&other, ("--from", place.as_os_str()), &[]).is_empty());
}

#[test]
fn a_sensor_answers_from_exported_days_what_it_has_no_more() {
    let site = Site::start();
    assert_eq!(site.export(&[]).len(), DAYS as usize);
    let (since, until) = (format!("{}T00:00Z", site.day(0)), format!("{}T00:00Z", site.day(DAYS)));
    let ask = |site: &Site, more: &[&str]| {
        let more = [&["metrics"], more, &["--since", &since, "--until", &until]].concat();
        values(&asked(&more, ("--state", site.state().as_os_str()), &[]))
    };
    let gauges = [
        &["made_up", "--step", "6h", "--by", "host", "--agg", "sum", "--label", "number=7"][..],
        &["node_load1", "--step", "1d", "--agg", "max"],
        &["node_load1", "--step", "10m", "--agg", "last"],
        &["node_load1", "--step", "30m", "--agg", "p95"],
    ];
    let all = gauges.into_iter().chain([
        &["node_cpu_seconds_total", "--step", "7m", "--by", "mode"][..],
        &["node_*", "--step", "1h"],
        &["*", "--step", "1d", "--agg", "count", "--host", "trial-host"],
    ]);
    let all: Vec<&[&str]> = all.collect();
    let before: Vec<_> = all.iter().map(|more| ask(&site, more)).collect();
    let configured = format!("\n[sensor.history]\nexported = {:?}\n", site.place());

    // All of it is gone.
    let site = site.forget(None, &configured);
    let from_files = until_listed(&site);
    assert_eq!(from_files["tiers"][0]["tier"], "exported", "{from_files}");
    for (more, before) in all.iter().zip(&before) {
        assert_eq!(&ask(&site, more), before, "{more:?}");
    }

    // What is here is read here: from the middle of the second day on. An increase at that time is not known.
    let middle = site.today.minus(DAY * (DAYS - 1)).plus(DAY / 2);
    let site = site.forget(Some(middle), "");
    until_listed(&site);
    for (more, before) in gauges.iter().zip(&before) {
        assert_eq!(&ask(&site, more), before, "{more:?}");
    }
    let file = site.place().join(format!("metrics/domain=trial/date={}/metrics.parquet", site.day(2)));
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, b"damaged").unwrap();
    assert_eq!(&ask(&site, gauges[1]), &before[1], "the third day is here");
    std::fs::write(&file, bytes).unwrap();

    // What is damaged is named, and all else is answered.
    let file = site.place().join(format!("metrics/domain=trial/date={}/metrics.parquet", site.day(0)));
    std::fs::write(&file, b"damaged").unwrap();
    let mut command = program::command(program::visperf().unwrap());
    command.args(["metrics", "node_load1", "--values", "--step", "1d", "--since", &since, "--until", &until]);
    let damaged = command.arg("--state").arg(site.state()).output().unwrap();
    assert!(damaged.status.success(), "{}", note(&damaged));
    assert_eq!(String::from_utf8_lossy(&damaged.stdout).lines().count(), 3, "two days and a head");
    assert!(note(&damaged).contains("values of exported days are missing"), "{}", note(&damaged));
}

/// Waits until the sensor knows the exported days, and its domain that it reports; returns the load of the first.
fn until_listed(site: &Site) -> Value {
    let day = |number: u32| site.today.minus(DAY * DAYS).plus(DAY * number).micros() / 1_000_000;
    let params = json!({"name": "node_load1", "since": day(0), "until": day(1), "step": 3600});
    wait::until(STORED, "the list of exported days", || {
        let answer = query::result(site.address, "sensor.history", &params).unwrap();
        let is_listed = answer.get("exported_problem").is_none();
        // It represents its domain some moments after its start.
        let hosts = query::result(site.address, "domain.hosts", &json!({})).unwrap_or_default();
        Ok(if is_listed && hosts["hosts"][0]["state"] == "live" {
            Seen::Done(answer)
        } else {
            Seen::NotYet(answer.to_string())
        })
    })
    .unwrap()
}

#[test]
fn exported_events_are_those_that_the_sensor_had() {
    let site = Site::start();
    assert_eq!(site.export(&[]).len(), DAYS as usize);
    let place = site.place();
    let (since, until) = (format!("{}T00:00Z", site.day(0)), format!("{}T23:59:59Z", site.day(DAYS - 1)));
    let all = ["--since", since.as_str(), "--until", until.as_str()];
    let sources = [("--state", site.state()), ("--from", place)];
    let sources = sources.each_ref().map(|(option, path)| (*option, path.as_os_str()));
    let middle = format!("{}T12:00Z", site.day(1));
    let early = format!("{}T01:00Z", site.day(1));
    for (more, is_any) in [
        (&[][..], true),
        (&["--kind", "job_end", "--kind", "transfer_end"], true),
        (&["--user", "mrossi"], true),
        (&["--job", "17"], true),
        (&["--call", "slurm:1*"], true),
        (&["--call", "slurm:12"], true),
        (&["--call", "12"], false),
        (&["--host", "trial-host", "--until", middle.as_str()], true),
        (&["--host", "wn01.site2.example"], true),
        (&["--host", "wn01", "--since", middle.as_str(), "--limit", "5"], true),
        (&["--limit", "40"], true),
        (&["--kind", "job_end", "--since", early.as_str()], true),
        (&["--kind", "node_down"], false),
    ] {
        let has = |option: &str| more.contains(&option);
        let bounds = all.chunks(2).filter(|pair| !has(pair[0])).flatten().copied();
        let more: Vec<&str> = ["events"].into_iter().chain(more.iter().copied()).chain(bounds).collect();
        let [of_sensor, of_files] = sources.map(|source| events_of(&asked(&more, source, &[])));
        assert_eq!(of_files, of_sensor, "{more:?}");
        assert_eq!(!of_files.is_empty(), is_any, "{more:?}");
    }
}

/// Events; lists among their attributes are written as texts.
fn events_of(events: &[Value]) -> Vec<Value> {
    let text = |value: &Value| match value.as_array() {
        Some(texts) => texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",").into(),
        None => value.clone(),
    };
    let event = |event: &Value| {
        let mut event = event.clone();
        let attributes = event["attributes"].as_object().unwrap().clone();
        event["attributes"] = attributes.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        event
    };
    events.iter().map(event).collect()
}

#[test]
fn what_is_damaged_missing_or_mistaken_is_named() {
    let site = Site::start();
    assert_eq!(site.export(&[]).len(), DAYS as usize);
    let place = site.place();
    let (since, until) = (format!("{}T00:00Z", site.day(0)), format!("{}T00:00Z", site.day(DAYS)));
    let all = ["--since", since.as_str(), "--until", until.as_str()];
    let from = |more: &[&str]| {
        let mut command = program::command(program::visperf().unwrap());
        command.args(more).arg("--from").arg(&place).output().unwrap()
    };
    let seconds = from(&["metrics", "node_load1", "--step", "90s"]);
    assert_eq!(seconds.status.code(), Some(2));
    assert!(note(&seconds).contains("expected whole minutes"), "{}", note(&seconds));
    let mistyped = from(&["metrics", "node_lod1"]);
    assert_eq!(mistyped.status.code(), Some(2));
    assert!(
        note(&mistyped).contains("is named node_lod1") && note(&mistyped).contains("node_load1"),
        "{}",
        note(&mistyped)
    );
    let later = from(&["calls", "--since", &until]);
    let reach = format!("which has {} to {}", site.day(0), site.day(2));
    assert!(later.status.success() && note(&later).contains(&reach), "{}", note(&later));

    // What is damaged is named, and all other days are read.
    for table in ["metrics", "processes", "calls", "events"] {
        let path = format!("{table}/domain=trial/date={}/{table}.parquet", site.day(1));
        let file = place.join(&path);
        let mut bytes = std::fs::read(&file).unwrap();
        let last = bytes.len() - 20;
        bytes[last] ^= 1;
        std::fs::write(&file, bytes).unwrap();
    }
    let damaged = from(&["calls", "--json", "--limit", "500"]);
    assert_eq!(damaged.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&damaged.stdout).lines().count(), 2 * CALLS as usize);
    assert!(
        note(&damaged).contains("calls.parquet: ") && note(&damaged).contains("is damaged"),
        "{}",
        note(&damaged)
    );
    let processes = from(&[&["processes", "--json"], &all[..]].concat());
    assert_eq!(processes.status.code(), Some(1), "{}", note(&processes));
    let lines = String::from_utf8_lossy(&processes.stdout).lines().count();
    assert_eq!(lines, 3, "one of all days, and those of the first and the third");
    let events = from(&["events", "--json", "--kind", "transfer_end"]);
    assert_eq!(events.status.code(), Some(1), "{}", note(&events));
    assert_eq!(String::from_utf8_lossy(&events.stdout).lines().count(), 2 * TRANSFERS as usize);
    let damaged = from(&[&["metrics", "node_load1", "--step", "1d", "--values"], &all[..]].concat());
    assert_eq!(damaged.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&damaged.stdout).lines().count(), 3, "two days and a head");
    std::fs::remove_file(place.join(format!("_visperf/domain=trial/date={}.json", site.day(1)))).unwrap();
    let gap = from(&["calls"]);
    let expected = format!("not exported, or nothing was stored: {}", site.day(1));
    assert!(gap.status.success() && note(&gap).contains(&expected), "{}", note(&gap));

    let mut mistaken = program::command(program::visperf().unwrap());
    let mistaken = mistaken.args(["calls", "--from", "yesterday"]).output().unwrap();
    assert_eq!(mistaken.status.code(), Some(2), "{}", note(&mistaken));
    assert!(note(&mistaken).contains("was --since meant?"), "{}", note(&mistaken));
    let following = from(&["events", "--follow"]);
    assert_eq!(following.status.code(), Some(2), "{}", note(&following));
    let mut running = program::command(program::visperf().unwrap());
    let running = running.args(["calls", "--in", "running", "--from"]).arg(&place).output().unwrap();
    assert_eq!(running.status.code(), Some(2), "{}", note(&running));
    assert!(note(&running).contains("exported calls have ended"), "{}", note(&running));
}

/// Each series with the values of its steps, as floating-point numbers.
pub(super) fn values(series: &[Value]) -> Vec<(String, Vec<[f64; 2]>)> {
    let number = |value: &Value| value.as_f64().unwrap();
    let samples = |one: &Value| {
        let samples = one["samples"].as_array().unwrap().iter();
        samples.map(|sample| [number(&sample["time"]), number(&sample["value"])]).collect()
    };
    series
        .iter()
        .map(|one| (format!("{} {} {}", one["name"], one["labels"], one["unit"]), samples(one)))
        .collect()
}
