//! The query commands, with a daemon that returns canned answers.

use crate::program::{Home, Ran};
use crate::server::{Daemon, Events, event};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

fn daemon(count: usize) -> Daemon {
    let events = Events::default();
    events.lock().unwrap().extend((0..count).map(event));
    Daemon::start("127.0.0.1:0", &events)
}

fn ask(daemon: &Daemon, arguments: &[&str]) -> Ran {
    let address = daemon.connect();
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--connect", &address]).collect();
    Home::new().run(&arguments)
}

#[test]
fn events_are_read_page_by_page() {
    let daemon = daemon(2_500);
    let events = ask(&daemon, &["events", "--json"]).ok().json();
    let ids: Vec<String> = events.iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, (0..2_500).map(|number| format!("e-{number}")).collect::<Vec<_>>());
    let rows = ask(&daemon, &["events", "--cursor", "0", "--limit", "3"]).ok();
    let rows =
        rows.prints(&["2026-11-20T12:41:29.500Z  job_start", "müller", "-> wn01"]).notes(&["1 event missed"]);
    assert_eq!(rows.out.lines().count(), 3);
    let rest = ask(&daemon, &["events", "--json", "--cursor", "2498"]).ok().json();
    assert_eq!(rest.len(), 2);
}

#[test]
fn the_events_of_an_answer_are_sorted_by_their_time() {
    let events = Events::default();
    events.lock().unwrap().extend([3, 1, 2].map(event));
    let daemon = Daemon::start("127.0.0.1:0", &events);
    for arguments in [&["events", "--json"][..], &["events", "--json", "--limit", "3"]] {
        let events = ask(&daemon, arguments).ok().json();
        let ids: Vec<&str> = events.iter().map(|event| event["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["e-1", "e-2", "e-3"], "{arguments:?}");
    }
}

#[test]
fn a_limit_means_the_newest_events_oldest_first() {
    let daemon = daemon(2_500);
    let ids = |arguments: &[&str]| -> Vec<String> {
        let arguments: Vec<&str> = ["events", "--json", "--limit"].iter().chain(arguments).copied().collect();
        let events = ask(&daemon, &arguments).ok().json();
        events.iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&["2"]), ["e-2498", "e-2499"]);
    assert_eq!(ids(&["2", "--cursor", "7"]), ["e-7", "e-8"]);
    assert_eq!(ids(&["2000"]).len(), 2_000, "more than a page");
    assert_eq!(ids(&["2", "--job", "17"]), ["e-17"]);
    ask(&daemon, &["events", "--limit", "2", "--user", "nobody"]).ok().notes(&["no event fits"]);
    ask(&daemon, &["events", "--limit", "10001"]).with_code(2).notes(&["at most 10000", "--since"]);
    let none = ["events", "--limit", "2", "--user", "unknown", "--regex", "job_end"];
    ask(&daemon, &none).ok().notes(&["not on its name and the kind"]);
    ask(&daemon, &["events", "--regex", "wn(0"])
        .with_code(2)
        .notes(&["regular expression", "unclosed group"]);
}

#[test]
fn answers_are_tables_or_json() {
    let daemon = daemon(0);
    ask(&daemon, &["hosts"]).ok().prints(&["HOST", "wn01", "0.50", "2.0 GiB"]);
    ask(&daemon, &["hosts"]).ok().prints(&["\nwn01: no daemon lets this one in: revoked\n"]);
    assert_eq!(ask(&daemon, &["hosts", "--json"]).ok().json()[0]["host"], "wn01");
    ask(&daemon, &["calls", "--in", "ended"])
        .ok()
        .prints(&["slurm:1", "ok", "5m", "wn01,wn02"])
        .notes(&["2 of 7 calls"]);
    ask(&daemon, &["metrics"]).ok().prints(&["wn01  node_big_total  9007199254740993  total  device=sda"]);
    for bound in [["--since", "10m"], ["--until", "1m"]] {
        ask(&daemon, &[&["metrics"][..], &bound].concat())
            .ok()
            .prints(&["2026-11-20T12:41:29", "  41  total"]);
    }
    ask(&daemon, &["metrics", "node_bg_total"]).with_code(2).notes(&["did you mean node_big_total?"]);
    ask(&daemon, &["metrics", "node_b?g"]).ok().notes(&["no metric fits"]);
    ask(&daemon, &["call", "domain.host"]).with_code(4).notes(&["did you mean domain.hosts?"]);
    ask(&daemon, &["resolve", "UT-ICL"]).ok().prints(&["rep", "7317"]);
    let line = |name: &str, value: &str| format!("\n{name:<32}{value}");
    ask(&daemon, &["info"]).ok().prints(&[
        &line("uptime", "5m"),
        &line("problem", "the disk is full"),
        "\n  sensor\n",
        &line("    events_total", "7"),
        &line("    lines_total", "9"),
    ]);
}

#[test]
fn any_method_is_called_by_xml_rpc() {
    let daemon = daemon(2);
    let answer = ask(&daemon, &["call", "domain.events", "limit=1", "--compact"]).ok().json();
    assert_eq!(
        (answer[0]["cursor"].as_str(), answer[0]["events"][0]["user"].as_str()),
        (Some("1"), Some("müller"))
    );
    let answer = ask(&daemon, &["call", "domain.metrics", "{\"limit\": 5}", "--compact"]).ok().json();
    assert_eq!(answer[0]["metrics"][0]["value"].as_i64(), Some(9_007_199_254_740_993));
    ask(&daemon, &["call", "system.listMethods"]).ok().prints(&["\"domain.hosts\""]);
    ask(&daemon, &["call", "no.such"]).with_code(4).notes(&["-32601"]);
    ask(&daemon, &["call", "domain.events", "limit"])
        .with_code(2)
        .notes(&["NAME=VALUE", "methodHelp name=domain.events"]);
    ask(&daemon, &["call", "system.methodHelp", "x"]).with_code(2).notes(&["methodHelp name=x"]);
    let help = ask(&daemon, &["call", "system.methodHelp", "name=daemon.info"]).ok();
    assert!(help.out.starts_with("canned") && help.out.lines().count() > 1, "{help:?}");
}

#[test]
fn faults_have_their_exit_code() {
    let daemon = daemon(0);
    ask(&daemon, &["resolve", "none"]).with_code(4).notes(&["no domain of this name (fault -32010)"]);
    ask(&daemon, &["filters"]).with_code(4).notes(&["no method"]);
    ask(&daemon, &["events", "--kind", "nonsense"]).with_code(2).notes(&["job_submit"]);
    ask(&daemon, &["events", "--since", "tomorrow"]).with_code(2).notes(&["2026-11-20T"]);
}

#[test]
fn a_state_of_calls_is_no_state_folder() {
    let home = Home::new();
    home.run(&["calls", "--in", "runing"]).with_code(2).notes(&["waiting, running, ended", "'running'"]);
    for (mistaken, meant) in [
        ("running", "was visperf calls --in running meant?"),
        ("failed", "--outcome failed"),
        ("runing", "waiting, running, ended"),
    ] {
        home.run(&["calls", "--state", mistaken]).with_code(2).notes(&["no folder", meant]);
    }
    home.run(&["calls", "--outcome", "okay"]).with_code(2).notes(&["node_fail"]);
    home.run(&["hosts", "--state", "nowhere"]).with_code(3).notes(&["nowhere: there is no such folder"]);
}

#[test]
fn bounds_between_which_nothing_lies_are_refused() {
    let home = Home::new();
    for command in ["events", "calls", "metrics"] {
        let inverted = ["--since", "2026-11-20T12:30:00Z", "--until", "2026-11-20T12:00:00Z"];
        let arguments = [&[command], &inverted[..]].concat();
        home.run(&arguments).with_code(2).notes(&["--since", "is later than --until", "exchange the two"]);
    }
}

#[test]
fn where_no_event_fits_it_is_said() {
    let daemon = daemon(10);
    let none = ask(&daemon, &["events", "--user", "nobody"]).ok().notes(&["no event fits"]);
    assert_eq!(none.out, "");
    for quiet in [&["events", "--json", "--user", "nobody"][..], &["events"]] {
        assert!(!ask(&daemon, quiet).ok().notes.contains("no event fits"), "{quiet:?}");
    }
}

#[test]
fn events_are_chosen_by_job_user_and_host() {
    let daemon = daemon(2_500);
    let ids = |arguments: &[&str]| -> Vec<String> {
        let arguments: Vec<&str> = ["events", "--json"].iter().chain(arguments).copied().collect();
        let events = ask(&daemon, &arguments).ok().json();
        events.iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&["--job", "2400"]), ["e-2400"]);
    assert_eq!(ids(&["--user", "müller", "--host", "wn01", "--limit", "2"]), ["e-2498", "e-2499"]);
    assert_eq!(ids(&["--user", "nobody"]), Vec::<String>::new());
    assert_eq!(ids(&["--host", "wn01", "--cursor", "2498"]), ["e-2498", "e-2499"]);
}

#[test]
fn a_daemon_of_another_kind_says_which_one_to_ask() {
    let daemon = Daemon::directory();
    for command in ["hosts", "files", "events", "calls"] {
        ask(&daemon, &[command])
            .with_code(4)
            .notes(&["this daemon is a directory", "visperf resolve DOMAIN"]);
    }
    ask(&daemon, &["call", "domain.hosts"]).with_code(4).notes(&["this daemon is a directory"]);
}

#[test]
fn documents_name_the_port_where_daemons_answer() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let usual = format!("127.0.0.1:{}", rpc::http::config::PORT_DEFAULT);
    let tunnel = "127.0.0.1:7327";
    assert!(Home::new().run(&["tunnel", "--help"]).ok().out.contains(&format!("default: {tunnel}")));
    let mut named = 0;
    for folder in ["", "docs", "deploy"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let Some(text) = path.is_file().then(|| std::fs::read_to_string(&path).ok()).flatten() else {
                continue;
            };
            for (at, _) in text.match_indices("127.0.0.1:") {
                let address: String =
                    text[at..].chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect();
                // Packaged daemons listen next to each other: the ports between theirs are the overlay's.
                let ports_after: &[u16] = match path.file_name().and_then(|name| name.to_str()) {
                    Some("visperf-directory.service") => &[2],
                    Some("visperf-proxy.service") => &[6],
                    Some("service.md") => &[0, 2, 6],
                    _ => &[0],
                };
                let expected = |after| format!("127.0.0.1:{}", rpc::http::config::PORT_DEFAULT + after);
                let address = address.trim_end_matches(['.', ':']);
                let is_expected = ports_after.iter().any(|after| address == expected(*after));
                assert!(is_expected || address == tunnel, "{}: {address}", path.display());
                named += 1;
            }
        }
    }
    assert!(named > 10, "only {named} addresses found");
    assert!(Home::new().run(&["up", "--help"]).ok().out.contains(&format!("default: {usual}")));
    assert!(Home::new().run(&["info", "--help"]).ok().out.contains(&usual));
}

#[test]
fn where_no_daemon_is_the_hint_says_how_to_reach_one() {
    let home = Home::new();
    let run = |arguments: &[&str]| {
        home.run(arguments).with_code(3).notes(&["no daemon could be reached", "visperf up"])
    };
    run(&["hosts", "--connect", "127.0.0.1:1"]).notes(&["127.0.0.1:1 (as given)"]);
    run(&["call", "daemon.info", "--connect", "127.0.0.1:1"]);
    run(&["events", "--follow", "--connect", "127.0.0.1:1"]);
    home.file("state/visperf/listen", "127.0.0.1:2\n");
    home.file("other/listen", "127.0.0.1:3\n");
    run(&["hosts", "--state", "other"]).notes(&["127.0.0.1:3 (from other/listen)"]);
    home.run(&["hosts", "--connect", "nonsense:"]).with_code(2).notes(&["HOST:PORT"]);
}

#[test]
fn the_daemon_of_the_state_folder_is_found() {
    let daemon = daemon(0);
    let home = Home::new();
    home.file("state/visperf/listen", format!("{}\n", daemon.connect()));
    home.run(&["hosts"]).ok().prints(&["wn01"]);
    home.file("own/listen", format!("{}\n", daemon.connect()));
    home.run(&["calls", "--state", "own", "--in", "ended"]).ok().prints(&["slurm:1"]);
    let mut with_variable = home.command(&["hosts", "--json"]);
    let output = with_variable.env("VISPERF_CONNECT", daemon.connect()).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_wait_for_a_daemon_that_hangs_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let home = Home::new();
    let mut child = home.command(&["hosts", "--connect", &address]).spawn().unwrap();
    let mut note = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut note).unwrap();
    assert!(note.contains(&format!("waiting for {address} to answer")) && note.contains("Ctrl-C"), "{note}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn something_else_that_answers_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH_9\r\n").unwrap();
        let mut request = BufReader::new(stream);
        while request.read_until(b'\n', &mut Vec::new()).is_ok_and(|read| read > 0) {}
    });
    let home = Home::new();
    home.run(&["hosts", "--connect", &address]).with_code(1).notes(&["SSH", "not HTTP"]);
    other.join().unwrap();
}

#[test]
fn a_reader_of_events_that_has_enough_ends_it_quietly() {
    let daemon = daemon(100_000);
    let home = Home::new();
    let mut child = home.command(&["events", "--connect", &daemon.connect()]).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8(ended.stderr).unwrap().as_str()), (Some(0), ""));
}

#[test]
fn a_connection_that_was_closed_while_idle_is_made_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let page = |events: Vec<usize>| {
        let events = events.into_iter().map(event).collect();
        serde_json::to_string(&wire::api::events::Events {
            events,
            cursor: "1".to_owned(),
            ..Default::default()
        })
    };
    let pages = [page(vec![0]).unwrap(), page(Vec::new()).unwrap()];
    let closing = std::thread::spawn(move || pages.map(|page| answer_once(&listener, &page)));
    let events = Home::new().run(&["events", "--json", "--connect", &address]).ok();
    assert_eq!((events.json().len(), events.notes.as_str()), (1, ""));
    let asked = closing.join().unwrap();
    assert!(asked[0].contains(r#""cursor":"""#) && asked[1].contains(r#""cursor":"1""#), "{asked:?}");
}

/// Answer one request as if more could follow, then close; returns the request's body.
fn answer_once(listener: &TcpListener, page: &str) -> String {
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = BufReader::new(stream.try_clone().unwrap());
    let (mut line, mut length) = (String::new(), 0);
    while line != "\r\n" {
        line.clear();
        request.read_line(&mut line).unwrap();
        length = line.strip_prefix("content-length: ").map_or(length, |value| value.trim().parse().unwrap());
    }
    let mut body = vec![0; length];
    request.read_exact(&mut body).unwrap();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{page}", page.len()).unwrap();
    String::from_utf8(body).unwrap()
}

#[test]
fn calls_are_asked_for_page_by_page_and_gone_on_from_a_cursor() {
    let daemon = Daemon::paged();
    let home = Home::new();
    let connect = daemon.connect();
    let run = |more: &[&str]| home.run(&[&["calls", "--json", "--connect", &connect][..], more].concat());
    let ids =
        |ran: &Ran| ran.json().iter().map(|call| call["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let all = run(&[]).ok();
    assert_eq!(ids(&all), ["slurm:10", "slurm:20", "slurm:30", "slurm:40", "slurm:50"]);
    assert_eq!(all.notes, "", "nothing is left out");
    let first = run(&["--limit", "3"]).ok().notes(&["3 of 5 calls; --limit 5 shows all, --cursor 3"]);
    assert_eq!(ids(&first), ["slurm:10", "slurm:20", "slurm:30"]);
    assert_eq!(ids(&run(&["--limit", "3", "--cursor", "3"]).ok()), ["slurm:40", "slurm:50"]);
}

#[test]
fn an_unknown_call_is_a_mistake_with_near_names() {
    let daemon = Daemon::paged();
    let home = Home::new();
    let run = |id: &str| home.run(&["calls", "--call", id, "--connect", &daemon.connect()]);
    run("slrum:10").with_code(2).notes(&["no call is named slrum:10; did you mean slurm:10"]);
    run("10").with_code(2).notes(&["`visperf calls --job 10` finds the number"]);
    run("none:*").ok().notes(&["no call fits"]);
    run("slurm:10").ok().prints(&["slurm:10"]);
    let by_job = |job: &str| home.run(&["calls", "--job", job, "--connect", &daemon.connect()]);
    by_job("slrum:10").with_code(2).notes(&["did you mean slurm:10"]);
}
