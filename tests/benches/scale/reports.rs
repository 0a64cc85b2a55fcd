//! Reports of members to their representative: the real sender, table and store, with the bytes passed in
//! memory.

use sensor::report::sender::{Identity, JournalRange, Sender};
use sensor::representative::domain::{Config, Domain, Link, Now, Output};
use sensor::sample::table::{Rows, metric};
use sensor::segments::disk::Directory;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use wire::credential::Serial;
use wire::id::{HostName, PeerKey, SensorKey};
use wire::report::StoreKey;
use wire::report::marks::MarkList;
use wire::sample::Semantics;
use wire::time::{Moment, Time};

/// Reports of a domain over a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reported {
    pub(crate) samples: u64,
    /// Batches of bytes that members sent: one each second, and the hello.
    pub(crate) batches: u64,
    pub(crate) bytes: u64,
    pub(crate) longest: u64,
    /// Messages that the representative sent back.
    pub(crate) answers: u64,
    pub(crate) answer_bytes: u64,
}

struct Reporting {
    domain: Domain,
    members: BTreeMap<Link, Sender>,
    reported: Reported,
    _folder: TempDir,
}

/// Run `hosts` members with `metrics` metrics each, sampled once a second for `seconds`; returns the first
/// second, which includes the names, and the others.
pub(crate) fn run(hosts: u32, metrics: u64, seconds: u64) -> (Reported, Reported) {
    let mut reporting = Reporting::new(hosts);
    let named = |at: u64| {
        let name = format!("node_metric_{at}_total");
        metric(&name, "bytes", Semantics::Counter, &[("device", "d0")])
    };
    let metrics: Vec<_> = (0..metrics).map(named).collect();
    let mut first = Reported::default();
    let mut rows: Vec<Rows> = (0..hosts).map(|_| Rows::default()).collect();
    for second in 0..seconds {
        for (nth, (sender, rows)) in (0u64..).zip(reporting.members.values_mut().zip(&mut rows)) {
            for (at, metric) in (0u64..).zip(&metrics) {
                // A third idle, a third steady, a third noisy.
                let noise = (second * 7919 + at * 104_729 + nth * 1_299_709) % 65_536;
                rows.push_whole(
                    metric,
                    [at * 1000, second * at, second * 100_000 + noise][usize::from(at as u8 % 3)],
                );
            }
            let micros = i64::try_from(second * 1_000_000).expect("small");
            sender.handle_sweep(&rows.finish(Time::from_micros(micros)));
        }
        reporting.exchange(second);
        if second == 0 {
            first = std::mem::take(&mut reporting.reported);
        }
    }
    let samples = reporting.domain.counts().samples_total;
    first.samples = u64::from(hosts) * metrics.len() as u64;
    reporting.reported.samples = samples - first.samples;
    (first, reporting.reported)
}

impl Reporting {
    fn new(hosts: u32) -> Reporting {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = Arc::new(Directory::new(folder.path().to_owned()).expect("the folder is there"));
        let (mut domain, _) = Domain::open(disk, Config::default(), StoreKey(1)).expect("an empty store");
        let mut members = BTreeMap::new();
        for nth in 0..hosts {
            let host = HostName::try_from(format!("wn{nth:04}.site.example").as_str()).expect("a name");
            let identity = Identity {
                program: "scale".into(),
                sensor: SensorKey(u64::from(nth) + 1),
                host: host.clone(),
                hosts: Vec::new(),
                boot: "boot".into(),
                started: Time::from_micros(1),
                stores: wire::report::Stores::default(),
            };
            let mut sender = Sender::new(identity, MarkList::default());
            sender.connect(JournalRange { oldest: 0, next: 0, acknowledged: None }, Time::default());
            let mut peer = [0; 32];
            peer[..4].copy_from_slice(&nth.to_le_bytes());
            let link =
                domain.connect((PeerKey(peer), Serial(0)), host, Moment::default()).expect("there is room");
            members.insert(link, sender);
        }
        let mut reporting = Reporting { domain, members, reported: Reported::default(), _folder: folder };
        reporting.exchange(0);
        reporting
    }

    /// Exchange all pending bytes in both directions; received events are committed and acknowledged.
    fn exchange(&mut self, second: u64) {
        let moment = Moment(Duration::from_secs(second));
        let now = Now { moment, wall: Time::default().plus(moment.0) };
        for (link, sender) in &mut self.members {
            let len = sender.output().len();
            if len == 0 {
                continue;
            }
            self.domain.handle_bytes(*link, sender.output(), now);
            sender.consume(len);
            self.reported.batches += 1;
            self.reported.bytes += len as u64;
            self.reported.longest = self.reported.longest.max(len as u64);
        }
        if let Some(mut commit) = self.domain.take_commit().expect("the disk is well") {
            commit.run().expect("the disk is well");
            self.domain.handle_committed(commit);
        }
        while let Some(output) = self.domain.poll_output() {
            match output {
                Output::Send(link, bytes) => {
                    self.domain.handle_written(link);
                    self.reported.answers += 1;
                    self.reported.answer_bytes += bytes.len() as u64;
                    let sender = self.members.get_mut(&link).expect("it connected");
                    sender.handle_bytes(&bytes).expect("the representative speaks the protocol");
                }
                Output::Copy(_) | Output::Fetch(..) | Output::FetchCalls(..) => panic!("nothing is copied"),
                Output::Close(_, why) => panic!("closed: {why}"),
            }
        }
    }
}
