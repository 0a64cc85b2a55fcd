//! Scripts that do what they should, and scripts that do what they should not.

use super::super::fields::process::Processes;
use super::*;
use wire::channel::stream::Record;
use wire::process::{Process, ProcessKey};

fn clock() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).expect("not negative"),
        u32::try_from(time.tv_nsec).expect("nanoseconds"),
    )
}

fn records(shares: &[f64]) -> Vec<Record> {
    let record = |(pid, share): (u32, &f64)| Record {
        process: Process {
            key: ProcessKey { pid, start_ns: 0 },
            name: "worker".into(),
            ..Process::default()
        },
        cpu: Some(*share),
    };
    (1..).zip(shares).map(record).collect()
}

fn script(text: &str) -> Script<Processes> {
    Script::<Processes>::new(text, clock).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn run(text: &str, shares: &[f64]) -> Result<Outcome, Error> {
    let input = records(shares);
    let (outcome, same) = script(text).run(input.clone(), 1.0)?;
    assert_eq!(same, input);
    Ok(outcome)
}

fn figures(of: &[(&str, f64)]) -> Outcome {
    Outcome::Figures(of.iter().map(|(name, value)| ((*name).into(), *value)).collect())
}

#[test]
fn its_result_says_what_is_sent() {
    let check =
        |text: &str, expected: Outcome| assert_eq!(run(text, &[0.5, 2.0, 1.5]), Ok(expected), "{text}");
    check("", Outcome::Pass);
    check("true", Outcome::Pass);
    check("records.len() > 3", Outcome::Hold);
    check(
        "let busy = []; for one in records { if one.cpu > 1.0 { busy.push(one); } } busy",
        Outcome::Only(vec![1, 2]),
    );
    check(
        "#{ total: records.sum(\"cpu\"), most: records.max(\"cpu\"), count: records.len() }",
        figures(&[("count", 3.0), ("most", 2.0), ("total", 4.0)]),
    );
    check("records.mean(\"cpu\") - records.min(\"cpu\")", figures(&[("value", 4.0 / 3.0 - 0.5)]));
    check("records[0].name == \"worker\" && records[0].read_bytes == ()", Outcome::Pass);
}

/// In a first sample the CPU usage of processes may be unknown.
#[test]
fn what_is_not_known_is_left_out() {
    let mut input = records(&[0.0, 0.0]);
    input.iter_mut().for_each(|record| record.cpu = None);
    let check = |text: &str, expected: Result<Outcome, &str>| {
        let outcome = script(text).run(input.clone(), 1.0).map(|(outcome, _)| outcome);
        match expected {
            Ok(expected) => assert_eq!(outcome, Ok(expected), "{text}"),
            Err(expected) => {
                let error = outcome.expect_err(text).to_string();
                assert!(error.contains(expected), "{text}: {error}");
            }
        }
    };
    check("#{ mean: records.mean(\"cpu\"), count: records.len() }", Ok(figures(&[("count", 2.0)])));
    check("#{ mean: records.mean(\"cpu\"), most: records.max(\"cpu\") }", Ok(Outcome::Hold));
    check("let s = 0.0; for one in records { s += one.cpu ?? 0.5; } s", Ok(figures(&[("value", 1.0)])));
    check("#{ count: 1, name: records[0].name }", Err("found string as \"name\" of the map"));
}

#[test]
fn it_keeps_a_window_from_sample_to_sample() {
    let window = "let w = state.window ?? []; w.push(records.sum(\"cpu\")); if w.len() > 4 { w.shift(); } state.window = w; \
                  let sum = 0.0; for x in w { sum += x; } sum / w.len()";
    let mut script = script(window);
    let mut results = Vec::new();
    for share in [1.0, 2.0, 3.0, 4.0, 5.0, 6.0] {
        match script.run(records(&[share]), 1.0) {
            Ok((Outcome::Figures(figures), _)) => results.push(figures[0].1),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(results, [1.0, 1.5, 2.0, 2.5, 3.5, 4.5]);
}

#[test]
fn what_does_not_end_is_ended() {
    for text in [
        "loop {}",
        "while true { let a = 1; }",
        "fn f(n) { let i = 0; while i < n { i += 1; } f(n) } f(1000000)",
        "for i in 0..1000000000 {}",
        // Each operation is long: an array is copied and counted.
        "let a = []; a.pad(1000, 0); loop { let b = a; b[0] = a.len(); a = b; }",
        "let a = \"\"; a.pad(4000, 'x'); loop { let b = a + \"y\"; b.replace(\"x\", \"z\"); }",
        "let a = []; a.pad(1000, 0); loop { a.sort(|a, b| b - a); }",
    ] {
        let mut script = script(text);
        let started = clock();
        assert_eq!(
            script.run(records(&[1.0]), 1.0).map(|(outcome, _)| outcome),
            Err(Error::Endless),
            "{text}"
        );
        let took = clock() - started;
        assert!(took < Duration::from_millis(500), "{text} took {took:?}");
    }
}

#[test]
fn what_grows_is_bounded() {
    // On a stack as small as that of the thread that sweeps.
    let small = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        for text in [
            "let a = []; loop { a.push(1); }",
            "let a = \"x\"; loop { a += a; }",
            "let a = #{}; let i = 0; loop { i += 1; a[i.to_string()] = i; }",
            "let a = []; loop { a = [a]; }",
            "let a = #{}; loop { a = #{ a: a }; }",
            "loop { state = #{ a: state }; }",
            "loop { let b = state; state.a = b; }",
            "fn f(n) { f(n + 1) } f(0)",
            "let a = []; a.pad(100000, 0);",
            "let a = \"\"; a.pad(100000, 'x');",
        ] {
            let result = script(text).run(records(&[1.0]), 1.0);
            assert!(result.is_err(), "{text} gives {result:?}");
        }
        // A value that is nested a little deeper at each run.
        let mut deeper = script("state = #{ a: state };");
        let last = (0..5000).find_map(|_| deeper.run(Vec::new(), 1.0).err());
        assert!(last.is_some(), "it stops somewhere");
    });
    small.expect("a thread").join().expect("the stack holds");
}

#[test]
fn there_is_no_way_out() {
    for text in [
        "eval(\"1\")",
        "print(1)",
        "debug(1)",
        "import \"a\" as a;",
        "sleep(10)",
        "exit()",
        "timestamp()",
        "parse_json(\"1\")",
        "open(\"/etc/passwd\")",
    ] {
        let refused = Script::<Processes>::new(text, clock).map(|mut script| script.run(Vec::new(), 1.0));
        assert!(!matches!(refused, Ok(Ok(_))), "{text}");
    }
}

#[test]
fn what_it_keeps_holds_on_to_no_sample() {
    let error = run("state.first = records[0];", &[1.0]).expect_err("it keeps a process");
    assert!(error.to_string().contains("state: expected a map of numbers"), "{error}");
    assert!(run("state.all = [#{ a: records }];", &[1.0]).is_err());
    assert!(run("state = 1;", &[1.0]).is_err());
    assert_eq!(run("state.a = [1, 2.5, \"x\", #{ b: () }]; true", &[1.0]), Ok(Outcome::Pass));
}

#[test]
fn mistakes_are_reported_with_their_place() {
    let error = Script::<Processes>::new("let a = ;", clock).expect_err("no expression").to_string();
    assert!(error.contains("line 1, position 9"), "{error}");
    let error = run("\nrecords[5]", &[1.0]).expect_err("no such place").to_string();
    assert!(error.contains("expected a place below 1, found 5") && error.contains("line 2"), "{error}");
    let error = run("records[0].rss", &[1.0]).expect_err("no such field").to_string();
    assert!(error.contains("known are cpu"), "{error}");
    assert!(run("\"text\"", &[1.0]).is_err());
    assert!(run("[1]", &[1.0]).is_err());
    let long = " ".repeat(SCRIPT_LEN_MAX_BYTES + 1);
    assert_eq!(
        Script::<Processes>::new(&long, clock).map(|_| ()),
        Err(Error::Length(SCRIPT_LEN_MAX_BYTES + 1))
    );
}
