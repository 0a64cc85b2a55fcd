//! Subscription with automatic renewal: it continues when another daemon answers for the place, and across
//! failures.
//!
//! Rule: it ends only on an error that waiting cannot resolve (`::client::recovery`). A lost daemon is
//! reported once, and so is its return, with what was missed meanwhile. Events and calls resume at the stored
//! cursor as long as the same sensor answers, so that none is lost and none comes twice.
//! Not here: how it is printed (`printing`), Ctrl-C (`watch`).

use crate::client::items;
use crate::client::target::Target;
use crate::client::{Client, PATIENCE};
use crate::exit::Failure;
use crate::output::note;
use ::client::Error;
use ::client::Patience;
use ::client::recovery::{self, Recovery};
use ::client::typed::About;
use overlay::clock;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wire::api::channels::{SubscribeParams, Subscription as Standing, UnsubscribeParams};
use wire::api::entries::{Entry, TakeAnswer, TakeParams};
use wire::api::{Request as _, Span};
use wire::fault::INVALID_PARAMS;
use wire::time::Moment;

/// How long a daemon may wait for a first entry before it returns an empty answer.
pub(super) const WAIT_SECS: u64 = 20;
/// Retry interval for a daemon that cannot be queried.
const AGAIN: Duration = Duration::from_secs(1);
/// A subscription that ended sooner than this is not renewed at once: daemons may not agree yet which one
/// represents the domain.
const SHORT: Duration = Duration::from_secs(5);
/// Timeout for unsubscribing when the command ends.
const ENDING: Patience = Patience::of(Duration::from_secs(3));

/// Specification of the subscription.
pub(super) struct Spec {
    pub(super) target: Target,
    pub(super) about: About,
    pub(super) wanted: SubscribeParams,
    /// Whether the entries are also returned as they were received.
    pub(super) is_json: bool,
    /// Most entries in one answer.
    pub(super) limit: u64,
    /// Timeout before the note that nothing matches; `None` without such a note.
    pub(super) first_wait_secs: Option<u64>,
}

/// A received answer.
pub(super) struct StreamAnswer {
    pub(super) taken: TakeAnswer,
    /// The entries as they were received, if requested.
    pub(super) raw: Vec<Value>,
}

/// A subscription, and its state across renewals.
pub(super) struct RenewedSubscription {
    spec: Spec,
    client: Client,
    subscription: Subscription,
    line: Line,
    /// When the subscription was made.
    started: Moment,
    /// Since when no daemon answers for it.
    away: Option<Moment>,
    /// Whether it must be made again.
    is_over: bool,
    /// Whether the entries are requested in packed form.
    is_packed: bool,
}

impl RenewedSubscription {
    /// Subscribe.
    ///
    /// # Errors
    /// If no daemon is reached, or it answers with a fault.
    pub(super) fn subscribe(spec: Spec) -> Result<RenewedSubscription, Failure> {
        let subscription =
            Subscription { id: Arc::default(), target: spec.target.clone(), about: spec.about.clone() };
        let (client, line) = (Client::new(&spec.target), Line::new(spec.wanted.kind.happens()));
        // A daemon of the previous version returns packed events and calls without the cursor.
        let is_packed = !spec.is_json && !line.happens;
        let mut renewed = RenewedSubscription {
            spec,
            client,
            subscription,
            line,
            started: clock::now(),
            away: None,
            is_over: false,
            is_packed,
        };
        let made = renewed.subscribe_from(None);
        let made = made.map_err(|error| renewed.client.explain(SubscribeParams::METHOD, error))?;
        renewed.begin(&made);
        Ok(renewed)
    }

    fn subscribe_from(&mut self, cursor: Option<String>) -> Result<Standing, Error> {
        let wanted = SubscribeParams { cursor, ..self.spec.wanted.clone() };
        self.client.ask(&wanted, &self.spec.about, PATIENCE)
    }

    /// A handle that can end the subscription from another thread.
    pub(super) fn subscription(&self) -> Subscription {
        self.subscription.clone()
    }

    /// The next answer; `None` if no daemon answered, or the subscription was made again.
    ///
    /// # Errors
    /// If it cannot continue.
    pub(super) fn take(&mut self) -> Result<Option<StreamAnswer>, Failure> {
        let (method, received) = match self.is_over {
            true => (SubscribeParams::METHOD, self.resubscribe().map(|()| None)),
            false => (TakeParams::METHOD, self.take_once().map(|received| self.looked_at(received))),
        };
        match received {
            Ok(received) => Ok(received),
            Err(error) => match recovery::of(&error, true) {
                Recovery::End => Err(self.client.explain(method, error)),
                Recovery::Restart if !self.is_over => {
                    let now = clock::now();
                    self.away.get_or_insert(now);
                    self.is_over = true;
                    if now.since(self.started) < SHORT {
                        std::thread::sleep(AGAIN);
                    }
                    Ok(None)
                }
                Recovery::Restart | Recovery::Wait => {
                    self.wait(&error);
                    Ok(None)
                }
            },
        }
    }

    fn take_once(&mut self) -> Result<StreamAnswer, Error> {
        let wait_secs = self.spec.first_wait_secs.unwrap_or(WAIT_SECS);
        let params = TakeParams {
            subscription: self.subscription.locked().clone(),
            limit: self.spec.limit,
            wait: Span(Duration::from_secs(wait_secs)),
            packed: self.is_packed,
        };
        // An empty answer is normal: no entry may match.
        let patience = Patience { notice_after: None, ..PATIENCE };
        if self.spec.is_json {
            let answer = self.client.request(&params, &self.spec.about, patience)?;
            return Ok(StreamAnswer { raw: items(&answer.raw, "entries"), taken: answer.typed });
        }
        let taken = match self.client.ask(&params, &self.spec.about, patience)?.unpacked() {
            Ok(taken) => taken,
            Err(_) => {
                note("the daemon is of another version: one answer is lost, going on in JSON");
                self.is_packed = false;
                TakeAnswer { next: self.line.next, ..TakeAnswer::default() }
            }
        };
        Ok(StreamAnswer { taken, raw: Vec::new() })
    }

    /// The answer, if it continues the stream; `None` if lost entries can be read again.
    fn looked_at(&mut self, received: StreamAnswer) -> Option<StreamAnswer> {
        if self.is_outage_reported() {
            note(&format!("reached {} again, going on", self.client.address()));
        }
        self.away = None;
        match self.line.take(&received.taken) {
            Order::GoesOn => {}
            Order::Lost(count) => note(&format!("{} lost on the way", entries_text(count))),
            Order::HadAgain => {
                self.away = Some(clock::now());
                self.is_over = true;
                return None;
            }
        }
        if let Some(secs) = self.spec.first_wait_secs.take()
            && received.taken.entries.is_empty()
            && received.taken.quarantined.is_none()
        {
            note(&format!("nothing passed for {secs} s; it is watched on, until Ctrl-C"));
        }
        Some(received)
    }

    fn wait(&mut self, error: &Error) {
        if !self.is_outage_reported() {
            note(&format!("{}; waiting until it answers (Ctrl-C ends)", error.first_line()));
            self.line.is_outage_reported = true;
        }
        self.away.get_or_insert_with(clock::now);
        // An answer that was lost on its way may have contained entries; if there is a cursor, they are read
        // again at once.
        let is_cut = error.is_lost() || matches!(error, Error::Unreachable(_));
        self.is_over |= is_cut && self.line.cursor.is_some();
        std::thread::sleep(AGAIN);
    }

    fn is_outage_reported(&self) -> bool {
        self.away.is_some() && self.line.is_outage_reported
    }

    /// Make the subscription again, at its cursor if possible.
    fn resubscribe(&mut self) -> Result<(), Error> {
        let former = self.subscription.as_it_is();
        let mut again = if self.line.cursor.is_some() { Again::WhereItWas } else { Again::FromNow };
        let made = match self.subscribe_from(self.line.cursor.clone()) {
            // The cursor belongs to another sensor, or to a previous journal of this one.
            Err(Error::Fault { code, message })
                if self.line.cursor.is_some()
                    && code == i64::from(INVALID_PARAMS)
                    && message.starts_with("cursor") =>
            {
                again = Again::Elsewhere;
                self.subscribe_from(None)?
            }
            made => made?,
        };
        let away = self.away.take().map_or(Duration::ZERO, |since| clock::now().since(since));
        note(&again.describe(self.line.happens, away));
        self.begin(&made);
        self.is_over = false;
        // The old subscription may still exist.
        former.end();
        Ok(())
    }

    fn begin(&mut self, made: &Standing) {
        *self.subscription.locked() = made.subscription.clone().unwrap_or_default();
        self.line.begin(made);
        self.started = clock::now();
    }
}

/// How a renewed subscription continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    /// At its cursor: no event or call is missing, and none comes twice.
    WhereItWas,
    /// From now on, as there is no cursor.
    FromNow,
    /// At another sensor.
    Elsewhere,
}

impl Again {
    fn describe(self, happens: bool, away: Duration) -> String {
        let secs = away.as_secs_f64().ceil();
        match (self, happens) {
            (Again::WhereItWas, _) => "subscribed again, from the same place: nothing was missed".to_owned(),
            (Again::FromNow, true) => {
                format!("subscribed again: what happened in the {secs} s between may be missed")
            }
            (Again::Elsewhere, true) => format!(
                "subscribed again: another sensor answers, and its own logs are watched from now on; what happened in the \
                 {secs} s between is missed; `visperf events --follow` prints the events of all hosts"
            ),
            (Again::FromNow | Again::Elsewhere, false) => {
                format!("subscribed again: the samples of the {secs} s between are missed")
            }
        }
    }
}

/// Position in the stream of entries.
#[derive(Debug)]
struct Line {
    happens: bool,
    /// Number of the first entry of the next answer.
    next: u64,
    /// For events and calls: cursor in the journal of the sensor.
    cursor: Option<String>,
    /// Whether the note was printed that no daemon answers.
    is_outage_reported: bool,
}

/// How an answer continues the stream.
#[derive(Debug, PartialEq, Eq)]
enum Order {
    /// It starts where the previous answer ended.
    GoesOn,
    /// This number of entries before it were lost.
    Lost(u64),
    /// Entries before it were lost and can be read again: this answer must be discarded.
    HadAgain,
}

impl Line {
    fn new(happens: bool) -> Line {
        Line { happens, next: 0, cursor: None, is_outage_reported: false }
    }

    /// Start with a new subscription.
    fn begin(&mut self, made: &Standing) {
        self.next = 0;
        self.is_outage_reported = false;
        self.go_on_from(made.cursor.as_ref());
    }

    fn take(&mut self, answer: &TakeAnswer) -> Order {
        self.is_outage_reported = false;
        let first = answer.entries.first().map(|entry| entry.number);
        let behind = |entry: &Entry| entry.number.saturating_add(entry.count.unwrap_or(1));
        // A daemon of the previous version returns packed entries without `next`.
        let next = answer.next.max(answer.entries.last().map_or(self.next, behind));
        let lost = first.unwrap_or(next).saturating_sub(self.next);
        if lost > 0 && self.cursor.is_some() {
            return Order::HadAgain;
        }
        self.next = next;
        self.go_on_from(answer.cursor.as_ref());
        if lost > 0 { Order::Lost(lost) } else { Order::GoesOn }
    }

    fn go_on_from(&mut self, cursor: Option<&String>) {
        self.cursor = cursor.filter(|_| self.happens).cloned();
    }
}

pub(super) fn entries_text(count: u64) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}

/// Handle to end a subscription.
#[derive(Clone)]
pub(super) struct Subscription {
    id: Arc<Mutex<String>>,
    target: Target,
    about: About,
}

impl Subscription {
    fn locked(&self) -> MutexGuard<'_, String> {
        self.id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle to the present subscription, which does not follow renewals.
    fn as_it_is(&self) -> Subscription {
        let id = Arc::new(Mutex::new(self.locked().clone()));
        Subscription { id, target: self.target.clone(), about: self.about.clone() }
    }

    /// Unsubscribe. If that fails, the subscription expires when no entries are taken.
    pub(super) fn end(&self) {
        let params = UnsubscribeParams { subscription: self.locked().clone() };
        let _ended = Client::new(&self.target).ask(&params, &self.about, ENDING);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(numbers: std::ops::Range<u64>, cursor: Option<&str>) -> TakeAnswer {
        let entries = numbers.clone().map(|number| Entry { number, ..Entry::default() }).collect();
        TakeAnswer { entries, next: numbers.end, cursor: cursor.map(str::to_owned), ..TakeAnswer::default() }
    }

    fn made(cursor: Option<&str>) -> Standing {
        Standing { cursor: cursor.map(str::to_owned), ..Standing::default() }
    }

    #[test]
    fn without_its_number_the_next_answer_is_known_by_the_entries() {
        let mut line = Line::new(false);
        line.begin(&made(None));
        let without = |numbers| TakeAnswer { next: 0, ..answer(numbers, None) };
        assert_eq!(line.take(&without(0..3)), Order::GoesOn);
        assert_eq!(line.take(&without(0..0)), Order::GoesOn, "nothing came");
        let missed = Entry { number: 3, count: Some(4), ..Entry::default() };
        assert_eq!(line.take(&TakeAnswer { entries: vec![missed], ..TakeAnswer::default() }), Order::GoesOn);
        assert_eq!(line.take(&without(8..9)), Order::Lost(1));
    }

    #[test]
    fn what_was_lost_on_the_way_is_had_again_where_that_can_be() {
        for (happens, expected) in [(true, Order::HadAgain), (false, Order::Lost(2))] {
            let mut line = Line::new(happens);
            line.begin(&made(Some("j.0")));
            assert_eq!(line.take(&answer(0..3, Some("j.3"))), Order::GoesOn);
            assert_eq!(line.take(&answer(5..6, Some("j.6"))), expected);
            assert_eq!(line.cursor.as_deref(), happens.then_some("j.3"), "not behind what was lost");
        }
        // No entry arrived after the lost one.
        let mut line = Line::new(true);
        line.begin(&made(Some("j.0")));
        assert_eq!(line.take(&answer(1..1, Some("j.1"))), Order::HadAgain);
        // Without a cursor, as for a host that another daemon queries, lost entries cannot be read again.
        let mut line = Line::new(true);
        line.begin(&made(None));
        assert_eq!(line.take(&answer(1..2, None)), Order::Lost(1));
        assert_eq!(line.take(&answer(2..3, None)), Order::GoesOn);
    }

    #[test]
    fn one_that_is_started_again_has_numbers_of_its_own() {
        let mut line = Line::new(true);
        line.begin(&made(Some("j.0")));
        assert_eq!(line.take(&answer(0..9, Some("j.9"))), Order::GoesOn);
        line.begin(&made(Some("j.9")));
        assert_eq!((line.next, line.cursor.as_deref()), (0, Some("j.9")));
        assert_eq!(line.take(&answer(0..1, Some("j.10"))), Order::GoesOn);
    }

    #[test]
    fn what_was_missed_between_is_reported() {
        let describe = |again: Again, happens| again.describe(happens, Duration::from_millis(2_500));
        assert!(describe(Again::WhereItWas, true).ends_with("nothing was missed"));
        assert!(describe(Again::FromNow, true).contains("in the 3 s between may be missed"));
        assert!(describe(Again::Elsewhere, true).contains("another sensor"));
        for again in [Again::FromNow, Again::Elsewhere] {
            assert!(describe(again, false).contains("the samples of the 3 s between are missed"));
        }
    }
}
