//! Reports on the tunnel to a domain: when it is lost and when it is restored.
//!
//! Shell: a task that polls; [`TunnelStatus`] decides what it prints. Rule: an interruption shorter than
//! [`PASSING`] is not printed; each loss is printed once, once more if it turns out to be final, and so is
//! its end.
//! Not here: how the tunnel is reopened (`overlay::guest`).

use crate::output::note;
use overlay::clock;
use overlay::guest::{GuestSession, Outage};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::id::DomainName;
use wire::time::Moment;

/// Polling interval.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// A shorter interruption is not printed, for instance while a proxy retries on behalf of its guest.
const PASSING: Duration = Duration::from_secs(3);

/// Watch the tunnel until `shutdown`, and print changes on standard error.
pub(super) async fn report_changes(
    session: Arc<GuestSession>,
    domain: DomainName,
    shutdown: CancellationToken,
) {
    let mut status = TunnelStatus::default();
    let mut look = tokio::time::interval(LOOK_INTERVAL);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = look.tick() => {}
        }
        if let Some(text) = status.look(&domain, session.check_open(), clock::now()) {
            note(&text);
        }
    }
}

/// Observed state of the tunnel.
#[derive(Debug, Default)]
struct TunnelStatus {
    lost: Option<Moment>,
    printed: Option<Printed>,
}

/// What was printed of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Printed {
    Retried,
    Final,
}

impl TunnelStatus {
    /// Text to print now, if any.
    fn look(&mut self, domain: &DomainName, state: Result<(), Outage>, now: Moment) -> Option<String> {
        let Err(Outage { why, is_final }) = state else {
            let lost = self.lost.take().filter(|_| self.printed.take().is_some())?;
            return Some(format!("{domain} answers again, after {} s", now.since(lost).as_secs()));
        };
        let since = *self.lost.get_or_insert(now);
        let due = match is_final {
            true => Printed::Final,
            false if now.since(since) < PASSING => return None,
            false => Printed::Retried,
        };
        if self.printed == Some(due) {
            return None;
        }
        self.printed = Some(due);
        Some(match due {
            Printed::Final => {
                format!("{domain} is not answered for any more: {why}; start this again when that is mended")
            }
            Printed::Retried => format!("{domain} cannot be asked now: {why}; it is tried again and again"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_reported_once_and_its_end_and_a_short_one_is_not() {
        let domain = DomainName::try_from("UT-ICL").unwrap();
        let lost = |is_final| Err(Outage { why: "no proxy".to_owned(), is_final });
        let mut status = TunnelStatus::default();
        let mut look = |state, secs| status.look(&domain, state, Moment(Duration::from_secs(secs)));
        assert_eq!(look(Ok(()), 0), None);
        assert_eq!((look(lost(false), 1), look(Ok(()), 2)), (None, None));
        assert_eq!(look(lost(false), 10), None);
        assert!(look(lost(false), 13).unwrap().contains("no proxy; it is tried again"));
        assert_eq!(look(lost(false), 20), None);
        assert_eq!(look(Ok(()), 25).unwrap(), "UT-ICL answers again, after 15 s");
        assert_eq!(look(Ok(()), 26), None);
        assert!(look(lost(true), 30).unwrap().contains("not answered for any more: no proxy"));
        assert_eq!(look(lost(true), 40), None);
    }

    #[test]
    fn a_loss_that_was_printed_is_printed_again_when_it_is_final() {
        let domain = DomainName::try_from("UT-ICL").unwrap();
        let lost = |is_final| Err(Outage { why: "no proxy".to_owned(), is_final });
        let mut status = TunnelStatus::default();
        let mut look = |state, secs| status.look(&domain, state, Moment(Duration::from_secs(secs)));
        assert_eq!(look(lost(false), 0), None);
        assert!(look(lost(false), 4).unwrap().contains("it is tried again"));
        assert!(look(lost(true), 5).unwrap().contains("not answered for any more"));
        assert_eq!(look(lost(true), 6), None);
    }
}
