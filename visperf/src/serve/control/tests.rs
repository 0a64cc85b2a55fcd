//! Thousands of orders, signed by real keys, at a real sensor's control, about a real process: only the valid
//! ones are carried out.
//!
//! Rule: every invalid order would end the process if it were carried out, and each kind is refused for its
//! own reason.
#![allow(
    clippy::disallowed_methods,
    reason = "these tests start processes, and read the clock as the sensor does"
)]

use super::*;
use overlay::identity::key::Key;
use sensor::control::config::Config;
use sensor::control::refusal::Refusal;
use sensor::control::worker::Handle;
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wire::control::{Act, LIFE_MAX, Nonce, Order, Signal, SignedOrder};
use wire::credential::{Certificate, Chain, Delegation, Role, Roles, Serial};
use wire::id::{DomainName, HostName, PeerKey};
use wire::process::ProcessKey;
use wire::sealed::Sealed;
use wire::time::Moment;

/// Owner of the test processes where the tests run as root, whose own processes are never controlled.
const NOBODY: u32 = 65_534;
const DAY: Duration = Duration::from_secs(86_400);
const PATIENCE: Duration = Duration::from_secs(30);

fn victims_uid() -> u32 {
    match rustix::process::geteuid().as_raw() {
        0 => NOBODY,
        own => own,
    }
}

fn key(number: u8) -> Key {
    Key::from_seed([number; 32])
}

fn domain(name: &str) -> DomainName {
    DomainName::try_from(name).unwrap()
}

fn host(name: &str) -> HostName {
    HostName::try_from(name).unwrap()
}

/// A sleeping process whose parent is not this test.
struct Victim {
    key: ProcessKey,
}

impl Victim {
    fn start() -> Victim {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "sleep 86400 >/dev/null 2>&1 & echo $!"]).current_dir("/").stdin(Stdio::null());
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        let pid: u32 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
        // Wait until it has its final name and parent.
        let until = Instant::now() + PATIENCE;
        loop {
            let target = sensor::control::target::read(Path::new("/proc"), pid).unwrap().unwrap();
            if target.name == "sleep" && !target.ancestors.contains(&std::process::id()) {
                return Victim { key: target.key };
            }
            assert!(Instant::now() < until, "{target:?}");
            std::thread::yield_now();
        }
    }

    fn lives(&self) -> bool {
        let target = sensor::control::target::read(Path::new("/proc"), self.key.pid).unwrap();
        target.is_some_and(|target| {
            target.key == self.key && !matches!(target.state, wire::process::State::Zombie)
        })
    }
}

impl Victim {
    /// Asserts that it ends, perhaps later: the control waits shorter than a busy host may need.
    #[track_caller]
    fn ends(&self) {
        let until = Instant::now() + PATIENCE;
        while self.lives() {
            assert!(Instant::now() < until, "it goes on");
            std::thread::yield_now();
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        if self.lives() {
            let held = sensor::control::act::ProcessHandle::open(self.key.pid).unwrap().unwrap();
            held.signal(Signal::Kill).unwrap();
        }
    }
}

/// Control of a sensor on host `wn01` of domain `alpha`, with the keys of its root and operator.
struct Grid {
    root: Key,
    operator: Key,
    state: tempfile::TempDir,
    worker: Handle,
    /// Number of orders, from which the time of each order is computed.
    count: u64,
}

impl Grid {
    fn new() -> Grid {
        let state = tempfile::tempdir().unwrap();
        let (root, operator) = (key(1), key(2));
        let worker = worker(state.path(), root.peer());
        Grid { root, operator, state, worker, count: 0 }
    }

    /// Like a restart of the daemon.
    fn restart(&mut self) {
        self.worker = worker(self.state.path(), self.root.peer());
    }

    fn certificate(&self, roles: Roles) -> Certificate {
        let now = clock::calendar();
        Certificate {
            domain: domain("alpha"),
            root: self.root.peer(),
            peer: self.operator.peer(),
            host: host("ws1"),
            roles,
            priority: 0,
            serial: Serial(1),
            issued: now.minus(DAY),
            expires: now.plus(DAY),
        }
    }

    fn chain(&self) -> Chain {
        let certificate = self.certificate(Roles::NONE.with(Role::Operator));
        Chain { certificate: self.root.seal(&certificate).unwrap(), delegation: None }
    }

    /// The next valid order about this process.
    fn order(&mut self, process: ProcessKey, signal: Signal) -> Order {
        self.count += 1;
        let issued = clock::calendar();
        let mut nonce = [7; 16];
        nonce[..8].copy_from_slice(&self.count.to_le_bytes());
        Order {
            domain: domain("alpha"),
            root: self.root.peer(),
            host: host("wn01"),
            process,
            act: Act::Signal(signal),
            nonce: Nonce(nonce),
            sequence: self.count,
            issued,
            expires: issued.plus(LIFE_MAX),
        }
    }

    fn signed(&self, order: &Order) -> SignedOrder {
        signed_command::sign(order, &self.operator, &self.chain()).unwrap()
    }

    fn give(&self, signed: &SignedOrder) -> Result<sensor::control::worker::ExecutedCommand, Refusal> {
        // An hour between two orders, so that none is refused by the rate limit.
        let at = Moment(Duration::from_secs(3600).saturating_mul(u32::try_from(self.count).unwrap()));
        self.worker.execute_at(&signed_command::text(signed), clock::calendar(), at)
    }

    fn trail(&self) -> String {
        std::fs::read_to_string(self.state.path().join("control/trail.log")).unwrap_or_default()
    }
}

fn worker(state: &Path, root: PeerKey) -> Handle {
    let here = Recipient { domain: domain("alpha"), host: host("wn01") };
    let trust = Trust::of_member(here.domain.clone(), root, Readers::Admitted);
    let gate = Authenticator::joining(Gate::new(trust, RevocationLists::default(), BTreeSet::new()));
    let config = Config::of_user(victims_uid());
    let worker = Handle::new(config, state, here.host.clone(), Path::new("/proc"));
    worker.set_authority(Arc::new(Orders::open(state, here, Arc::new(gate)).unwrap()));
    worker
}

/// The same signature with another body.
fn re_bodied(signed: &SignedOrder, change: impl FnOnce(&mut Order)) -> SignedOrder {
    let mut order = signed.order.unverified().unwrap();
    change(&mut order);
    let signature = signed.order.signature().to_bytes();
    let sealed = Sealed::new(&order, signed.order.signer(), |_| signature).unwrap();
    SignedOrder { order: sealed, chain: signed.chain.clone() }
}

/// An invalid order, and the text of its refusal.
type Bad = (SignedOrder, &'static str);

/// Makes the n-th invalid order of a kind, about this process.
type Making = fn(&mut Grid, &Victim, usize) -> Bad;

/// Signatures that are not the operator's.
fn forged(grid: &mut Grid, victim: &Victim, number: usize) -> Bad {
    let good = grid.order(victim.key, Signal::Kill);
    let signed = grid.signed(&good);
    match number % 4 {
        // A bit of the signature.
        0 => {
            let mut signature = signed.order.signature().to_bytes();
            signature[number / 8 % 64] ^= 1 << (number % 8);
            let order = Sealed::new(&good, signed.order.signer(), |_| signature).unwrap();
            (SignedOrder { order, ..signed }, "not that of")
        }
        // Another key, with the operator's certificate.
        1 => (signed_command::sign(&good, &key(9), &grid.chain()).unwrap(), "showed the certificate of"),
        // Another key that poses as the operator.
        2 => {
            let by_other = signed_command::sign(&good, &key(9), &grid.chain()).unwrap();
            let signature = by_other.order.signature().to_bytes();
            let order = Sealed::new(&good, grid.operator.peer(), |_| signature).unwrap();
            (SignedOrder { order, ..by_other }, "not that of")
        }
        // A certificate that its holder signed itself, in the root's name.
        _ => {
            let mut certificate = grid.certificate(Roles::NONE.with(Role::Operator));
            certificate.peer = key(9).peer();
            let certificate = key(9).seal(&certificate).unwrap();
            let chain = Chain { certificate, delegation: None };
            (signed_command::sign(&good, &key(9), &chain).unwrap(), "has no delegation")
        }
    }
}

/// Orders that have expired, are not valid yet, or would be valid for too long.
fn untimely(grid: &mut Grid, victim: &Victim, number: usize) -> Bad {
    let mut order = grid.order(victim.key, Signal::Kill);
    let step = Duration::from_secs(number as u64 % 1000);
    let why = match number % 3 {
        0 => {
            order.issued = order.issued.minus(LIFE_MAX + step);
            order.expires = order.issued.plus(LIFE_MAX);
            "compare the clocks"
        }
        1 => {
            order.issued = order.issued.plus(Duration::from_secs(60) + step);
            order.expires = order.issued.plus(LIFE_MAX);
            "ahead of this host's clock"
        }
        _ => {
            order.expires = order.issued.plus(LIFE_MAX + Duration::from_secs(1) + step);
            "at most 30 s"
        }
    };
    (grid.signed(&order), why)
}

/// Orders for another host or process, given here, and such orders rewritten to be for this one.
fn re_targeted(grid: &mut Grid, victim: &Victim, number: usize) -> Bad {
    let mut order = grid.order(victim.key, Signal::Kill);
    let pid = victim.key.pid;
    match number % 8 {
        0 => order.host = host("wn02"),
        1 => order.domain = domain("beta"),
        2 => {
            order.root = key(77).peer();
            return (grid.signed(&order), "has root");
        }
        // For another process, or for another process that had the same number.
        3 => {
            order.process.start_ns -= 10_000_000 * (1 + number as u64 % 50);
            return (grid.signed(&order), "another process now");
        }
        4 => {
            order.process = ProcessKey { pid: 1 << 22, ..order.process };
            return (grid.signed(&order), "no process");
        }
        // Signed for another process, then rewritten.
        5 => {
            order.process = ProcessKey { pid: pid + 1, ..order.process };
            return (re_bodied(&grid.signed(&order), |order| order.process.pid = pid), "not that of");
        }
        6 => {
            order.host = host("wn02");
            return (re_bodied(&grid.signed(&order), |order| order.host = host("wn01")), "not that of");
        }
        _ => {
            order.act = Act::Signal(Signal::Cont);
            let kill = Act::Signal(Signal::Kill);
            return (re_bodied(&grid.signed(&order), |order| order.act = kill), "not that of");
        }
    }
    (grid.signed(&order), "an order is of use where it was given for alone")
}

/// Members that are no operators, and operators that the root did not certify.
fn role_less(grid: &mut Grid, victim: &Victim, number: usize) -> Bad {
    let order = grid.order(victim.key, Signal::Kill);
    let others = [Role::Viewer, Role::Publisher, Role::Representative, Role::FilterAdmin];
    let chain = match number % 6 {
        place @ 0..=3 => {
            let certificate = grid.certificate(Roles::NONE.with(others[place]));
            Chain { certificate: grid.root.seal(&certificate).unwrap(), delegation: None }
        }
        4 => {
            let certificate = grid.certificate(Roles::SENSOR);
            Chain { certificate: grid.root.seal(&certificate).unwrap(), delegation: None }
        }
        // The issuer grants a role that only the root may grant.
        _ => {
            let issuer = key(5);
            let now = clock::calendar();
            let delegation = Delegation {
                domain: domain("alpha"),
                root: grid.root.peer(),
                issuer: issuer.peer(),
                number: 1,
                issued: now.minus(DAY),
                expires: now.plus(DAY),
            };
            let certificate = issuer.seal(&grid.certificate(Roles::NONE.with(Role::Operator))).unwrap();
            let delegation = Some(grid.root.seal(&delegation).unwrap());
            let signed =
                signed_command::sign(&order, &grid.operator, &Chain { certificate, delegation }).unwrap();
            return (signed, "the root's alone to give");
        }
    };
    (signed_command::sign(&order, &grid.operator, &chain).unwrap(), "needs operator")
}

#[test]
fn root_ten_thousand_bad_orders_are_refused_and_a_good_one_is_obeyed() {
    let (mut grid, victim) = (Grid::new(), Victim::start());
    let good = grid.order(victim.key, Signal::Cont);
    let mut good = grid.signed(&good);
    let done = grid.give(&good).unwrap();
    assert_eq!((done.name.as_str(), done.uid, done.has_ended), ("sleep", victims_uid(), None));
    let makers: [(&str, Making, usize); 4] = [
        ("forged", forged, 2500),
        ("untimely", untimely, 2000),
        ("re-targeted", re_targeted, 2000),
        ("role-less", role_less, 1500),
    ];
    let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
    for (kind, make, times) in makers {
        for number in 0..times {
            let (bad, why) = make(&mut grid, &victim, number);
            let refusal = grid.give(&bad).expect_err(kind).to_string();
            assert!(refusal.contains(why), "{kind} {number}: {why:?} in {refusal:?}");
            *refused.entry(kind).or_default() += 1;
        }
        assert!(victim.lives(), "{kind}");
    }
    for number in 0..2000 {
        // A recent order, so that it is not refused for its age; some were received before a restart of the
        // daemon.
        match number % 500 {
            0 => {
                let order = grid.order(victim.key, Signal::Cont);
                good = grid.signed(&order);
                grid.give(&good).unwrap();
            }
            250 => grid.restart(),
            _ => {}
        }
        let refusal = grid.give(&good).expect_err("a replay").to_string();
        assert!(refusal.contains("came before"), "{number}: {refusal}");
        *refused.entry("replayed").or_default() += 1;
    }
    println!("refused: {refused:?}");
    assert_eq!(refused.values().sum::<usize>(), 10_000);
    assert_eq!(grid.worker.figures().obeyed_total, 0, "since the last restart");
    assert!(victim.lives());
    let kill = grid.order(victim.key, Signal::Kill);
    assert!(grid.give(&grid.signed(&kill)).unwrap().has_ended.is_some());
    victim.ends();
    let trail = grid.trail();
    assert_eq!(
        trail.lines().filter(|line| line.split(' ').nth(1) == Some("obeyed")).count(),
        6,
        "CONT five times, and KILL"
    );
    assert!(trail.contains(" refused ") && trail.contains("left_out="));
}

/// A process number that is used again: as root, by setting the kernel's last number; otherwise, by an order
/// for the process that would have had the number before.
#[test]
fn root_a_process_that_has_the_number_of_an_ended_one_is_left_alone() {
    let mut grid = Grid::new();
    let first = Victim::start();
    let order = grid.order(first.key, Signal::Kill);
    let for_first = grid.signed(&order);
    let second = match again(first) {
        Some(second) => second,
        None => {
            println!("the kernel's next number cannot be set here: an earlier process is made up");
            Victim::start()
        }
    };
    let pid = order.process.pid;
    let for_first = if second.key.pid == pid {
        assert!(second.key.start_ns > order.process.start_ns, "{:?} after {:?}", second.key, order.process);
        for_first
    } else {
        let earlier = ProcessKey { start_ns: second.key.start_ns - 10_000_000, ..second.key };
        let order = grid.order(earlier, Signal::Kill);
        grid.signed(&order)
    };
    let refusal = grid.give(&for_first).unwrap_err();
    assert!(matches!(refusal, Refusal::Recycled { .. }), "{refusal}");
    assert!(second.lives());
    let order = grid.order(second.key, Signal::Kill);
    assert!(grid.give(&grid.signed(&order)).is_ok(), "by its own start it is meant");
    second.ends();
}

/// End `first` and reuse its number; `None` where the kernel does not permit this process to set it.
fn again(first: Victim) -> Option<Victim> {
    const NEXT: &str = "/proc/sys/kernel/ns_last_pid";
    let pid = first.key.pid;
    drop(first);
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        // A process that its parent has not waited for keeps its number.
        if sensor::control::target::read(Path::new("/proc"), pid).unwrap().is_some() {
            std::thread::yield_now();
            continue;
        }
        // The shell gets the number before, if no other process is faster.
        std::fs::write(NEXT, (pid - 2).to_string()).ok()?;
        let second = Victim::start();
        if second.key.pid == pid {
            return Some(second);
        }
    }
    None
}

#[test]
fn root_a_sensor_of_no_domain_believes_who_can_read_its_file() {
    let state = tempfile::tempdir().unwrap();
    let here = Recipient { domain: domain("local"), host: host("wn01") };
    let gate = own_gate(state.path(), &here).unwrap();
    let orders = Orders::open(state.path(), here.clone(), gate).unwrap();
    let operator = command_files::load_operator(state.path()).unwrap().unwrap();
    let issued = clock::calendar();
    let mut order = Order {
        domain: here.domain.clone(),
        root: operator.root,
        host: here.host.clone(),
        process: ProcessKey { pid: 7, start_ns: 1 },
        act: Act::Signal(Signal::Term),
        nonce: Nonce([1; 16]),
        sequence: 1,
        issued,
        expires: issued.plus(LIFE_MAX),
    };
    let text = |order: &Order, key: &Key| {
        signed_command::text(&signed_command::sign(order, key, &operator.chain).unwrap())
    };
    let verified = orders.verify(&text(&order, &operator.key)).unwrap();
    assert_eq!((verified.order, verified.from), (order.clone(), here.host.clone()));
    order.sequence += 1;
    let rejected = orders.verify(&text(&order, &key(9))).unwrap_err();
    assert_eq!(rejected.signer, Some(key(9).peer()));
    assert_eq!(rejected.claimed.as_deref(), Some(&order));
    // The next start creates another operator.
    own_gate(state.path(), &here).unwrap();
    let next = command_files::load_operator(state.path()).unwrap().unwrap();
    assert_ne!(next.root, operator.root);
    for text in ["", "visperforder1-", "visperforder1-aaaa", "kill 7"] {
        assert!(orders.verify(text).is_err(), "{text}");
    }
}
