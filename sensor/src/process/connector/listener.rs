//! Listener of the process events connector: its socket, and a thread that reads each process in `/proc` as
//! soon as an event names it.
//!
//! Shell. Rule: the thread waits only for the kernel and for its end; events without room in a queue are
//! counted as lost. It ends with its [`Listener`].
//! Not here: what the events add up to (`tracker`), their format (`message`).

use super::super::stat;
use super::message::{self, Message};
use super::tracker::{LifeEvent, Observed, Tracker};
use crate::sample::ticker::running;
use compact_str::CompactString;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most results that wait to be taken: more than a second at ten thousand per second.
const WAITING_MAX: usize = 16_384;
/// Receive buffer of the socket, in bytes: some thousand messages, for times when the thread is not
/// scheduled.
const KERNEL_BUFFER_BYTES: usize = 2 << 20;
/// How long to wait for the kernel's answer to the subscription.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// Longest command line that is read, in bytes; the same as in the kernel programs.
const COMMAND_LEN_MAX_BYTES: usize = 256;
/// More than the length of any message of the connector.
const MESSAGE_LEN_MAX_BYTES: usize = 1024;
/// More than the length of any `stat`.
const STAT_LEN_MAX_BYTES: usize = 1024;
/// Multicast group of process events.
const GROUP: u32 = 1;

/// Receives forks, execs and exits.
pub struct Listener {
    events: Receiver<LifeEvent>,
    lost: Arc<AtomicU64>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Subscribes to process events and starts the thread; processes are read below `proc`.
    ///
    /// # Errors
    /// The reason, in a sentence: before Linux 6.6 without CAP_NET_ADMIN, in a container, or if the kernel
    /// has no such connector.
    pub fn open(proc: &Path) -> Result<Listener, String> {
        let socket = socket().map_err(|error| {
            format!("the process events connector cannot be listened to: {error}; it needs CAP_NET_ADMIN")
        })?;
        match answer(&socket, ANSWER_WITHIN) {
            Ok(Some(0)) => {}
            Ok(Some(error)) => {
                return Err(format!(
                    "the process events connector refuses: {}; it needs CAP_NET_ADMIN",
                    Errno::from_raw_os_error(i32::try_from(error).unwrap_or(i32::MAX))
                ));
            }
            Ok(None) => {
                return Err(
                    "the process events connector does not answer: it sends nothing in a container".into()
                );
            }
            Err(error) => return Err(format!("the process events connector cannot be read: {error}")),
        }
        let (sender, events) = sync_channel(WAITING_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| error.to_string())?);
        let hearing = ListenerThread {
            socket,
            proc: proc.to_owned(),
            tracker: Tracker::new(suspended_ns()),
            sender,
            lost: Arc::clone(&lost),
        };
        let until = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("lives".into()).spawn(move || hearing.run(&until));
        let thread = thread.map_err(|error| format!("no thread can be started: {error}"))?;
        Ok(Listener { events, lost, stop, thread: Some(thread) })
    }

    /// Results since the previous call.
    pub fn take(&self) -> impl Iterator<Item = LifeEvent> {
        self.events.try_iter()
    }

    /// Results and events lost since the start; a loss in the kernel counts as one, whatever its size.
    #[must_use]
    pub fn lost_total(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Writing to an eventfd cannot fail here: it always takes eight bytes.
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // It does not matter any more whether it panicked.
            let _ = thread.join();
        }
    }
}

/// State of the thread.
struct ListenerThread {
    socket: OwnedFd,
    proc: PathBuf,
    tracker: Tracker,
    sender: SyncSender<LifeEvent>,
    lost: Arc<AtomicU64>,
}

impl ListenerThread {
    fn run(mut self, until: &OwnedFd) {
        loop {
            let mut waits = [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(until, PollFlags::IN)];
            match poll(&mut waits, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return tracing::warn!(%error, "process-exit notifications stopped"),
            }
            if !waits[1].revents().is_empty() {
                return;
            }
            loop {
                match receive(&self.socket) {
                    Ok(Some(message)) => self.handle(message),
                    Ok(None) => {}
                    Err(Errno::AGAIN) => break,
                    Err(Errno::NOBUFS) => {
                        self.lost.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(Errno::INTR) => {}
                    Err(error) => return tracing::warn!(%error, "process-exit notifications stopped"),
                }
            }
        }
    }

    fn handle(&mut self, message: Message) {
        let with_command = matches!(message, Message::Exec { .. });
        let events = self.tracker.handle(message, |pid| observe(&self.proc, pid, with_command));
        if let Some(events) = events
            && self.sender.try_send(events).is_err()
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(netlink::CONNECTOR))?;
    rustix::net::bind(&socket, &SocketAddrNetlink::new(0, GROUP))?;
    // Without the required capability, the default size has to do.
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, KERNEL_BUFFER_BYTES);
    rustix::net::send(&socket, &message::listen(), SendFlags::empty())?;
    Ok(socket)
}

/// Waits for the kernel's answer to the subscription; `None` if there is none in time, however many other messages come: a
/// container that has the network of its host gets the events of the host, and never an answer.
fn answer(socket: &OwnedFd, within: Duration) -> rustix::io::Result<Option<u32>> {
    let until = running() + within;
    loop {
        let left = until.saturating_sub(running());
        if left.is_zero() {
            return Ok(None);
        }
        let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        let mut waits = [PollFd::new(socket, PollFlags::IN)];
        match poll(&mut waits, Some(&left)) {
            Ok(0) | Err(Errno::INTR) => continue,
            other => other?,
        };
        match receive(socket) {
            Ok(Some(Message::Answer(error))) => return Ok(Some(error)),
            // Events that another subscriber has already turned on.
            Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Receives the next message of the kernel; `None` if it is not needed.
fn receive(socket: &OwnedFd) -> rustix::io::Result<Option<Message>> {
    let mut buffer = [0; MESSAGE_LEN_MAX_BYTES];
    let (len, _, sender) = rustix::net::recvfrom(socket, &mut buffer, RecvFlags::empty())?;
    let sender = sender.and_then(|sender| SocketAddrNetlink::try_from(sender).ok());
    // Other processes may write to a netlink socket; the kernel's port id is 0.
    let is_kernel = sender.is_some_and(|sender| sender.pid() == 0);
    Ok(message::read(&buffer[..len.min(MESSAGE_LEN_MAX_BYTES)]).filter(|_| is_kernel))
}

/// Reads a process now; `None` if it is gone.
fn observe(proc: &Path, pid: u32, with_command: bool) -> Option<Observed> {
    let folder = proc.join(pid.to_string());
    let file = File::open(folder.join("stat")).ok()?;
    let mut text = [0; STAT_LEN_MAX_BYTES];
    let len = file.read_at(&mut text, 0).ok()?;
    // A process that is being released has no threads, and no longer a parent and times.
    let stat = stat::stat(&text[..len]).filter(|stat| stat.threads > 0)?;
    let uid = file.metadata().ok()?.uid();
    let command = if with_command { command(&folder).unwrap_or_default() } else { CompactString::default() };
    Some(Observed { stat, uid, command })
}

fn command(folder: &Path) -> Option<CompactString> {
    let mut text = Vec::new();
    let file = File::open(folder.join("cmdline")).ok()?;
    file.take(COMMAND_LEN_MAX_BYTES as u64).read_to_end(&mut text).ok()?;
    stat::command(text)
}

/// How far the boot-time clock is ahead of the monotonic clock.
fn suspended_ns() -> u64 {
    let nanos = |clock| {
        let now = clock_gettime(clock);
        u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
    };
    let monotonic = nanos(ClockId::Monotonic);
    nanos(ClockId::Boottime).saturating_sub(monotonic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn an_answer_that_never_comes_is_not_waited_for_among_messages_that_do() {
        let (socket, other) = UnixDatagram::pair().expect("a pair");
        socket.set_nonblocking(true).expect("it does not block");
        let sender = std::thread::spawn(move || {
            while other.send(b"not of the kernel").is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let socket = OwnedFd::from(socket);
        assert_eq!(answer(&socket, Duration::from_millis(100)), Ok(None));
        drop(socket);
        sender.join().expect("it ends when there is no receiver");
    }
}
