//! Tests of the evaluation, on answers in the form that daemons give.

use super::*;
use serde_json::json;
use wire::api::domain::CallCounts;

fn host(name: &str, state: HostState, health: &[&str]) -> Host {
    Host {
        host: name.to_owned(),
        state,
        age_secs: 90.0,
        health: Some(names(health)),
        events_behind: Some(2),
        events_lost: Some(1),
        ..Host::default()
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn hosts_that_do_not_report_are_counted_and_named() {
    let all = [
        host("wn01", HostState::Live, &[]),
        host("wn02", HostState::LastSeen, &[]),
        host("wn03", HostState::Left, &[]),
    ];
    let check = |named: &[&str], level: Level, line: &str| {
        let report = hosts(&all, &names(named), &Thresholds::default());
        assert_eq!((report.level, report.line().as_str()), (level, line), "{named:?}");
    };
    check(
        &[],
        Level::Critical,
        "HOSTS CRITICAL - 1 of 2 hosts not live: wn02 (90s ago) | 'live'=1;;;0;2 'not_live'=1;;0;0;2",
    );
    check(&["wn01"], Level::Ok, "HOSTS OK - 1 of 1 hosts live | 'live'=1;;;0;1 'not_live'=0;;0;0;1");
    let line = "HOSTS CRITICAL - 2 of 2 hosts not live: wn03 (90s ago), wn99 (unknown to the domain) | \
                'live'=0;;;0;2 'not_live'=2;;0;0;2";
    check(&["wn03", "wn99"], Level::Critical, line);
    let (warning, critical) = ("0".parse().unwrap(), "1".parse().unwrap());
    let thresholds = Thresholds { warning: Some(&warning), critical: Some(&critical) };
    assert_eq!(hosts(&all, &[], &thresholds).level, Level::Warning);
    assert_eq!(hosts(&[], &[], &Thresholds::default()).level, Level::Unknown);
}

#[test]
fn a_sensor_with_a_problem_is_a_warning() {
    let all = [host("wn01", HostState::Live, &["the disk is full", "x"]), host("wn02", HostState::Live, &[])];
    let report = sensors(&all, &[], &Thresholds::default());
    let line = "SENSORS WARNING - 1 of 2 sensors report a problem: wn01: the disk is full | 'unhealthy'=1;0;;0;2 \
                'events_behind'=4;;;0 'events_lost'=2c";
    assert_eq!((report.level, report.line().as_str()), (Level::Warning, line));
    assert_eq!(sensors(&all, &names(&["wn02"]), &Thresholds::default()).level, Level::Ok);
    assert_eq!(
        sensors(&[host("a", HostState::LastSeen, &[])], &[], &Thresholds::default()).level,
        Level::Unknown
    );
}

#[test]
fn a_domain_is_slow_or_incomplete() {
    let mut summary = Summary {
        domain: "UT".to_owned(),
        representative: "wn01".to_owned(),
        hosts: 3,
        hosts_live: 2,
        calls: CallCounts { waiting: 4, running: 5, ..CallCounts::default() },
        ..Summary::default()
    };
    let critical = "1".parse().unwrap();
    let thresholds = Thresholds { warning: None, critical: Some(&critical) };
    let report = domain(&summary, 0.25, &thresholds);
    let line = "DOMAIN OK - UT represented by wn01, 2 of 3 hosts live, answered in 0.250 s | 'time'=0.25s;;1;0 \
                'hosts'=3;;;0 'hosts_live'=2;;;0 'calls_waiting'=4;;;0 'calls_running'=5;;;0";
    assert_eq!((report.level, report.line().as_str()), (Level::Ok, line));
    assert_eq!(domain(&summary, 1.5, &thresholds).level, Level::Critical);
    summary.partial = true;
    assert_eq!(domain(&summary, 0.25, &thresholds).level, Level::Ok, "one of them is known not to be live");
    summary.hosts_live = 3;
    let report = domain(&summary, 0.25, &thresholds);
    assert!(report.level == Level::Warning && report.line().contains("hosts may be missing"), "{report:?}");
    summary.unheard = names(&["wn03"]);
    assert_eq!(domain(&summary, 0.25, &thresholds).level, Level::Warning);
}

#[test]
fn a_metric_is_compared_on_each_host_and_an_old_value_is_unknown() {
    let of = |host: &str, value: f64, time: f64| {
        let one = json!({"host": host, "name": "node_load1", "labels": {}, "unit": "1", "semantics": "gauge",
            "value": value, "time": time});
        serde_json::from_value::<Metric>(one).unwrap()
    };
    let (warning, critical) = ("4".parse().unwrap(), "8".parse().unwrap());
    let check = |all: &[Metric], level: Level, text: &str| {
        let thresholds = Thresholds { warning: Some(&warning), critical: Some(&critical) };
        let report = metric(all, "node_load1", &thresholds, (1_000.0, 60.0));
        assert_eq!(report.level, level, "{report:?}");
        assert!(report.line().contains(text), "{text} in {}", report.line());
    };
    check(&[of("a", 1.0, 990.0), of("b", 9.5, 990.0)], Level::Critical, "b is 9.5 | 'a'=1;4;8 'b'=9.5;4;8");
    check(&[of("a", 5.0, 990.0), of("b", 1.0, 900.0)], Level::Warning, "a is 5; older than 60 s: b");
    check(&[of("b", 99.0, 900.0)], Level::Unknown, "older than 60 s: b");
    check(&[of("a", 1.0, 990.0)], Level::Ok, "within limits: a is 1");
    let unknown = unknown_metric("node_loda1", "; did you mean node_load1?");
    assert_eq!(unknown.line(), "METRIC UNKNOWN - no metric node_loda1 is known; did you mean node_load1?");
}

#[test]
fn figures_have_the_units_of_the_guidelines() {
    let check = |unit_of: &str, semantics: &str, expected: &str| {
        let metric = serde_json::from_value(json!({"unit": unit_of, "semantics": semantics})).unwrap();
        assert_eq!(unit(&metric), expected, "{unit_of} {semantics}");
    };
    check("bytes", "gauge", "B");
    check("seconds", "gauge", "s");
    check("seconds", "counter", "c");
    check("1", "gauge", "");
    let disk = json!({"host": "a", "name": "x", "labels": {"device": "sda", "z": "1"}});
    let disk = serde_json::from_value(disk).unwrap();
    assert_eq!(
        (label(&disk, "x"), label(&disk, "*")),
        ("a device:sda z:1".into(), "a x device:sda z:1".into())
    );
}
