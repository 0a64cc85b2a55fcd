//! `visperf check` and the exit code of `visperf hosts`, with a daemon that returns canned answers.

use crate::program::{Home, Ran};
use crate::server::{Daemon, Events};

/// Assert one line of output, and this code.
#[track_caller]
fn check(ran: &Ran, code: i32, line: &str) {
    assert_eq!(ran.code, code, "{ran:#?}");
    assert_eq!(ran.out.lines().count(), 1, "{ran:#?}");
    assert!(ran.out.starts_with(line), "{line:?}: {ran:#?}");
}

#[test]
fn each_check_is_one_line_and_the_code_of_its_state() {
    let (home, daemon) = (Home::new(), Daemon::start("127.0.0.1:0", &Events::default()));
    let address = daemon.connect();
    let run = |arguments: &[&str]| home.run(&[&["check"][..], arguments, &["--connect", &address]].concat());
    check(&run(&["hosts"]), 0, "HOSTS OK - 1 of 1 hosts live | 'live'=1;;;0;1 'not_live'=0;;0;0;1\n");
    check(&run(&["hosts", "--host", "wn02"]), 2, "HOSTS CRITICAL - 1 of 1 hosts not live: wn02 (unknown");
    check(&run(&["hosts", "--host", "wn02", "-w", "0", "-c", "1"]), 1, "HOSTS WARNING - ");
    check(
        &run(&["sensors"]),
        1,
        "SENSORS WARNING - 1 of 1 sensors report a problem: wn01: no daemon lets this",
    );
    let exact =
        "METRIC OK - node_big_total within limits: wn01 device:sda is 9007199254740993 | 'wn01 device:sda'=";
    check(&run(&["metric", "node_big_total"]), 0, exact);
    check(
        &run(&["metric", "node_big_total", "--critical", "100"]),
        2,
        "METRIC CRITICAL - node_big_total: wn01 ",
    );
    check(
        &run(&["metric", "node_big_total", "--critical", "~:1e30", "-w", "-5"]),
        3,
        "VISPERF UNKNOWN - invalid",
    );
    let near = "METRIC UNKNOWN - no metric node_bgi_total is known; did you mean node_big_total?\n";
    check(&run(&["metric", "node_bgi_total"]), 3, near);
    check(&run(&["metric", "nothing"]), 3, "METRIC UNKNOWN - no metric nothing is known\n");
    // This daemon has no summary; the range and the check are invalid.
    check(&run(&["domain"]), 3, "VISPERF UNKNOWN - the daemon answered: no method");
    check(&run(&["hosts", "--warning", "many"]), 3, "VISPERF UNKNOWN - invalid value 'many'");
    check(&run(&["everything"]), 3, "VISPERF UNKNOWN - ");
    drop(daemon);
    check(&run(&["hosts"]), 2, "VISPERF CRITICAL - ");
    home.run(&["check", "--help"]).ok().prints(&["hosts", "sensors", "domain", "metric", "Examples:"]);
}

#[test]
fn a_host_that_does_not_report_has_a_code_of_its_own() {
    let (home, daemon) = (Home::new(), Daemon::start("127.0.0.1:0", &Events::default()));
    let ask = |arguments: &[&str]| home.run(&[arguments, &["--connect", &daemon.connect()]].concat());
    ask(&["hosts"]).ok();
    ask(&["hosts", "--domain", "away"]).with_code(8).prints(&["wn01", "last_seen"]);
    ask(&["hosts", "--domain", "away", "--json"]).with_code(8).prints(&["\"last_seen\""]);
}
