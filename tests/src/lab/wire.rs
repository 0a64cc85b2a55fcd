//! Late link: a thread that reads the frames of one end, delays them, and writes them to the other.
//!
//! Rule: frames are forwarded unchanged, whatever they carry; the ends are packet sockets on two interfaces
//! of the lab, so that no kernel module is needed. Segmentation offload would change the number of frames, so
//! the code that creates the link switches it off.
//! Not here: when a frame is forwarded ([`super::delay`]), the interfaces ([`super::network`]).

use super::delay::{Delay, Line};
use crate::wait;
use anyhow::{Context, Result, anyhow};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recvfrom, send, socket,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest time until a change or the end is noticed.
const LOOK: Duration = Duration::from_millis(10);
/// Longest frame: the largest one that the kernel may merge from several.
const FRAME_MAX: usize = 65_536;
/// Frames read from one end before the other is served.
const TURN: usize = 64;
/// Kernel mark of an outgoing frame of this interface (`PACKET_OUTGOING`); the frames that this link itself
/// sends are not returned to it.
const OUTGOING: u8 = 4;

/// A late link that works until it is dropped.
#[derive(Debug)]
pub(super) struct Wire {
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Orders {
    end: AtomicBool,
    delay: Mutex<Option<Delay>>,
}

impl Wire {
    /// Link two interfaces of this network namespace, at first without delay.
    pub(super) fn start(one: &str, other: &str, seed: u64) -> Result<Wire> {
        let line = |way: u64| Line::new(Delay::default(), seed * 2 + way);
        let mut ends = [
            End { socket: Socket::open(one)?, line: line(0) },
            End { socket: Socket::open(other)?, line: line(1) },
        ];
        let orders = Arc::new(Orders::default());
        let shared = Arc::clone(&orders);
        let name = format!("wire {one}");
        let work = move || {
            if let Err(error) = pass(&mut ends, &shared) {
                super::report(&format!("the late link failed: {error:#}"));
            }
            let dropped = ends[0].line.dropped() + ends[1].line.dropped();
            if dropped > 0 {
                super::report(&format!("the late link was full, and dropped {dropped} frames"));
            }
        };
        let thread = std::thread::Builder::new().name(name).spawn(work)?;
        Ok(Wire { orders, thread: Some(thread) })
    }

    /// Set the delay of frames, effective within 10 ms.
    pub(super) fn set(&self, delay: Delay) -> Result<()> {
        *self.orders.delay.lock().unwrap_or_else(PoisonError::into_inner) = Some(delay);
        match &self.thread {
            Some(thread) if !thread.is_finished() => Ok(()),
            Some(_) | None => Err(anyhow!("expected a late link at work, but it has ended; it said why")),
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.orders.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Socket {
    fd: OwnedFd,
    interface: usize,
}

/// One end, and the delay queue of the frames that it received.
struct End {
    socket: Socket,
    line: Line,
}

fn pass(ends: &mut [End; 2], orders: &Orders) -> Result<()> {
    let mut frame = vec![0; FRAME_MAX];
    while !orders.end.load(Ordering::Relaxed) {
        if let Some(delay) = orders.delay.lock().unwrap_or_else(PoisonError::into_inner).take() {
            ends.iter_mut().for_each(|end| end.line.set(delay));
        }
        await_frames(ends)?;
        for way in 0..2 {
            for _ in 0..TURN {
                let Some(length) = ends[way].socket.receive(&mut frame)? else { break };
                ends[way].line.push(wait::now(), &frame[..length]);
            }
            let now = wait::now();
            while let Some(frame) = ends[way].line.pop(now) {
                ends[1 - way].socket.send(&frame)?;
            }
        }
    }
    Ok(())
}

fn await_frames(ends: &[End; 2]) -> Result<()> {
    let now: Instant = wait::now();
    let next = ends.iter().filter_map(|end| end.line.next()).min();
    let pause = next.map_or(LOOK, |next| next.saturating_duration_since(now).min(LOOK));
    let pause = Timespec { tv_sec: 0, tv_nsec: i64::from(pause.subsec_nanos()) };
    let mut sockets = [&ends[0], &ends[1]].map(|end| PollFd::new(&end.socket.fd, PollFlags::IN));
    match poll(&mut sockets, Some(&pause)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("cannot wait for frames"),
    }
}

impl Socket {
    fn open(interface: &str) -> Result<Socket> {
        let needs = "the lab needs sockets of packets (CAP_NET_RAW and the kernel's CONFIG_PACKET)";
        let mut all = nix::ifaddrs::getifaddrs().context("cannot list interfaces")?;
        let address = all.find_map(|found| {
            let is_it = found.interface_name == interface;
            found.address.filter(|_| is_it).and_then(|address| address.as_link_addr().copied())
        });
        let address = address.with_context(|| format!("expected an interface {interface}, found none"))?;
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll).context(needs)?;
        bind(fd.as_raw_fd(), &address).with_context(|| format!("cannot bind to {interface}"))?;
        Ok(Socket { fd, interface: address.ifindex() })
    }

    /// Read a frame into the buffer, if there is one; returns its length.
    fn receive(&self, frame: &mut [u8]) -> Result<Option<usize>> {
        loop {
            match recvfrom::<LinkAddr>(self.fd.as_raw_fd(), frame) {
                // Before the socket was bound, it received from all interfaces.
                Ok((length, Some(from)))
                    if from.pkttype() != OUTGOING && from.ifindex() == self.interface =>
                {
                    return Ok(Some(length));
                }
                Ok(_) | Err(Errno::EINTR) => {}
                // The link is down, or was.
                Err(Errno::EAGAIN | Errno::ENETDOWN) => return Ok(None),
                Err(error) => return Err(error).context("cannot read a frame"),
            }
        }
    }

    /// Send a frame, or drop it where a link would: if it is down or its queue is full.
    fn send(&self, frame: &[u8]) -> Result<()> {
        match send(self.fd.as_raw_fd(), frame, MsgFlags::empty()) {
            Ok(_) | Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::ENETDOWN | Errno::EINTR) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("cannot send a frame of {} bytes", frame.len())),
        }
    }
}
