//! Byte stream between two daemons within HTTPS: the carrier of `tunnel`, with a clock and wakers.
//!
//! ```text
//! TLS or Noise, Yamux ── HttpsStream ── Shared ◀── the current path: `web_socket`, or requests (`polling`)
//!                                           the dialler replaces an ended one (`dial`); `tunnels` answers
//! ```
//! Rules: the lock is held for one step of the carrier, never across an await; of several paths the newest is
//! used; a stream without a path ends by the carrier's timeout, which is checked while the stream is read
//! from.
//! Not here: what is carried, and which peer is at the other end (TLS or Noise, above).

pub(super) mod dial;
pub mod polling;
pub mod tunnels;
pub(super) mod web_socket;

use crate::clock;
use std::any::Any;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Sleep;
use tunnel::carrier::{Carrier, End, Error};
use wire::time::Moment;

/// Path at which a proxy's listener answers tunnels.
pub const PATH: &str = "/tunnel";

/// Bidirectional byte stream, whatever is below.
pub(super) trait Duplex: futures::AsyncRead + futures::AsyncWrite + Send + Unpin {}

impl<S: futures::AsyncRead + futures::AsyncWrite + Send + Unpin> Duplex for S {}

/// One path's period of carrying a line. It ends when a newer path takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Epoch(u64);

/// State shared by a carried stream and its paths.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// Notifies the paths of every change.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    carrier: Carrier,
    epoch: Epoch,
    waiting: Waiting,
}

/// Wakers of the tasks that wait for a stream. The path and the timer wake the task that polled last.
#[derive(Debug, Default)]
struct Waiting {
    /// Waits for bytes.
    reader: Option<Waker>,
    /// Waits for room.
    writer: Option<Waker>,
    /// Waits for the end.
    closer: Option<Waker>,
}

impl Waiting {
    fn take(&mut self) -> impl Iterator<Item = Waker> + use<> {
        let Waiting { reader, writer, closer } = std::mem::take(self);
        [reader, writer, closer].into_iter().flatten()
    }
}

/// The stream itself. Dropping it ends the carrier.
pub(super) struct HttpsStream {
    shared: Arc<Shared>,
    /// At the dialler: the future that makes and serves the paths.
    path: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    sleep: Option<Pin<Box<Sleep>>>,
    /// Dropped with the stream.
    _permit: Box<dyn Any + Send>,
}

impl Shared {
    pub(super) fn open() -> Arc<Shared> {
        let carrier = Carrier::new(clock::now());
        let state = State { carrier, epoch: Epoch(0), waiting: Waiting::default() };
        Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() })
    }

    /// Run one step of the carrier, then wake all tasks and paths that wait.
    fn step<T>(&self, step: impl FnOnce(&mut State, Moment) -> T) -> T {
        let (done, waiting) = {
            let mut state = self.lock();
            let done = step(&mut state, clock::now());
            (done, state.waiting.take())
        };
        self.changed.notify_waiters();
        waiting.for_each(Waker::wake);
        done
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each step of the carrier is complete before anything could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Attach a new path; the other end has every byte before `received`.
    ///
    /// # Errors
    /// If `received` is impossible.
    pub(super) fn attach(&self, received: u64) -> Result<Epoch, Error> {
        self.step(|state, now| {
            state.carrier.handle_attached(received, now)?;
            state.epoch.0 += 1;
            Ok(state.epoch)
        })
    }

    /// The other end requests the bytes after `received`.
    fn ask(&self, received: u64) -> Result<Epoch, Error> {
        self.step(|state, now| {
            state.carrier.handle_asked(received, now)?;
            state.epoch.0 += 1;
            Ok(state.epoch)
        })
    }

    /// Detach the path of `epoch`, which ended.
    pub(super) fn detach(&self, epoch: Epoch) {
        self.step(|state, now| {
            if state.epoch == epoch {
                state.carrier.handle_detached(now);
            }
        });
    }

    /// Take a piece from the other end.
    ///
    /// # Errors
    /// If the other end may not send it.
    pub(super) fn on_chunk(&self, piece: &[u8]) -> Result<(), Error> {
        self.step(|state, now| state.carrier.handle_bytes(piece, now))
    }

    /// The last piece that was returned did not arrive: send it again.
    pub(super) fn requeue(&self) {
        self.step(|state, _| state.carrier.handle_unsaid());
    }

    /// End the stream.
    pub(super) fn give_up(&self) {
        self.step(|state, _| state.carrier.give_up());
    }

    pub(super) fn received(&self) -> u64 {
        self.lock().carrier.received()
    }

    /// Whether a path carries the stream now.
    fn is_carried(&self) -> bool {
        self.lock().carrier.is_carried()
    }

    pub(super) fn end(&self) -> Option<End> {
        self.lock().carrier.end()
    }

    /// The next piece for the path of `epoch`; `None` when its turn is over.
    pub(super) async fn next_chunk(&self, epoch: Epoch, most_bytes: usize) -> Option<Vec<u8>> {
        loop {
            // Registered before the check, so that no change is missed between the two.
            let changed = self.changed.notified();
            let until = {
                let mut state = self.lock();
                if state.epoch != epoch {
                    return None;
                }
                let now = clock::now();
                state.carrier.handle_timeout(now);
                if let Some(piece) = state.carrier.poll_output(most_bytes, now) {
                    return Some(piece);
                }
                if state.carrier.end().is_some() || !state.carrier.is_carried() {
                    return None;
                }
                state.carrier.poll_timeout().map(|until| until.since(now))
            };
            let _ = tokio::time::timeout(until.unwrap_or(Duration::MAX), changed).await;
        }
    }

    /// Send and receive on the path of `epoch` until either ends, or the path is no longer used; then detach
    /// it.
    pub(super) async fn carry(
        &self,
        epoch: Epoch,
        saying: impl Future<Output = io::Result<()>>,
        hearing: impl Future<Output = io::Result<()>>,
    ) -> io::Result<()> {
        let carried = tokio::select! {
            said = saying => said,
            heard = hearing => heard,
            () = self.left(epoch) => Ok(()),
        };
        self.detach(epoch);
        carried
    }

    /// Wait until the path of `epoch` is no longer used.
    pub(super) async fn left(&self, epoch: Epoch) {
        loop {
            let changed = self.changed.notified();
            let is_left = {
                let state = self.lock();
                state.epoch != epoch || !state.carrier.is_carried()
            };
            if is_left {
                return;
            }
            changed.await;
        }
    }
}

impl HttpsStream {
    /// On `shared`; `path` maintains a path while the stream is polled, `permit` is dropped with the stream.
    pub(super) fn new(
        shared: Arc<Shared>,
        path: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
        permit: Box<dyn Any + Send>,
    ) -> HttpsStream {
        HttpsStream { shared, path, sleep: None, _permit: permit }
    }

    /// Poll the path and the carrier's timer.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(path) = &mut self.path
            && path.as_mut().poll(cx).is_ready()
        {
            self.path = None;
        }
        loop {
            let now = clock::now();
            let due = self.shared.lock().carrier.poll_timeout();
            let Some(due) = due else { return };
            let span = due.since(now);
            if span.is_zero() {
                let was_carried = self.shared.lock().carrier.is_carried();
                let is_over = self.shared.step(|state, now| {
                    state.carrier.handle_timeout(now);
                    state.carrier.end().is_some() || (was_carried && !state.carrier.is_carried())
                });
                if is_over {
                    // The next timeout is checked when the stream is read again.
                    cx.waker().wake_by_ref();
                    return;
                }
            }
            // A due keepalive is sent by the path: check again soon.
            let span = span.max(LOOK_AGAIN);
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(span)));
            sleep.as_mut().reset(tokio::time::Instant::now() + span);
            if sleep.as_mut().poll(cx).is_pending() {
                return;
            }
        }
    }
}

/// Interval of the check for messages that a path should have sent.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Drop for HttpsStream {
    fn drop(&mut self) {
        self.shared.give_up();
    }
}

impl futures::AsyncRead for HttpsStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        self.drive(cx);
        let mut state = self.shared.lock();
        if state.carrier.waiting() == 0 {
            if !state.carrier.is_read_out() {
                state.waiting.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            return Poll::Ready(match state.carrier.end() {
                Some(End::Closed) | None => Ok(0),
                Some(other) => Err(io::Error::new(io::ErrorKind::ConnectionReset, other)),
            });
        }
        let count = state.carrier.read(into, clock::now());
        drop(state);
        self.shared.changed.notify_waiters();
        Poll::Ready(Ok(count))
    }
}

impl futures::AsyncWrite for HttpsStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = {
            let mut state = this.shared.lock();
            if let Some(end) = state.carrier.end() {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, end)));
            }
            let count = state.carrier.write(bytes, clock::now());
            if count == 0 && !bytes.is_empty() {
                state.waiting.writer = Some(cx.waker().clone());
            }
            count
        };
        if count == 0 && !bytes.is_empty() {
            this.drive(cx);
            return Poll::Pending;
        }
        this.shared.changed.notify_waiters();
        Poll::Ready(Ok(count))
    }

    /// Written bytes are stored until the other end has them, so a flush waits for nothing.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().drive(cx);
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        {
            let mut state = this.shared.lock();
            if state.carrier.end().is_some() {
                return Poll::Ready(Ok(()));
            }
            state.carrier.close(clock::now());
            state.waiting.closer = Some(cx.waker().clone());
        }
        this.shared.changed.notify_waiters();
        this.drive(cx);
        if this.shared.end().is_some() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::task::{ArcWake, waker};
    use futures::{AsyncRead as _, AsyncWrite as _};
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl ArcWake for Woken {
        fn wake_by_ref(woken: &Arc<Woken>) {
            woken.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn tasks_that_read_write_and_close_are_each_woken() {
        let shared = Shared::open();
        let mut carried = HttpsStream::new(Arc::clone(&shared), None, Box::new(()));
        let tasks = [const { || Arc::new(Woken::default()) }; 3].map(|new| new());
        let wakers = tasks.clone().map(waker);
        let [mut reader, mut writer, mut closer] = wakers.each_ref().map(Context::from_waker);
        assert!(Pin::new(&mut carried).poll_read(&mut reader, &mut [0; 8]).is_pending());
        // Until there is no room left.
        while Pin::new(&mut carried).poll_write(&mut writer, &[0; 4096]).is_ready() {}
        assert!(Pin::new(&mut carried).poll_close(&mut closer).is_pending());
        shared.give_up();
        for (woken, name) in tasks.iter().zip(["reader", "writer", "closer"]) {
            assert!(woken.0.load(Ordering::Relaxed) > 0, "{name}");
        }
    }
}
