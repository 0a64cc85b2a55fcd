//! Simulated member: its certificate, its part in the election, its report.
//!
//! All of it is the product's own code, its history too; only its sweeps and the state of its host are made up. It
//! follows no log.
//! Not here: when it sweeps (`main`).

use crate::grid::{self, Daemon};
use crate::made_up::{Host, Names};
use anyhow::Context as _;
use log_filters::found::Change;
use overlay::domain::{self, View};
use overlay::election::{self, Me};
use overlay::identity::domain_files::DomainFiles;
use overlay::identity::{key_file, member_files};
use overlay::membership::Profile;
use overlay::net::handle::Handle;
use overlay::net::protocol::Protocol;
use overlay::net::stream::Stream;
use sensor::config::history;
use sensor::history::exported::Exported;
use sensor::history::sweeps::{self, Sink};
use sensor::journal::fold::Replay;
use sensor::journal::frame::Record;
use sensor::journal::{self, writer::Journal};
use sensor::report::copying::CopyInputs;
use sensor::report::link::{Figures, Link, LinkInputs, LinkStatus, Route};
use sensor::report::outbox::Outbox;
use sensor::report::sender::Identity;
use sensor::sample::table::Table;
use sensor::segments::disk::{Directory, Disk};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::address::Address;
use wire::credential::{Role, Roles};
use wire::event::Id;
use wire::id::{DomainName, HostName, SensorKey};
use wire::report::HostState;
use wire::report::marks::MarkList;
use wire::time::Time;

/// Kind of the members' keys.
const KIND: u8 = 101;
/// Lifetime of a certificate: longer than any run.
const LIFE: Duration = Duration::from_secs(24 * 3600);
/// Timeout for opening a stream, and pause before the next attempt.
const OPEN_WITHIN: Duration = Duration::from_secs(5);
const OPEN_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// The domain that members join.
pub(crate) struct Domain {
    files: DomainFiles,
    name: DomainName,
    head: Address,
    /// Folder in which members store their terms.
    folder: PathBuf,
    disk: Arc<dyn Disk>,
    /// Shared empty journal, as no log is followed.
    journal: Journal,
}

impl Domain {
    /// Open the domain that was created with the state folder `state`.
    pub(crate) fn open(state: &Path, head: Address, folder: &Path) -> anyhow::Result<Domain> {
        let key = key_file::load(state)?.context("no daemon has its state there")?;
        let membership = member_files::load_membership(state)?.context("that daemon is in no domain")?;
        let disk: Arc<dyn Disk> = Arc::new(Directory::new(folder.join("journal"))?);
        let config = journal::Config::default();
        let (journal, _) = Journal::open(Arc::clone(&disk), config, SensorKey(1), &mut Nothing)?;
        Ok(Domain {
            files: DomainFiles::new(state, key),
            name: membership.certificate()?.domain,
            head,
            folder: folder.to_owned(),
            disk,
            journal,
        })
    }
}

struct Nothing;

impl Replay for Nothing {
    fn calls(&mut self, _: &[u8]) {}
    fn memory(&mut self, _: &[u8], _: &str, _: Vec<Change>) {}
    fn record(&mut self, _: Id, _: &Record) {}
}

pub(crate) struct Member {
    host: Host,
    tables: watch::Sender<Option<Arc<Table>>>,
    /// Its history, which the representative copies.
    history: Sink,
    board: LinkStatus,
}

impl Member {
    /// Issue a certificate to the member of this number, and start its report.
    pub(crate) fn start(
        nth: u32,
        of: &Domain,
        names: &Names,
        tasks: &mut JoinSet<()>,
        ending: &CancellationToken,
    ) -> anyhow::Result<Member> {
        let (key, host) = (grid::key(KIND, nth), HostName::try_from(format!("m{nth:04}").as_str())?);
        let (roles, now) = (Roles::NONE.with(Role::Publisher), overlay::clock::calendar());
        let chain = of.files.certify(key.peer(), host.clone(), roles, LIFE, now)?;
        let gate = grid::gate(chain, BTreeSet::new())?;
        let mut daemon = Daemon::open(&key, Arc::clone(&gate), nth.into())?;
        let mut election = election::Config::new(of.name.clone());
        election.has_seeds = true;
        let profile = Profile { host: host.clone(), may_represent: false, priority: 0 };
        let folder = of.folder.join(host.as_str());
        std::fs::create_dir(&folder)?;
        let me = Me { key: key.peer(), profile, addresses: Vec::new() };
        let config = domain::Config { election, me, seeds: vec![of.head.clone()], folder, seed: nth.into() };
        let net = daemon.net.clone();
        let (peers, sessions) = (daemon.hub.peers(), daemon.hub.sessions(Protocol::Control));
        let (part, handle) = domain::Domain::open(config, net.clone(), gate, peers, sessions)?;
        let (tables, swept) = watch::channel(None);
        let limits =
            history::Config::new(&history::RawConfig::default()).ok().and_then(|config| config.limits);
        let stored =
            sweeps::set_up(limits, &of.folder.join(host.as_str()), (host.clone(), Exported::default()));
        let (worker, history, minutes) = stored.context("a history has limits")?;
        std::thread::Builder::new().stack_size(256 << 10).spawn(move || worker.run())?;
        let copying = Arc::new(CopyInputs { own: Some(minutes), ..CopyInputs::default() });
        let link = Link::new(LinkInputs { copying, ..own(nth, host, of, swept) });
        let board = link.status();
        daemon.spawn(tasks, ending);
        let (parting, leaving) = (ending.clone(), ending.clone());
        tasks.spawn(part.run(parting));
        tasks.spawn(async move { link.run(ToHead { net, view: handle.view() }, leaving).await });
        Ok(Member { host: Host::new(names, nth.into()), tables, history, board })
    }

    /// Counters of its report.
    pub(crate) fn figures(&self) -> Figures {
        self.board.figures()
    }

    /// Report a sweep with the values of this second.
    pub(crate) fn sweep(&mut self, second: u64, time: Time) {
        let table = Arc::new(self.host.sweep(second, time));
        self.history.store(&table);
        self.tables.send_replace(Some(table));
    }
}

fn own(nth: u32, host: HostName, of: &Domain, tables: watch::Receiver<Option<Arc<Table>>>) -> LinkInputs {
    let reader = of.journal.reader();
    LinkInputs {
        identity: Identity {
            program: "made up".into(),
            sensor: SensorKey(u64::from(nth) + 2),
            host,
            hosts: Vec::new(),
            boot: "boot".into(),
            started: overlay::clock::calendar(),
            stores: wire::report::Stores {
                minutes: true,
                samples: wire::at_end::AtEnd(Some(true)),
                ..Default::default()
            },
        },
        outbox: Outbox::new(Arc::clone(&of.disk), reader.clone()),
        reader,
        tables,
        state: Box::new(|| HostState {
            time: overlay::clock::calendar(),
            load: Some([1.0, 1.0, 1.0]),
            cpus: 4,
            ..HostState::default()
        }),
        acknowledged: Box::new(|| None),
        marks: MarkList::default(),
        acknowledge: Box::new(|_| ()),
        add_watermarks: Box::new(|_| ()),
        awaits: Box::new(|_| ()),
        copying: Arc::default(),
    }
}

/// Route of a simulated member to the representative, which stays the same.
struct ToHead {
    net: Handle,
    view: watch::Receiver<Arc<View>>,
}

impl Route for ToHead {
    type Stream = Stream;

    async fn open(&mut self) -> Stream {
        loop {
            let known = self.view.wait_for(|view| view.state.representative.is_some()).await;
            let Some(head) = known.ok().and_then(|view| view.state.representative) else {
                // The election has ended.
                return std::future::pending().await;
            };
            if let Ok(stream) = self.net.open(head, Protocol::Report, OPEN_WITHIN).await {
                return stream;
            }
            tokio::time::sleep(OPEN_AGAIN_AFTER).await;
        }
    }

    async fn moved(&mut self) {
        std::future::pending().await
    }
}
