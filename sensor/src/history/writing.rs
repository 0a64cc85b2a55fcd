//! Writing of a history, which both of them share: it is opened, what arrives is stored, and written every few
//! seconds.
//!
//! Rule: while a history cannot be opened it is tried again, and the sensor runs without.

use super::exported::Exported;
use super::handle::Handle;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use store::reader::State;
use store::tier::Tier;
use store::writer::Writer;
use wire::id::HostName;
use wire::time::Time;

/// Time between two writes to the disk: what a crash may lose.
const FLUSH_INTERVAL: Duration = Duration::from_secs(8);

/// Whether more will arrive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Wait,
    End,
}

/// Opens a history, and tries again while that fails; meanwhile `waiting` gets what arrives. `None` if it is to end
/// before.
pub(super) fn open<J>(
    (handle, folder): (&Handle, &Path),
    jobs: &Receiver<J>,
    try_open: impl Fn() -> io::Result<Writer>,
    mut waiting: impl FnMut(J) -> Next,
) -> Option<Writer> {
    loop {
        let opened = try_open();
        handle.failure().set(folder, &opened);
        if let Ok(writer) = opened {
            report_damage(&writer.reader().state());
            handle.opened(writer.reader());
            return Some(writer);
        }
        if take_until(now() + FLUSH_INTERVAL, jobs, &mut waiting) == Next::End {
            return None;
        }
    }
}

/// Stores what arrives until there will be no more, then writes what is left. What is not `exported` is held beyond its
/// age, of a host or of all.
pub(super) fn run<J>(
    mut writer: Writer,
    jobs: &Receiver<J>,
    (exported, host): (&Exported, Option<&HostName>),
    mut store: impl FnMut(&mut Writer, J) -> Next,
) {
    loop {
        writer.hold_unexported(exported.times(host));
        let next = take_until(now() + FLUSH_INTERVAL, jobs, &mut |job| store(&mut writer, job));
        if next == Next::End {
            break;
        }
        writer.flush();
        writer.compact();
    }
    writer.close();
}

/// Hands on what arrives before `due`.
fn take_until<J>(due: Instant, jobs: &Receiver<J>, take: &mut dyn FnMut(J) -> Next) -> Next {
    loop {
        let next = match jobs.recv_timeout(due.saturating_duration_since(now())) {
            Ok(job) => take(job),
            Err(RecvTimeoutError::Timeout) => return Next::Wait,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        };
        if next == Next::End || now() >= due {
            return next;
        }
    }
}

fn report_damage(state: &State) {
    for (tier, files) in Tier::ALL.into_iter().zip(&state.tiers) {
        let store::tier_files::Counts { damaged_bytes, unreadable_files, .. } = files.files;
        if damaged_bytes > 0 || unreadable_files > 0 {
            tracing::warn!(
                tier = tier.name(),
                damaged_bytes,
                unreadable_files,
                "history: damaged parts of the files are skipped; the rest is used"
            );
        }
    }
}

/// The time of the calendar.
#[allow(clippy::disallowed_methods)] // The shell that marks the start, and answers up to now.
pub(crate) fn calendar() -> Time {
    std::time::SystemTime::now().into()
}

#[allow(clippy::disallowed_methods)] // The shell that decides when it is time to write.
fn now() -> Instant {
    Instant::now()
}
