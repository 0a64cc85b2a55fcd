//! `visperf filter`: list, show, test, try, new; and `config check`.

use crate::program::Home;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

const FILTER: &str = r#"
[filter]
name = "toy"
product = "Toy"
[files]
names = ["toy.log"]
first_lines = ['^\[\d+\] job ']
[time]
prefix = ["[%s]"]
[calls]
names = ["${.job}"]
[[record]]
start = '^ list'
continue = '^ -'
[[rule]]
match = '^ job (?P<job>\d+) in by (?P<user>\w+)$'
event = "job_submit"
job = "${job}"
user = "${user}"
[[rule]]
match = '^ list (?P<job>\d+)'
event = "server_list"
job = "${job}"
[[rule]]
match = '^ job (?P<job>\d+) out (?P<how>\w+) on (?P<host>\S+)$'
event = "job_end"
job = "${job}"
outcome = { value = "${how}", map = { good = "ok" }, default = "failed" }
attributes = { host = "${host}" }
[[rule]]
match = '^ never'
[[test]]
name = "in"
lines = "[5] job 1 in by ann"
events = [{ kind = "job_submit", line = 1, job = "1", user = "ann" }]
"#;

const LOG: &str = "[100] job 1 in by ann\n[101] list 1\n - a\n - b\n[102] job 1 out good on wn01\n\
                   [103] strange thing 17\n[104] strange thing 18\r\n[105] other \x1b[2J\n";

fn home() -> Home {
    let home = Home::new();
    home.file("filters/toy.toml", FILTER);
    home.file("toy.log", LOG);
    home
}

#[test]
fn filters_are_listed_and_shown() {
    let home = home();
    home.run(&["filter", "list"]).ok().prints(&["slurmctld", "shipped", "Slurm controller"]);
    let listed = home.run(&["filter", "list", "--json", "--filters", "filters"]).ok().json();
    let toy = listed.iter().find(|filter| filter["name"] == "toy").unwrap();
    assert_eq!((toy["rules"].as_u64(), toy["tests"].as_u64()), (Some(4), Some(1)));
    assert_eq!(toy["origin"], "filters/toy.toml");
    home.run(&["filter", "--filters", "filters", "show", "toy"]).ok().prints(&["product = \"Toy\""]);
    home.run(&["filter", "show", "slurmctl"]).with_code(2).notes(&["did you mean slurmctld"]);
    home.run(&["filter", "test", "slurmctl", "slurmctld"]).with_code(2).notes(&["did you mean slurmctld"]);
    home.run(&["filter", "try", "--filter", "slrumctld", "toy.log"])
        .with_code(2)
        .notes(&["did you mean slurmctld"]);
    home.run(&["filter", "show", "./none.toml"]).with_code(1);
}

#[test]
fn filters_of_the_user_are_found_in_the_usual_folder() {
    let home = home();
    home.file(".config/visperf/filters/toy.toml", FILTER);
    home.run(&["filter", "list"]).ok().prints(&[".config/visperf/filters/toy.toml"]);
}

#[test]
fn a_log_is_tried_for_people() {
    let home = home();
    let ran = home.run(&["filter", "try", "--filters", "filters", "toy.log"]).ok();
    let ran = ran.prints(&[
        "toy.log: filter toy (Toy), by its name",
        "1970-01-01T00:01:40.000Z  job_submit",
        "-> wn01",
        "3 lines that no rule took, in 2 groups",
        "2 x  line 6:  strange thing 17",
        "1 x  line 8:  other \\u{1b}[2J",
        "events  3: job_end 1, job_submit 1, server_list 1",
        "calls   1 joined: ok 1",
        "1 of 4 rules of toy took no line",
    ]);
    assert!(!ran.out.contains('\x1b'), "no colours and no escapes into a pipe");
    home.run(&["filter", "try", "--filter", "filters/toy.toml", "--unknown", "1", "toy.log"])
        .ok()
        .prints(&["and 1 line in 1 more group; see them with --unknown 2", "'^ never'"]);
}

#[test]
fn what_each_rule_took_is_printed_on_request() {
    let home = home();
    let ran = home.run(&["filter", "try", "--filter", "filters/toy.toml", "--rules", "toy.log"]).ok();
    let rules: Vec<&str> = ran.out.lines().skip_while(|line| *line != "rules of toy").skip(1).collect();
    let expected = [
        "TOOK  LINE  RULE",
        "   1    15  '^ job (?P<job>\\d+) in by (?P<user>\\w+)$'",
        "   1    20  '^ list (?P<job>\\d+)'",
        "   1    24  '^ job (?P<job>\\d+) out (?P<how>\\w+) on (?P<host>\\S+)$'",
        "   0    30  '^ never'",
    ];
    assert_eq!(rules, expected);
}

#[test]
fn a_log_that_only_has_the_name_of_another_is_doubted() {
    let home = home();
    home.file("toy.log", "GET / HTTP/1.1\n".repeat(20));
    let named = ["filter", "try", "--filters", "filters", "toy.log"];
    home.run(&named)
        .with_code(7)
        .notes(&["it has a name of Toy, but its first 20 lines are none that toy reads"]);
    home.file("toy.log", format!("[5] job 1 in by ann\n{}", "[6] GET / HTTP/1.1\n".repeat(20)));
    let doubt = "warning: toy.log may be no log of Toy: no rule of toy took 20 of its 21 records";
    home.run(&named).ok().prints(&[doubt, "--filter"]);
    home.run(&["filter", "try", "--filters", "filters", "--json", "toy.log"]).ok().notes(&[doubt]);
    let noise: Vec<u8> = (0..9_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    home.file("noise.bin", &noise);
    home.run(&["filter", "try", "noise.bin"]).with_code(7).notes(&["it does not look like text"]);
    home.run(&["filter", "try", "--filter", "filters/toy.toml", "noise.bin"])
        .ok()
        .prints(&["warning: noise.bin: it does not look like text"]);
}

#[test]
fn what_is_likely_wrong_with_a_filter_is_reported() {
    let home = home();
    let notes = ["no line of toy.log begins with a stamp", "(%Y-%m-%d)"];
    home.file("stamp.toml", FILTER.replace("[%s]", "%Y-%m-%d"));
    home.run(&["filter", "try", "--filter", "stamp.toml", "toy.log"]).ok().prints(&notes);
    home.file("calls.toml", FILTER.replace("[calls]\nnames = [\"${.job}\"]", ""));
    home.run(&["filter", "try", "--filter", "calls.toml", "toy.log"]).ok().prints(&["no event has a call"]);
    let right = home.run(&["filter", "try", "--filter", "filters/toy.toml", "toy.log"]).ok();
    assert!(!right.out.contains("no line of") && !right.out.contains("no event has"), "{}", right.out);
}

#[test]
fn a_log_is_tried_for_programs() {
    let home = home();
    let ran =
        home.run(&["filter", "try", "--json", "--host", "h", "--filter", "filters/toy.toml", "toy.log"]);
    let events = ran.ok().json();
    let brief: Vec<_> = events
        .iter()
        .map(|event| (event["kind"].as_str().unwrap(), event["line"].as_u64(), event["last_line"].as_u64()))
        .collect();
    let expected =
        [("job_submit", Some(1), Some(1)), ("server_list", Some(2), Some(4)), ("job_end", Some(5), Some(5))];
    assert_eq!(brief, expected);
    let keys: Vec<&String> = events[2].as_object().unwrap().keys().collect();
    let expected = [
        "id",
        "kind",
        "time",
        "seen",
        "call",
        "job",
        "user",
        "from",
        "to",
        "outcome",
        "attributes",
        "source",
        "line",
        "last_line",
    ];
    assert_eq!(keys, expected);
    assert_eq!(events[2]["call"], "toy:1");
    assert_eq!((events[2]["time"].as_f64(), events[2]["outcome"].as_str()), (Some(102.0), Some("ok")));
    assert_eq!(events[2]["source"]["offset"], LOG.find("[102]").unwrap());
    assert_eq!(
        (events[2]["source"]["host"].as_str(), &events[2]["attributes"]["host"]),
        (Some("h"), &"wn01".into())
    );
    let calls =
        home.run(&["filter", "try", "--json", "--calls", "--filter", "filters/toy.toml", "toy.log"]).ok();
    let calls = calls.json();
    assert_eq!(calls.len(), 1);
    assert_eq!((calls[0]["state"].as_str(), calls[0]["events"].as_u64()), (Some("ended"), Some(3)));
}

#[test]
fn several_logs_and_standard_input_are_joined() {
    let home = home();
    home.file("second.log", "[200] job 1 out bad on wn02\n[201] job 2 in by bob\n");
    let arguments = ["filter", "try", "--calls", "--filter", "filters/toy.toml", "toy.log", "second.log"];
    home.run(&arguments).ok().prints(&["calls   2 joined: waiting 1"]);
    let ran = home.run_with_input(&["filter", "try", "--json", "--filters", "filters", "-"], LOG.as_bytes());
    assert_eq!(ran.ok().notes(&["-: filter toy (Toy), by its first lines"]).json().len(), 3);
}

#[test]
fn what_cannot_be_read_is_reported_and_the_others_go_on() {
    let home = home();
    home.file("x.gz", [0x1f, 0x8b, 8, 0]);
    let arguments = ["filter", "try", "--filters", "filters", "none.log", ".", "x.gz", "toy.log"];
    home.run(&arguments).with_code(1).prints(&["events  3"]).notes(&[
        "none.log: there is no such file",
        "it is a folder",
        "zcat",
    ]);
    home.file("odd.txt", "nothing known 1\n[5] job 1 in by ann\n".repeat(20));
    home.run(&["filter", "try", "odd.txt"])
        .with_code(7)
        .notes(&["no filter reads odd.txt", "visperf filter new"]);
    home.run(&["filter", "try"]).with_code(2);
    for zone in [&["--zone", "-05:00"][..], &["--zone=-05:00"], &["--zone", "+05:00"], &["--zone", "UTC"]] {
        home.run(&[&["filter", "try", "--filters", "filters"][..], zone, &["toy.log"]].concat()).ok();
    }
    home.run(&["filter", "try", "--zone", "Moon/Base", "toy.log"]).with_code(2).notes(&["Europe/Rome"]);
}

#[test]
fn tests_of_filters_have_verdicts() {
    let home = home();
    home.run(&["filter", "test", "filters/toy.toml"])
        .ok()
        .prints(&["ok      filters/toy.toml:32  in", "toy: 1 test, all passed"]);
    let wrong = FILTER.replace("user = \"ann\" }]", "user = \"bob\" }]");
    home.file("wrong.toml", wrong);
    home.run(&["filter", "test", "wrong.toml"])
        .with_code(5)
        .prints(&["FAILED  wrong.toml:32  in", "user is `ann`, expected `bob`"]);
    let verdicts = home.run(&["filter", "test", "--json", "wrong.toml"]).with_code(5).json();
    assert_eq!((verdicts[0]["passed"].as_bool(), verdicts[0]["line"].as_u64()), (Some(false), Some(32)));
    home.file("refused.toml", FILTER.replace("'^ never'", "'^ (never'"));
    home.run(&["filter", "test", "refused.toml"]).with_code(6).notes(&[
        "refused.toml:31:9",
        "match = '^ (never'",
        "help:",
    ]);
    home.run(&["filter", "test", "slurmctld"]).ok().prints(&["slurmctld: ", "all passed"]);
}

#[test]
fn a_new_filter_works_at_once() {
    let home = home();
    let log = "Nov 20 12:00:01 host app: run 1 begins\nNov 20 12:00:02 host app: run 2 begins\n";
    home.file("app.log", log);
    home.run(&["filter", "new", "app", "app.log", "--output", "app.toml"]).ok().notes(&["wrote app.toml"]);
    home.run(&["filter", "test", "app.toml"]).ok().prints(&["app: 1 test, all passed"]);
    home.run(&["filter", "try", "--filter", "app.toml", "app.log"])
        .ok()
        .prints(&["message 2", "every line was taken"]);
    home.run(&["filter", "new", "app", "app.log", "-o", "app.toml"]).with_code(1).notes(&[
        "cannot write app.toml",
        "there is such a file already",
        "another name with --output",
        "filter try",
    ]);
    home.run(&["filter", "new", "Bad Name", "app.log"]).with_code(2);
}

#[test]
fn a_new_filter_reads_several_logs_of_a_product() {
    let home = home();
    home.file("appd.log", "261120 13:16:34 12 job 5 in\n261120 13:16:35 12 job 6 in\n");
    home.file("worker.log", "2026-11-20T13:16:36 ran 5 on wn01\n");
    home.run(&["filter", "new", "app", "appd.log", "worker.log", "-o", "app.toml"])
        .ok()
        .notes(&["visperf filter try --filter app.toml appd.log worker.log"]);
    home.run(&["filter", "test", "app.toml"]).ok().prints(&["app: 1 test, all passed"]);
    home.run(&["filter", "try", "--filter", "app.toml", "appd.log", "worker.log"])
        .ok()
        .prints(&["message 2"]);
    home.run(&["filter", "new", "app", "appd.log", "missing.log"])
        .with_code(1)
        .notes(&["cannot read missing.log"]);
    home.run(&["filter", "new", "app"]).with_code(2);
}

#[test]
fn a_reader_that_has_enough_ends_it_quietly() {
    let home = home();
    let line = "[100] job 1 in by ann\n";
    home.file("long.log", line.repeat(200_000));
    let mut child = home
        .command(&["filter", "try", "--json", "--filter", "filters/toy.toml", "long.log"])
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("job_submit"), "{first}");
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    let notes = String::from_utf8(ended.stderr).unwrap();
    assert!(!notes.contains("panic") && !notes.contains("error"), "{notes}");
}

#[test]
fn configuration_files_are_checked() {
    let home = home();
    home.file("good.toml", "[directory]\nsnapshot_secs = 5\n");
    home.run(&["config", "check", "good.toml"]).ok().prints(&["can be used (sections directory)"]);
    home.file("bad.toml", "[directory]\nsnapshot_sec = 5\n");
    home.run(&["config", "check", "bad.toml"])
        .with_code(6)
        .notes(&["bad.toml:2:1", "did you mean snapshot_secs"]);
    let refused = |text: &str, expected: &[&str]| {
        home.file("refused.toml", text);
        home.run(&["config", "check", "refused.toml"]).with_code(6).notes(expected)
    };
    let words = refused(
        "[sensor]\njournal_mib = \"much\"\n",
        &["refused.toml:2:15", "expected a whole number, 0 or more, found the text \"much\""],
    );
    assert!(!words.notes.contains("u64"), "{words:?}");
    let tail = "[sensor]\n[[sensor.tail]]\npath = \"/a.log\"\n[[sensor.tail]]\n";
    for (path, expected) in [
        ("here/x.log", "here/x.log is no whole path"),
        ("/logs/[ab.log", "cannot read the glob \"/logs/[ab.log\""),
        ("/logs/{a,b.log", "cannot read the glob \"/logs/{a,b.log\""),
    ] {
        refused(
            &format!("{tail}path = \"{path}\"\n"),
            &["refused.toml:5:8", expected, "whole path of a file"],
        );
    }
    refused("[sensor]\nfilters = [\"/etc\", \"own\"]\n", &["refused.toml:2:20", "own is no whole path"]);
    home.run(&["config", "check", "none.toml"]).with_code(6).notes(&["cannot be opened"]);
}

#[test]
fn completions_and_version_are_there() {
    let home = home();
    home.run(&["--version"]).ok().prints(&["visperf 0."]);
    home.run(&["--help"]).ok().prints(&["visperf filter try", "3  no daemon could be reached"]);
    home.run(&["completions", "bash"]).ok().prints(&["_visperf"]);
    home.run(&["no-such-command"]).with_code(2);
}

#[test]
fn advice_for_writers_of_filters_is_not_given_for_shipped_ones() {
    let home = home();
    let log = "[2026-11-20T12:24:17.446] sched: _slurm_rpc_allocate_resources JobId=1 NodeList=wn01 usec=5\n";
    home.file("slurmctld.log", log);
    for arguments in [&["slurmctld.log"][..], &["--filter", "slurmctld", "slurmctld.log"]] {
        let ran = home.run(&[&["filter", "try"], arguments].concat()).ok().prints(&["job_select"]);
        for advice in ["took no line", "no event has a call", "as `prefix` of"] {
            assert!(!ran.out.contains(advice), "{advice}: {}", ran.out);
        }
    }
    let asked = home.run(&["filter", "try", "--rules", "slurmctld.log"]).ok();
    asked.prints(&["rules of slurmctld"]);
}

#[test]
fn hosts_of_a_call_come_whole_into_a_pipe() {
    let home = home();
    let hosts: Vec<String> = (1..30).map(|number| format!("node{number:03}")).collect();
    home.file("toy.log", format!("[1] job 1 in by ann\n[2] job 1 out good on {}\n", hosts.join(",")));
    let ran = home.run(&["filter", "try", "--calls", "--filter", "filters/toy.toml", "toy.log"]).ok();
    assert!(
        ran.out.contains("node001") && ran.out.contains("node029") && !ran.out.contains('…'),
        "{}",
        ran.out
    );
}

#[test]
fn real_logs_are_read_where_they_are_at_hand() {
    let log =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../log-filters/logs/slurm/22.05.8-alpha/slurmctld.log");
    if !log.exists() {
        return;
    }
    let home = home();
    let log = log.to_str().unwrap();
    home.run(&["filter", "try", log]).ok().prints(&["filter slurmctld", "job_submit", "joined: "]);
    let events = home.run(&["filter", "try", "--json", log]).ok().json();
    assert!(events.len() > 500, "{}", events.len());
    assert!(events.iter().all(|event| event["line"].as_u64() > Some(0)));
    let host = Path::new(log).with_file_name("slurmd.wn01.log");
    let both = [log, host.to_str().unwrap()];
    let with_zones = |zones: &[&str]| home.run(&[&["filter", "try"], zones, &both[..]].concat());
    let apart = "slurmd.wn01.log is 2 hours earlier than";
    with_zones(&["--zone", "UTC", "--zone", "slurmd.wn01.log=+02:00"]).ok().prints(&[apart, "another zone"]);
    let right = with_zones(&["--zone", "+02:00"]).ok();
    assert!(!right.out.contains("earlier than"), "{}", right.out);
    with_zones(&["--zone", "slurmdbd.log=UTC"])
        .with_code(2)
        .notes(&["`slurmdbd.log`, which is none of the logs"]);
}
