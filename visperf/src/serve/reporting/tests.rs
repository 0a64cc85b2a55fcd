//! Permissions to report, over real connections with real certificates.

use super::{ReportAcceptor, places};
use overlay::authenticator::Authenticator;
use overlay::domain::{ObservedMember, View};
use overlay::election;
use overlay::hub::Hub;
use overlay::identity::admission::Gate;
use overlay::identity::key::Key;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::trust::{Readers, Trust};
use overlay::net::event_loop::{Config, EventLoop};
use overlay::net::handle::Handle;
use overlay::net::protocol::Protocol;
use overlay::net::redial::Target;
use sensor::representative::domain;
use sensor::representative::hosts::{ElectionEntry, Liveness};
use sensor::representative::service::{self, Duty, Service};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::credential::{Certificate, Chain, Role, Roles, Serial};
use wire::id::{DomainName, HostName, PeerKey, SensorKey};
use wire::membership::{Member, State, Term};
use wire::report::{Frames, FromMember, FromRepresentative, Hello, VERSION, encode};
use wire::time::Time;

const ROOT: [u8; 32] = [1; 32];
const SOON: Duration = Duration::from_secs(30);

fn host(name: &str) -> HostName {
    HostName::try_from(name).unwrap()
}

/// A daemon of the overlay with a certificate of these roles.
struct Daemon {
    net: Handle,
    gate: Arc<Authenticator>,
    hub: Option<Hub>,
    address: SocketAddr,
    key: PeerKey,
    tasks: JoinSet<()>,
}

impl Daemon {
    async fn start(number: u8, roles: Roles) -> Daemon {
        let (root, key) = (Key::from_seed(ROOT), Key::from_seed([number; 32]));
        let domain = DomainName::try_from("UT-ICL").unwrap();
        let now = overlay::clock::calendar();
        let certificate = Certificate {
            domain: domain.clone(),
            root: root.peer(),
            peer: key.peer(),
            host: host(&format!("h{number}")),
            roles,
            priority: 0,
            serial: Serial(number.into()),
            issued: now,
            expires: Time::from_micros(now.micros() + 86_400_000_000),
        };
        let chain = Chain { certificate: root.seal(&certificate).unwrap(), delegation: None };
        let trust = Trust::of_member(domain, root.peer(), Readers::Nobody);
        let gate = Gate::new(trust, RevocationLists::default(), BTreeSet::new());
        let gate = Arc::new(Authenticator::new(gate, Some(chain)));
        let config = Config::new(vec![SocketAddr::from(([127, 0, 0, 1], 0))]);
        let (event_loop, net, events) = EventLoop::open(config, &key, gate.clone(), number.into()).unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(event_loop.run(CancellationToken::new()));
        let address = net.listening().wait_for(|all| !all.is_empty()).await.unwrap()[0];
        Daemon { net, gate, hub: Some(Hub::new(events)), address, key: key.peer(), tasks }
    }

    /// Make it the representative of the domain from now on.
    fn represent(&mut self, folder: &std::path::Path) -> service::Handle {
        let (running, service) = Service::new(folder.join("domain"), domain::Config::default());
        let mut hub = self.hub.take().unwrap();
        let acceptor = ReportAcceptor {
            sessions: hub.sessions(Protocol::Report),
            gate: Arc::clone(&self.gate),
            domain: DomainName::try_from("UT-ICL").unwrap(),
            service: service.clone(),
        };
        self.tasks.spawn(hub.run());
        self.tasks.spawn(acceptor.run());
        self.tasks.spawn(async move { running.run(CancellationToken::new()).await.unwrap() });
        service.set_duty(Duty::Serve { term: 1 });
        service
    }

    /// Send a hello for this host to a representative; returns its answer.
    async fn hello(&mut self, to: &Daemon, name: &str) -> FromRepresentative {
        if let Some(hub) = self.hub.take() {
            self.tasks.spawn(hub.run());
        }
        let at = to.address.into();
        self.net.keep(Target::Peer(to.key), vec![at]).await;
        let connected = async {
            let mut look = tokio::time::interval(Duration::from_millis(10));
            while !self.net.is_ready(to.key) {
                look.tick().await;
            }
        };
        tokio::time::timeout(SOON, connected).await.expect("they are of one domain");
        let mut stream = self.net.open(to.key, Protocol::Report, SOON).await.unwrap();
        let hello = Hello {
            version: VERSION,
            program: "test".into(),
            sensor: SensorKey(7),
            host: host(name),
            hosts: Vec::new(),
            boot: "".into(),
            started: Time::default(),
            clock: Time::default(),
            oldest: 0,
            next: 0,
            acknowledged: None,
            marks: Vec::new(),
            stores: wire::at_end::AtEnd(None),
        };
        let (mut frame, mut frames) = (Vec::new(), Frames::default());
        encode(&FromMember::Hello(Box::new(hello)), &mut frame).unwrap();
        stream.write_all(&frame).await.unwrap();
        stream.flush().await.unwrap();
        let answered = async {
            loop {
                let mut bytes = Vec::new();
                assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "it ended without a word");
                frames.push(&bytes);
                if let Some((answer, _)) = frames.take().unwrap() {
                    return answer;
                }
            }
        };
        tokio::time::timeout(SOON, answered).await.expect("an answer")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publisher_reports_for_the_host_of_its_certificate_and_no_other_does() {
    let folder = tempfile::tempdir().unwrap();
    let mut representative = Daemon::start(2, Roles::SENSOR).await;
    let service = representative.represent(folder.path());
    service.wait_open().await;
    let mut viewer = Daemon::start(3, Roles::NONE.with(Role::Viewer)).await;
    let refused = viewer.hello(&representative, "h3").await;
    let FromRepresentative::Refused(why) = refused else { panic!("{refused:?}") };
    assert!(why.contains("publisher"), "{why}");
    let mut publisher = Daemon::start(4, Roles::SENSOR).await;
    let refused = publisher.hello(&representative, "h3").await;
    let FromRepresentative::Refused(why) = refused else { panic!("{refused:?}") };
    assert!(why.contains("certificate of h4"), "{why}");
    assert_eq!(service.ask(|domain, _| domain.hosts_len()).await, Ok(0), "nothing is learned of either");
    // The control: with its role and its host it is accepted.
    let taken = publisher.hello(&representative, "h4").await;
    assert!(matches!(taken, FromRepresentative::Resume(_)), "{taken:?}");
    assert_eq!(service.ask(|domain, _| domain.hosts_len()).await, Ok(1));
    service.set_duty(Duty::Rest);
}

/// Place in the table of hosts of a host that is in this state, before it reported.
fn place_of(state: State) -> ElectionEntry {
    let representative = PeerKey([1; 32]);
    let member = Member {
        key: PeerKey([2; 32]),
        incarnation: 1,
        state,
        host: host("h2"),
        may_represent: true,
        priority: 0,
        addresses: Vec::new(),
    };
    let of_election = election::State {
        role: election::Role::Representative,
        representative: Some(representative),
        term: Term(1),
        partial: false,
        coverage: vec![representative],
    };
    let view = View {
        state: of_election,
        members: vec![ObservedMember { member, load: None, heard: overlay::clock::now() }],
        standbys: Vec::new(),
        figures: election::Figures::default(),
        dropped_total: 0,
    };
    places(&view)[&host("h2")]
}

/// A member that only the previous representative heard is shown by the new one at once, not only after its
/// timeout.
#[test]
fn a_host_that_a_new_representative_does_not_hear_is_among_the_hosts() {
    let standing = |state| place_of(state).gone.map(|(standing, _)| standing);
    assert_eq!(standing(State::Suspect), Some(Liveness::Silent));
    assert_eq!(standing(State::Dead), Some(Liveness::Silent));
    assert_eq!(standing(State::Left), Some(Liveness::Left));
    assert_eq!(standing(State::Alive), None, "it is about to report");
}
