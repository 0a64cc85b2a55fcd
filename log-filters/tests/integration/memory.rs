//! Memory of calls, counted at the allocator: 20,000 of them, waiting, running and ended.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic, and prints its figures")]

use allocation_counter::measure;
use log_filters::found::Found;
use log_filters::join::{CALLS_DEFAULT, Joiner};
use wire::call::{Authority, Keys, Naming};
use wire::event::{Content, Id, Kind, Outcome, Value};
use wire::id::{Generation, SensorKey};
use wire::time::Time;

/// Most bytes a call of two names, with a host, a user and a name takes, all indexes counted.
const CALL_LEN_MAX_BYTES: u64 = 1_020;

fn event(number: u64, kind: Kind, secs: i64, naming: Naming) -> Found {
    let mut content = Content::new(kind, Time::from_micros((1_795_176_000 + secs) * 1_000_000));
    let job = format!("{}_{}", 4_000_000 + number / 10, number % 10);
    content.job = job.as_str().into();
    content.user = "someone".into();
    content.attributes.push(("name".into(), Value::Text("a name of a job, as users give it".into())));
    if kind != Kind::JobSubmit {
        let host = format!("node{:04}.cluster.example.org", number % 1_000);
        content.attributes.push(("host".into(), Value::Text(host.as_str().into())));
    }
    content.outcome = (kind == Kind::JobEnd).then_some(Outcome::Ok);
    let names = match naming {
        Naming::Shared => vec!["dgesv()".into()],
        Naming::Unique | Naming::Part => vec![job.as_str().into(), (4_000_000 + number).to_string().into()],
    };
    let keys = Keys {
        scope: "slurm/alpha".into(),
        names,
        parent: (naming == Naming::Part).then(|| (4_000_000 + number / 10).to_string().into()),
        naming,
        authority: Authority::Scheduler,
    };
    Found { offset: secs.unsigned_abs(), number: 0, content, keys: Some(keys) }
}

/// Bytes per call when the maximum number is stored, and more were joined.
fn bytes_a_call(kinds: &[Kind], naming: Naming) -> u64 {
    let mut joiner = Joiner::default();
    let taken = measure(|| {
        for number in 0..CALLS_DEFAULT as u64 + 500 {
            for (step, kind) in (0..).zip(kinds) {
                let found = event(number, *kind, i64::try_from(number).unwrap() * 10 + step, naming);
                let id =
                    Id { sensor: SensorKey(1), generation: Generation(1), offset: found.offset, number: 0 };
                joiner.join(&found, id);
            }
        }
    });
    assert_eq!(joiner.len(), CALLS_DEFAULT);
    let freed = measure(|| drop(joiner));
    let left = taken.bytes_current + freed.bytes_current;
    assert!(left < 100_000, "{left} bytes are left of a joiner that is gone");
    u64::try_from(taken.bytes_current).unwrap() / CALLS_DEFAULT as u64
}

#[test]
fn twenty_thousand_calls_stay_within_their_memory() {
    use Kind::{JobEnd, JobSelect, JobStart, JobSubmit};
    for (what, kinds, naming) in [
        ("waiting", &[JobSubmit][..], Naming::Unique),
        ("running", &[JobSubmit, JobSelect, JobStart], Naming::Unique),
        ("ended", &[JobSubmit, JobSelect, JobStart, JobEnd], Naming::Unique),
        ("tasks", &[JobSubmit, JobSelect, JobStart, JobEnd], Naming::Part),
        ("of one name", &[JobSubmit, JobSelect, JobEnd], Naming::Shared),
    ] {
        let bytes = bytes_a_call(kinds, naming);
        println!("{what:12} {bytes} bytes a call");
        assert!(bytes <= CALL_LEN_MAX_BYTES, "{what}: {bytes} bytes a call");
        // The counter works: the fields of a call alone need more than this.
        assert!(bytes >= 300, "{what}: {bytes} bytes a call");
    }
}
