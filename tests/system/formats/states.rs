//! Samples of state folders, and checks of their content.

use super::Sample;
use call_store::answer::Query;
use call_store::job_index::{IndexLimit, JobIndex};
use call_store::store::{CallLimit, CallStore};
use directory::snapshot::{self, Snapshot};
use log_filters::found::Change;
use log_filters::join::Joiner;
use log_filters::join::changes::CallChanges;
use overlay::domain::load_term;
use overlay::identity::domain_files::{DomainFiles, Error};
use overlay::identity::peer_clocks::Members;
use overlay::identity::refused::Refused;
use overlay::identity::trust::{Readers, Trust};
use overlay::identity::{command_files, key_file, member_files, signed_command};
use overlay::resolve::{Resolver, stored};
use proxy::account_file;
use sensor::job_series::piece;
use sensor::job_usage::worker;
use sensor::journal::fold::Replay;
use sensor::journal::frame::Record;
use sensor::journal::writer::Journal;
use sensor::process_history::minute::ProcessMinute;
use sensor::representative::replay::CallReplay;
use sensor::representative::store::writer::Store;
use sensor::segments::disk::Directory;
use sensor::segments::packed::directory::MAGIC;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::daily::DailyReader;
use store::query::By;
use store::reader::Selection;
use store::tier::Tier;
use store::tier_files::Limit;
use store::writer::Writer;
use wire::api::calls::CallsParams;
use wire::api::job_amount::{ByAmount, JobAmount, conditions};
use wire::api::job_index::DirectoryJobsParams;
use wire::call::job::Fact;
use wire::call::usage::Figure;
use wire::credential::{Role, Roles};
use wire::event::{Event, Id, Outcome};
use wire::id::{DomainName, SensorKey};
use wire::recording::Recording;
use wire::report::StoreKey;
use wire::report::calls::FetchCalls;
use wire::time::{Moment, Time};
use wire::version::*;

/// All state folders.
pub(super) const SAMPLES: &[Sample] = &[
    ("issuer", ISSUER, issuer),
    ("issuer-numbered", ISSUER, issuer),
    ("member", &[(PREVIOUS_CERTIFICATE, 1)], member),
    ("alone", ALONE, alone),
    ("alone-numbered", ALONE, alone),
    ("directory", &[(DIRECTORY_SNAPSHOT, 2)], directory_of_two),
    ("proxy", &[(ACCOUNTS, 1)], accounts),
    ("history", &[(HISTORY, 1)], history),
    ("history-compacted", &[(HISTORY, 2)], history),
    ("packed", &[(JOURNAL, 2)], packed),
    ("processes", &[(PROCESS_HISTORY, 1)], processes),
    ("job-usage", &[(JOB_USAGE, 1)], job_usage),
    ("job-series", &[(JOB_SERIES, 1)], job_series),
    ("calls", &[(CALL_HISTORY, 1)], calls),
    ("calls-copied", &[(CALL_HISTORY, 2)], calls),
    ("calls-filtered", &[(CALL_HISTORY, 3)], calls),
    ("calls-jobs", &[(CALL_HISTORY, 4)], calls_of_jobs),
    ("calls-amounts", &[(CALL_HISTORY, 5)], calls_of_jobs),
    ("job-index", &[(JOB_INDEX, 1)], job_index),
];

const ISSUER: &[(Format, u16)] = &[
    (KEY, 1),
    (ROOT_KEY, 1),
    (MEMBERSHIP, 1),
    (DENIALS, 1),
    (DELEGATION, 1),
    (BOOK, 1),
    (DENY_LIST, 1),
    (REPLACE_TOKENS, 1),
    (CLOCK, 1),
    (ELECTION, 1),
    (DOMAINS, 1),
    (JOURNAL, 1),
    (DOMAIN_STORE, 1),
];

const ALONE: &[(Format, u16)] =
    &[(ORDERS, 1), (ORDER_SEQUENCE, 1), (OPERATOR, 1), (RECORDING, 1), (JOURNAL, 1)];

/// Some minutes after the samples were created.
const NOW: Time = Time::from_micros(1_795_622_400_000_000);

fn domain(name: &str) -> DomainName {
    DomainName::try_from(name).unwrap()
}

/// History of `wn01`: 1,601 sweeps of about a minute each, with blocks of every tier and a log of the newest.
fn history(state: &Path) {
    let limit = Limit { bytes: 1 << 30, age: Duration::from_secs(1 << 32) };
    let writer = Writer::open(state, [limit; 3]).unwrap();
    let (since, until) = (Time::from_micros(0), Time::from_micros(i64::MAX));
    let selection = Selection { host: &|_| true, metric: &|metric| metric.name == "load", since, until };
    for (secs, tier) in [(60, Tier::Minute), (3600, Tier::Hour), (10, Tier::Raw)] {
        let step = Duration::from_secs(secs);
        let answer = writer.reader().steps(&selection, step, &By::Series, false, usize::MAX).unwrap();
        assert_eq!((answer.damaged, answer.parts[0].tier), (0, tier));
        let [(subject, points)] = answer.series.as_slice() else { panic!("{answer:?}") };
        assert_eq!(subject.host.as_ref().unwrap().as_str(), "wn01");
        assert_eq!(points.iter().map(|point| point.bucket.count).sum::<u64>(), 1601, "{tier:?}");
    }
}

/// Half a minute of a job that used a CPU for eight seconds.
fn job_series(state: &Path) {
    let mut found = Vec::new();
    let read = DailyReader::new(state, JOB_SERIES).each(NOW, Time::from_micros(i64::MAX), |_, bytes| {
        let pieces = piece::pieces(bytes).unwrap();
        found.extend(pieces.iter().map(|piece| (piece.whose.jobs[0].clone(), piece.points().unwrap())));
        true
    });
    assert_eq!(read.unwrap(), 0);
    let [(job, points)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((job.as_str(), points.len()), ("slurm:77", 30));
    assert!(points.is_sorted_by_key(|point| (point.time, point.cpu_us)));
    assert!((7_900_000..8_300_000).contains(&points[29].cpu_us) && points[9].memory_bytes > 0, "{points:?}");
}

/// Process history of ten minutes: in each, two processes used a second and two; one ended in the last.
/// A job that ran as the sensor was killed.
fn job_usage(state: &Path) {
    let (mut meter, boot) = worker::stored(state).unwrap().expect("a measurement");
    assert_eq!(boot.len(), 36, "{boot}");
    let [report] = meter.end_all().try_into().expect("one job");
    assert_eq!((report.measured.jobs[0].as_str(), report.measured.processes), ("slurm:77", 4));
    let [failed] = report.measured.failures.stated().try_into().expect("one failure");
    assert_eq!((failed.name.as_str(), failed.exit_status()), ("sh", Some(3)));
    let figures = report.measured.figures();
    assert!(figures.iter().any(|(figure, amount)| *figure == Figure::CpuTime && *amount > 0), "{figures:?}");
}

fn processes(state: &Path) {
    let mut minutes = Vec::new();
    let read = DailyReader::new(state, PROCESS_HISTORY).each(NOW, Time::from_micros(i64::MAX), |_, bytes| {
        minutes.extend(ProcessMinute::unpack(bytes));
        true
    });
    assert_eq!((read.unwrap(), minutes.len()), (0, 10));
    for (number, minute) in minutes.iter().enumerate() {
        let [first, second] = minute.rows.as_slice() else { panic!("{minute:?}") };
        assert_eq!((first.key.pid, first.cpu_ns, first.job.as_deref()), (1, 1_000_000_000, Some("slurm:17")));
        assert_eq!(
            (second.uid, second.command.as_str(), second.io_bytes),
            (1000, "work --hard", Some((5, 7)))
        );
        assert_eq!(second.end, (number == 9).then_some((5_000_000_000, 9)));
    }
}

/// Call history of three jobs of a Slurm, one of them failed and one a task of an array.
fn calls(state: &Path) {
    let store = CallStore::new(&state.join("calls.db"), CallLimit { bytes: 1 << 30, age: Duration::MAX });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ids = |params: CallsParams| {
        let page = runtime.block_on(store.page(Query::of_all(&params), None, 10)).unwrap();
        page.calls.iter().map(|call| call.id.to_string()).collect::<Vec<_>>()
    };
    // An older schema is brought up to date before it is read.
    let figures = runtime.block_on(store.apply(&CallChanges::default(), Time::default())).unwrap();
    assert!(figures.oldest.is_some_and(|oldest| oldest < NOW), "{figures:?}");
    let all = CallsParams::default();
    assert_eq!(ids(all.clone()), ["slurm:12_2", "slurm:11", "slurm:10"]);
    assert_eq!(ids(CallsParams { outcome: vec![Outcome::Failed], ..all.clone() }), ["slurm:11"]);
    assert_eq!(ids(CallsParams { job: Some("12".to_owned()), ..all.clone() }), ["slurm:12_2"]);
    assert_eq!(ids(CallsParams { on_host: Some("node04".to_owned()), ..all }), ["slurm:10"]);
    let wanted = FetchCalls { held: Vec::new(), len_bytes: u32::MAX };
    assert_eq!(runtime.block_on(store.following(&wanted)).unwrap().calls.len(), 3);
}

/// Four jobs of a domain, one of them failed, and how far its store was read.
fn job_index(state: &Path) {
    let limit = IndexLimit { bytes: 1 << 30, age: Duration::from_secs(1 << 31) };
    let index = JobIndex::new(&state.join("index.db"), limit);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ids = |params: DirectoryJobsParams| {
        let found = runtime.block_on(index.search(&params)).unwrap();
        assert_eq!((found.domains[0].domain.as_str(), found.domains[0].jobs), ("ALPHA", 4));
        found.jobs.into_iter().map(|job| job.id).collect::<Vec<_>>()
    };
    let all = DirectoryJobsParams::default();
    assert_eq!(ids(all.clone()), ["slurm:41", "slurm:42", "slurm:43", "slurm:44"]);
    assert_eq!(ids(DirectoryJobsParams { outcome: vec![Outcome::Failed], ..all }), ["slurm:42"]);
    let reached = runtime.block_on(index.reached(&domain("ALPHA"))).unwrap();
    assert_eq!((reached.len(), reached[0].store.len()), (1, 16));
}

/// The same calls, with what the log states of them: one was requeued.
fn calls_of_jobs(state: &Path) {
    calls(state);
    let store = CallStore::new(&state.join("calls.db"), CallLimit { bytes: 1 << 30, age: Duration::MAX });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let params = CallsParams { account: Some("bio".to_owned()), jobs_only: true, ..CallsParams::default() };
    let page = runtime.block_on(store.page(Query::of_all(&params), None, 10)).unwrap();
    let [call] = page.calls.as_slice() else { panic!("{page:?}") };
    let facts = [Fact::Queue, Fact::Cpus, Fact::Memory, Fact::Gpus].map(|fact| call.fact(fact).unwrap());
    assert_eq!(facts, ["gpu", "8", "17179869184", "2"]);
    let by = ByAmount { conditions: conditions("cpus >= 8").unwrap(), sort: Some(JobAmount::Ran) };
    let of_amount = Query { by: &by, ..Query::of_all(&params) };
    assert_eq!(runtime.block_on(store.page(of_amount, None, 10)).unwrap().calls, std::slice::from_ref(call));
    let details = call.details.as_deref().unwrap();
    assert_eq!((details.runs.len(), details.runs[0].hosts[0].as_str()), (1, "node02"));
    assert!(details.line(Fact::Queue).is_some_and(|line| line.event.offset > 0), "{details:?}");
}

/// State of the issuer of `UT-ICL` on `h1`, which admitted `h2` and `h3` and revoked `h3`; it read five lines
/// of a log, and knows `CERN`.
fn issuer(state: &Path) {
    let key = key_file::load(state).unwrap().unwrap();
    let membership = member_files::load_membership(state).unwrap().unwrap();
    let own = membership.certificate().unwrap();
    assert_eq!((own.host.to_string(), &own.domain), ("h1".to_owned(), &domain("UT-ICL")));
    assert_eq!(own.peer, key.peer());

    let files = DomainFiles::new(state, key.clone());
    let members = files.members(NOW).unwrap();
    let hosts: Vec<_> =
        members.iter().map(|member| (member.certificate.host.to_string(), member.denied)).collect();
    for host in [("h1", false), ("h2", false), ("h3", true)] {
        assert!(hosts.contains(&(host.0.to_owned(), host.1)), "{hosts:?}");
    }
    let tokens = files.tokens(NOW).unwrap();
    let patterns: Vec<_> = tokens.iter().map(|token| (token.hosts.clone(), token.uses)).collect();
    assert!(patterns.contains(&(Some(vec!["wn[0-9]*".to_owned()]), 0)), "{patterns:?}");
    assert!(patterns.contains(&(None, 2)), "{patterns:?}");
    match files.check_clock(NOW, Moment::default(), Members::Unknown) {
        Ok(()) | Err(Error::Refused(Refused::IssuerClock { .. })) => {}
        Err(error) => panic!("{error}"),
    }
    // Signed by the root key.
    let host = wire::id::HostName::try_from("ws1").unwrap();
    let roles = Roles::NONE.with(Role::Operator);
    files
        .certify(
            overlay::identity::key::Key::from_seed([7; 32]).peer(),
            host,
            roles,
            Duration::from_secs(60),
            NOW,
        )
        .unwrap();

    let trust = Trust::of_member(domain("UT-ICL"), own.root, Readers::Nobody);
    let (denials, _) = member_files::load_denials(state, &trust).unwrap();
    assert_eq!(denials.of(&domain("UT-ICL")).len(), 1);
    let persisted = load_term(state).unwrap();
    assert!(persisted.term.0 > 0 && persisted.incarnation > 0, "{persisted:?}");
    let mut resolver = Resolver::new(Vec::new(), 1);
    let bytes = fs::read(state.join(stored::FILE_NAME)).unwrap();
    assert!(resolver.take_back(&bytes, Moment::default(), NOW).unwrap() >= 1);
    assert!(resolver.knows(&domain("CERN")));

    assert_eq!(jobs(&journal(&state.join("sensor/journal"))), ["1", "2", "3", "4", "5"]);
    assert_eq!(jobs(&store(&state.join("sensor/domain"))), ["1", "2", "3", "4", "5"]);
}

/// State of `h2`, whose certificate was replaced by one that the root key signed.
fn member(state: &Path) {
    let membership = member_files::load_membership(state).unwrap().unwrap();
    let own = membership.certificate().unwrap();
    assert!(own.roles.has(Role::Operator), "{own:?}");
    let before = member_files::load_previous(state, &membership).unwrap().unwrap();
    let before = before.certificate.unverified().unwrap();
    assert_eq!((before.host.to_string(), before.peer), ("h2".to_owned(), own.peer));
    assert!(!before.roles.has(Role::Operator), "{before:?}");
}

/// State of a sensor outside any domain, which executed one signed command and recorded its processes.
fn alone(state: &Path) {
    assert_ne!(command_files::load_seen(state).unwrap(), signed_command::ReplayGuard::default());
    let next = command_files::next_sequence(state, Time::default()).unwrap();
    assert!(next > 1_795_000_000_000_000, "the number after the last one, not the first: {next}");
    let operator = command_files::load_operator(state).unwrap().unwrap();
    let certificate = operator.chain.certificate.unverified().unwrap();
    assert_eq!((certificate.peer, certificate.root), (operator.key.peer(), operator.root));
    let recordings = fs::read_dir(state.join("sensor/recordings")).unwrap();
    let paths = recordings.map(|entry| entry.unwrap().path());
    let path = paths.into_iter().find(|path| path.extension().is_some_and(|end| end == "vpr")).unwrap();
    let recording = Recording::read(&fs::read(path).unwrap()).unwrap();
    assert_eq!(recording.header.cause.note, "sample");
    assert_eq!(recording.damage, wire::recording::Damage::default());
    assert!(!recording.segments.is_empty() && recording.end.is_some());
    // The event of the audit trail.
    assert_eq!(journal(&state.join("sensor/journal")).len(), 1);
}

/// State of a sensor that compressed the first segment of its journal.
fn packed(state: &Path) {
    let folder = state.join("sensor/journal");
    let compressed = fs::read_dir(&folder).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
    assert_eq!(compressed.filter(|bytes| bytes.starts_with(&MAGIC)).count(), 1);
    let offsets: Vec<u64> = journal(&folder).iter().map(|event| event.id.offset).collect();
    assert_eq!(offsets, (0..600).map(|line| line * 100).collect::<Vec<_>>());
}

fn directory_of_two(state: &Path) {
    let path = state.join("directory").join(snapshot::FILE_NAME);
    let snapshot = Snapshot::read(&path).unwrap().unwrap();
    let mut domains: Vec<String> = snapshot.kept.iter().map(|kept| kept.domain.to_string()).collect();
    domains.sort();
    assert_eq!(domains, ["CERN", "UT-ICL"]);
    assert!(snapshot.kept.iter().all(|kept| kept.primary.is_some()));
}

fn accounts(state: &Path) {
    let accounts = account_file::read(state).unwrap().unwrap();
    assert_eq!((accounts.realm(), accounts.all().count()), ("visperf", 1));
    assert_eq!(accounts.get("ana").unwrap().grant.domains.to_string(), "UT-ICL");
}

/// Reads only the events of a journal.
struct Events;

impl Replay for Events {
    fn calls(&mut self, _: &[u8]) {}
    fn memory(&mut self, _: &[u8], _: &str, _: Vec<Change>) {}
    fn record(&mut self, _: Id, _: &Record) {}
}

fn journal(folder: &Path) -> Vec<Event> {
    let disk = Arc::new(Directory::new(folder.to_owned()).unwrap());
    let (journal, notes) =
        Journal::open(disk, sensor::journal::Config::default(), SensorKey(1), &mut Events).unwrap();
    assert_eq!(notes, Vec::<String>::new());
    assert_ne!(journal.state().head.sensor, SensorKey(1), "it goes on with its own key");
    journal.reader().read(0, usize::MAX, |_| true).unwrap().events
}

fn store(folder: &Path) -> Vec<Event> {
    let disk = Arc::new(Directory::new(folder.to_owned()).unwrap());
    let config = sensor::representative::store::Config::default();
    let mut joining = CallReplay(Joiner::default());
    let (store, notes) = Store::open(disk, config, StoreKey(1), &mut joining).unwrap();
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(store.ledger().members.len(), 2, "h1 and h2");
    let page = store.reader().read(0, usize::MAX, |_| true).unwrap();
    page.events.into_iter().map(|stored| stored.event).collect()
}

fn jobs(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| event.content.job.to_string()).collect()
}
