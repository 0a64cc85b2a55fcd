//! Members and representatives for tests, each with its own folder or disk, connected by TCP on loopback.

use crate::report::rig::{self, host, myself};
use crate::simulated::Random;
use sensor::journal;
use sensor::report::link::{Figures, Link, LinkInputs, LinkStatus, Route};
use sensor::report::outbox::Outbox;
use sensor::representative::domain::Config;
use sensor::representative::service::{Duty, Handle, Service};
use sensor::representative::session::Session;
use sensor::sample::table::{Rows, Table, metric};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::credential::Serial;
use wire::event::Id;
use wire::id::{HostName, PeerKey};
use wire::report::HostState;
use wire::report::marks::MarkList;
use wire::sample::{Metric, Semantics};
use wire::time::Time;

/// Metrics of a sweep.
const METRICS: usize = 4000;

/// Polls until the condition is true; panics after a minute.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let looking = async {
        let mut look = tokio::time::interval(Duration::from_millis(10));
        while !is_so().await {
            look.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), looking).await.unwrap_or_else(|_| panic!("no {what}"));
}

/// A worker that listens. A client sends its number first.
pub struct Representative {
    pub handle: Handle,
    pub address: SocketAddr,
    folder: tempfile::TempDir,
    shutdown: CancellationToken,
    _tasks: JoinSet<()>,
}

impl Drop for Representative {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Representative {
    pub async fn start() -> Representative {
        let folder = tempfile::tempdir().unwrap();
        let (service, handle) = Service::new(folder.path().join("domain"), Config::default());
        let shutdown = CancellationToken::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        let ending = shutdown.clone();
        tasks.spawn(async move { service.run(ending).await.unwrap() });
        let receiving = handle.clone();
        tasks.spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let Ok(number) = stream.read_u8().await else { continue };
                let (peer, host) = (PeerKey([number + 1; 32]), host(&format!("h{number}")));
                receiving.receive(Session { peer, serial: Serial(0), host, stream: Box::new(stream) });
            }
        });
        Representative { handle, address, folder, shutdown, _tasks: tasks }
    }

    pub fn serve(&self, term: u64) {
        self.handle.set_duty(Duty::Serve { term });
    }

    /// Removes the files of its store.
    pub fn remove_store(&self) {
        std::fs::remove_dir_all(self.folder.path().join("domain")).unwrap();
    }

    /// Counts how often each event is stored.
    pub async fn stored(&self) -> BTreeMap<Id, u32> {
        let Ok(feed) = self.handle.feed().await else { return BTreeMap::new() };
        let page = feed.read(&feed.oldest(), usize::MAX, |_| true).unwrap();
        let mut stored = BTreeMap::new();
        for event in page.events {
            *stored.entry(event.event.id).or_default() += 1;
        }
        stored
    }

    pub async fn stored_of(&self, member: &Running) -> u64 {
        self.stored().await.keys().filter(|id| id.sensor == member.member.key).count() as u64
    }

    pub async fn links(&self) -> usize {
        self.handle.ask(|domain, _| domain.links_len()).await.unwrap()
    }

    /// Opens a stream on which nothing is sent.
    pub fn visit(&self, peer: PeerKey, name: &str) -> Silent {
        let (ours, theirs) = tokio::io::duplex(1 << 10);
        self.handle.receive(Session { peer, serial: Serial(0), host: host(name), stream: Box::new(theirs) });
        Silent(AsyncMutex::new(ours))
    }

    pub async fn visit_when_open(&self, peer: PeerKey, name: &str) -> Silent {
        self.handle.wait_open().await;
        self.visit(peer, name)
    }
}

pub struct Silent(AsyncMutex<tokio::io::DuplexStream>);

impl Silent {
    /// Whether the other side has closed the stream.
    pub async fn is_ended(&self) -> bool {
        let mut stream = self.0.lock().await;
        let read = tokio::time::timeout(Duration::from_millis(20), stream.read_u8()).await;
        matches!(read, Ok(Err(_)))
    }
}

/// Connects to the current address of the representative.
struct Tcp {
    number: u8,
    to: watch::Receiver<Option<SocketAddr>>,
    leads_to: Option<SocketAddr>,
}

impl Route for Tcp {
    type Stream = TcpStream;

    async fn open(&mut self) -> TcpStream {
        loop {
            let address = self.to.wait_for(Option::is_some).await.unwrap().unwrap();
            self.leads_to = Some(address);
            if let Ok(mut stream) = TcpStream::connect(address).await
                && stream.write_u8(self.number).await.is_ok()
            {
                return stream;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn moved(&mut self) {
        let leads_to = self.leads_to;
        if self.to.wait_for(|to| to.is_some() && *to != leads_to).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// A member whose link runs.
pub struct Running {
    pub member: rig::Member,
    to: watch::Sender<Option<SocketAddr>>,
    tables: watch::Sender<Option<Arc<Table>>>,
    rows: Mutex<(Rows, Vec<Arc<Metric>>, u64)>,
    acknowledged: Arc<Mutex<Option<u64>>>,
    waits: Arc<AtomicBool>,
    board: LinkStatus,
    shutdown: CancellationToken,
    _tasks: JoinSet<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Running {
    pub fn start(number: u8, representative: Option<&Representative>) -> Running {
        let member = rig::Member::new(number, journal::Config::default());
        let reader = member.journal.reader();
        let (tables, swept) = watch::channel(None);
        let acknowledged = Arc::new(Mutex::new(None));
        let waits = Arc::new(AtomicBool::new(false));
        let awaited = Arc::clone(&waits);
        let (known, target) = (Arc::clone(&acknowledged), Arc::clone(&acknowledged));
        let name: HostName = member.host.clone();
        let own = LinkInputs {
            identity: myself(member.key, &name),
            outbox: Outbox::new(Arc::new(member.disk.clone()), reader.clone()),
            reader,
            tables: swept,
            state: Box::new(|| HostState { time: Time::from_micros(1), ..HostState::default() }),
            acknowledged: Box::new(move || *known.lock().unwrap()),
            marks: MarkList::default(),
            acknowledge: Box::new(move |mark| *target.lock().unwrap() = Some(mark.next)),
            add_watermarks: Box::new(|_| ()),
            awaits: Box::new(move |waits| awaited.store(waits, Ordering::SeqCst)),
            copying: Arc::default(),
        };
        let link = Link::new(own);
        let (board, shutdown) = (link.status(), CancellationToken::new());
        let (to, way) = watch::channel(representative.map(|representative| representative.address));
        let mut tasks = JoinSet::new();
        tasks.spawn(link.run(Tcp { number, to: way, leads_to: None }, shutdown.clone()));
        let names = (0..METRICS).map(|nth| metric(&format!("m{nth}"), "", Semantics::Gauge, &[])).collect();
        let rows = Mutex::new((Rows::default(), names, 0));
        Running { member, to, tables, rows, acknowledged, waits, board, shutdown, _tasks: tasks }
    }

    /// Sets the representative to report to.
    pub fn go_to(&self, representative: Option<&Representative>) {
        self.to.send_replace(representative.map(|representative| representative.address));
    }

    pub fn go_through(&self, slow: &Slow) {
        self.to.send_replace(Some(slow.address));
    }

    /// Reads this many lines of its log, and makes them durable.
    pub fn write(&mut self, lines: u64) {
        self.member.read(lines);
        self.member.sync();
    }

    pub fn written(&self) -> u64 {
        self.member.lines()
    }

    pub fn acknowledged(&self) -> Option<u64> {
        *self.acknowledged.lock().unwrap()
    }

    /// Whether the link has sent everything durable and waits for more.
    pub fn waits(&self) -> bool {
        self.waits.load(Ordering::SeqCst)
    }

    pub fn figures(&self) -> Figures {
        self.board.figures()
    }

    /// Makes one more sweep, with unpredictable values, and returns its number of samples; does nothing and
    /// returns 0 if the link has not processed the previous sweep.
    pub fn sweep(&self) -> u64 {
        let counts = self.figures().counts;
        let mut rows = self.rows.lock().unwrap();
        let (rows, names, swept) = &mut *rows;
        if counts.samples_total + counts.thinned_total < *swept {
            return 0;
        }
        let mut random = Random::new(*swept + 1);
        for name in names.iter() {
            rows.push_whole(name, random.below(u64::MAX));
        }
        *swept += names.len() as u64;
        let time = Time::from_micros(i64::try_from(*swept).unwrap() * 1000);
        self.tables.send_replace(Some(Arc::new(rows.finish(time))));
        names.len() as u64
    }
}

/// A TCP proxy to a representative; forwards nothing from members while it is held.
pub struct Slow {
    address: SocketAddr,
    is_held: watch::Sender<bool>,
    _tasks: JoinSet<()>,
}

impl Slow {
    pub async fn before(representative: &Representative) -> Slow {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, to) = (listener.local_addr().unwrap(), representative.address);
        let (is_held, held) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            while let Ok((member, _)) = listener.accept().await {
                let there = TcpStream::connect(to).await.unwrap();
                let ((from, mut back), (mut answers, mut forth)) = (member.into_split(), there.into_split());
                let mut held = held.clone();
                let forward = async move {
                    let (mut from, mut chunk) = (from, vec![0; 4 << 10]);
                    loop {
                        held.wait_for(|held| !held).await.unwrap();
                        match from.read(&mut chunk).await {
                            Ok(0) | Err(_) => return,
                            Ok(len) => forth.write_all(&chunk[..len]).await.unwrap(),
                        }
                    }
                };
                let backward = async move { tokio::io::copy(&mut answers, &mut back).await };
                tokio::spawn(async move { tokio::join!(forward, backward) });
            }
        });
        Slow { address, is_held, _tasks: tasks }
    }

    pub fn hold(&self) {
        self.is_held.send_replace(true);
    }

    pub fn go_on(&self) {
        self.is_held.send_replace(false);
    }
}
