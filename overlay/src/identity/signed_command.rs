//! Signed commands (orders) to processes: signing one, and verification of a received one, including replay
//! protection.
//!
//! Pure: callers pass the calendar time `now`. Rules: an order is valid if it names this domain, root and
//! host, its signer's chain is valid and has the role of operator, and it has not expired; each order is
//! accepted once. Which peer hands it over does not matter.
//! Not here: whether the command is allowed (`sensor::control`), the files (`command_files`).

use super::key::{self, Key};
use super::principal::{Action, Principal};
use super::record::Opener;
use super::refused::Refused;
use super::token_text::{self, Kind};
use super::trust::Affiliation;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::control::{LIFE_MAX, Nonce, Order, SignedOrder};
use wire::credential::Chain;
use wire::id::{DomainName, HostName, PeerKey};
use wire::time::Time;

const LINE: Kind = Kind { prefix: "visperforder1-", what: "order", made_by: "visperf kill" };

/// How far the signer's clock may be ahead: many times the difference between hosts with synchronized clocks.
/// If the signer's clock is behind, its orders expire earlier by the same amount.
pub const AHEAD_MAX: Duration = Duration::from_secs(5);

/// Orders of one operator that are stored one by one: more than a sensor takes during the life of one. Beyond
/// this number, the lowest stored number becomes the floor.
pub const ORDERS_MAX: usize = 1024;

/// Operators that are stored: with their orders, at most about 2 MiB. An operator whose orders have all
/// expired makes room.
pub const OPERATORS_MAX: usize = 64;

/// Sign `order` with `key`, whose certificate is `chain`.
///
/// # Errors
/// None in practice: every valid name fits.
pub fn sign(order: &Order, key: &Key, chain: &Chain) -> Result<SignedOrder, Refused> {
    Ok(SignedOrder { order: key.seal(order)?, chain: chain.clone() })
}

/// The text of a signed order, one line, as it is handed to a daemon.
#[must_use]
pub fn text(order: &SignedOrder) -> String {
    token_text::write(LINE, order)
}

/// Parse such a line; its content is not verified yet.
///
/// # Errors
/// If it is another text, or was cut.
pub fn parse(text: &str) -> Result<SignedOrder, Unreadable> {
    Ok(token_text::read(LINE, text)?)
}

/// Why a text is not an order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct Unreadable(#[from] token_text::Error);

/// The daemon that received an order.
#[derive(Clone, Debug)]
pub struct Recipient {
    pub domain: DomainName,
    pub host: HostName,
}

impl Opener<'_> {
    /// Verify an order. Returns it and the operator that signed it.
    pub(super) fn order(
        &mut self,
        signed: &SignedOrder,
        here: &Recipient,
    ) -> Result<(Order, Principal), Refused> {
        let claimed = signed.order.unverified()?;
        check_here(&claimed, here)?;
        let root = self.trust.root_of(&here.domain)?;
        if claimed.root != root {
            let domain = here.domain.clone();
            return Err(Refused::Root { domain, found: claimed.root, expected: root });
        }
        let signer = signed.order.signer();
        let affiliation = Affiliation::Member;
        let operator =
            self.verified.principal(&signed.chain, signer, self.now, self.deny, affiliation, root)?;
        if operator.domain.as_ref() != Some(&here.domain) {
            let own = operator.domain.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
            return Err(Refused::OrderElsewhere {
                field: "domain",
                found: own,
                here: here.domain.to_string(),
            });
        }
        operator.may(Action::ControlProcesses).map_err(|refused| not_operator(refused, &operator))?;
        let order = key::open(&signed.order, operator.peer)?;
        check_times(&order, self.now)?;
        Ok((order, operator))
    }
}

fn not_operator(refused: Refused, operator: &Principal) -> Refused {
    if matches!(refused, Refused::Role { .. }) {
        return Refused::NotOperator { peer: operator.peer, found: operator.roles };
    }
    refused
}

fn check_here(order: &Order, here: &Recipient) -> Result<(), Refused> {
    let elsewhere = |field, found: String, here: String| Err(Refused::OrderElsewhere { field, found, here });
    if order.domain != here.domain {
        return elsewhere("domain", order.domain.to_string(), here.domain.to_string());
    }
    if order.host != here.host {
        return elsewhere("host", order.host.to_string(), here.host.to_string());
    }
    Ok(())
}

fn check_times(order: &Order, now: Time) -> Result<(), Refused> {
    let span = order.expires.since(order.issued);
    if span > LIFE_MAX || span.is_zero() {
        return Err(Refused::OrderSpan { span, max: LIFE_MAX });
    }
    if now.plus(AHEAD_MAX) < order.issued {
        return Err(Refused::OrderEarly { issued: order.issued, now });
    }
    if now >= order.expires {
        return Err(Refused::OrderStale { ended: order.expires, now });
    }
    Ok(())
}

/// Replay protection: the orders received so far, by operator, so that none is accepted twice. It survives
/// restarts.
///
/// Expired orders are dropped, but the highest dropped number is stored, so that none of them is accepted
/// again after the clock is set back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayGuard {
    operators: BTreeMap<PeerKey, OperatorCommands>,
    /// All orders of the operators that were dropped expired at or before this time.
    forgotten: Option<Time>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct OperatorCommands {
    /// Orders up to this number count as received.
    floor: u64,
    /// When the last of its orders expires.
    until: Time,
    /// Orders that may not have expired yet, by number.
    orders: BTreeMap<u64, (Nonce, Time)>,
}

impl ReplayGuard {
    /// Record that `order` of `operator`, which was verified, is received at `now`.
    ///
    /// # Errors
    /// If it was received before, or may have been; nothing has changed then.
    pub fn take(&mut self, operator: PeerKey, order: &Order, now: Time) -> Result<(), Refused> {
        let (peer, sequence) = (operator, order.sequence);
        match self.operators.get(&operator) {
            Some(known) => known.check(peer, order)?,
            None if self.forgotten.is_some_and(|until| order.expires <= until) => {
                return Err(Refused::OrderOld { peer, sequence, floor: sequence });
            }
            None => self.make_room(now)?,
        }
        let known = self.operators.entry(operator).or_default();
        known.until = known.until.max(order.expires);
        known.orders.insert(sequence, (order.nonce, order.expires));
        known.forget(now);
        Ok(())
    }

    fn make_room(&mut self, now: Time) -> Result<(), Refused> {
        if self.operators.len() < OPERATORS_MAX {
            return Ok(());
        }
        let first = self.operators.iter().min_by_key(|(_, known)| known.until);
        match first.map(|(&peer, known)| (peer, known.until)) {
            Some((peer, until)) if until <= now => {
                self.operators.remove(&peer);
                self.forgotten = self.forgotten.max(Some(until));
                Ok(())
            }
            _ => {
                let remedy = "wait until orders have ended";
                Err(Refused::Full { what: "operators with orders", max: OPERATORS_MAX, remedy })
            }
        }
    }
}

impl OperatorCommands {
    fn check(&self, peer: PeerKey, order: &Order) -> Result<(), Refused> {
        let sequence = order.sequence;
        if let Some((nonce, _)) = self.orders.get(&sequence) {
            let is_same = *nonce == order.nonce;
            return Err(match is_same {
                true => Refused::OrderRepeated { peer, sequence },
                false => Refused::OrderTwin { peer, sequence },
            });
        }
        match sequence <= self.floor {
            true => Err(Refused::OrderOld { peer, sequence, floor: self.floor }),
            false => Ok(()),
        }
    }

    /// Drop expired orders, and the lowest ones beyond [`ORDERS_MAX`].
    fn forget(&mut self, now: Time) {
        let too_many = self.orders.len().saturating_sub(ORDERS_MAX);
        let lowest: Vec<u64> = self.orders.keys().copied().take(too_many).collect();
        let ended = self.orders.iter().filter(|(_, (_, expires))| *expires <= now).map(|(&number, _)| number);
        let gone: Vec<u64> = ended.chain(lowest).collect();
        for number in gone {
            self.orders.remove(&number);
            self.floor = self.floor.max(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::control::{Act, Signal};
    use wire::process::ProcessKey;

    const OPERATOR: PeerKey = PeerKey([7; 32]);

    fn order(sequence: u64, nonce: u8, issued: u64) -> Order {
        let issued = at(issued);
        Order {
            domain: DomainName::try_from("alpha").expect("a name"),
            root: PeerKey([1; 32]),
            host: HostName::try_from("a1").expect("a name"),
            process: ProcessKey { pid: 7, start_ns: 1 },
            act: Act::Signal(Signal::Term),
            nonce: Nonce([nonce; 16]),
            sequence,
            issued,
            expires: issued.plus(LIFE_MAX),
        }
    }

    fn at(secs: u64) -> Time {
        Time::default().plus(Duration::from_secs(secs))
    }

    #[test]
    fn each_is_taken_once_in_any_order_while_it_lives() {
        let mut seen = ReplayGuard::default();
        let mut take =
            |sequence, nonce, issued| seen.take(OPERATOR, &order(sequence, nonce, issued), at(issued));
        assert_eq!(take(5, 1, 0), Ok(()));
        assert_eq!(take(3, 1, 0), Ok(()), "overtaken on the way");
        assert!(matches!(take(5, 1, 0), Err(Refused::OrderRepeated { sequence: 5, .. })));
        assert!(matches!(take(5, 2, 0), Err(Refused::OrderTwin { .. })));
        assert_eq!(take(9, 1, 40), Ok(()));
        // Both have expired and are dropped; their numbers and those between stay used.
        for sequence in [3, 4, 5] {
            assert!(matches!(take(sequence, 3, 40), Err(Refused::OrderOld { floor: 5, .. })), "{sequence}");
        }
        assert_eq!(take(6, 1, 40), Ok(()));
    }

    #[test]
    fn a_clock_set_back_opens_nothing_again() {
        let mut seen = ReplayGuard::default();
        let early = order(1, 1, 0);
        assert_eq!(seen.take(OPERATOR, &early, at(0)), Ok(()));
        assert_eq!(seen.take(OPERATOR, &order(2, 2, 100), at(100)), Ok(()));
        assert!(seen.take(OPERATOR, &early, at(1)).is_err());
    }

    #[test]
    fn what_is_remembered_is_bounded_and_what_is_forgotten_stays_refused() {
        let mut seen = ReplayGuard::default();
        let count = ORDERS_MAX as u64 + 50;
        for sequence in 1..=count {
            assert_eq!(seen.take(OPERATOR, &order(sequence, 1, 0), at(0)), Ok(()), "{sequence}");
        }
        assert_eq!(seen.operators[&OPERATOR].orders.len(), ORDERS_MAX);
        for sequence in 1..=count {
            assert!(seen.take(OPERATOR, &order(sequence, 1, 0), at(0)).is_err(), "{sequence}");
        }
        // Operators: none makes room before its orders expire; the orders of one that did are refused.
        for number in 1..OPERATORS_MAX as u8 {
            assert_eq!(seen.take(PeerKey([number + 100; 32]), &order(1, number, 0), at(0)), Ok(()));
        }
        let late = PeerKey([99; 32]);
        assert!(matches!(seen.take(late, &order(1, 1, 0), at(0)), Err(Refused::Full { .. })));
        assert_eq!(seen.take(late, &order(1, 1, 60), at(60)), Ok(()));
        assert_eq!(seen.operators.len(), OPERATORS_MAX);
        for number in 1..OPERATORS_MAX as u8 {
            let again = seen.take(PeerKey([number + 100; 32]), &order(1, number, 0), at(0));
            assert!(again.is_err(), "{number}: {again:?}");
        }
    }

    #[test]
    fn an_order_holds_for_its_time_and_the_clocks_are_reported() {
        let given = order(1, 1, 100);
        assert_eq!(check_times(&given, at(100)), Ok(()));
        assert_eq!(check_times(&given, at(95)), Ok(()), "a clock ahead by as much as is allowed");
        let message = check_times(&given, at(90)).expect_err("too far ahead").to_string();
        assert!(message.contains("10 s ahead") && message.contains("compare the clocks"), "{message}");
        assert_eq!(check_times(&given, given.expires.minus(Duration::from_micros(1))), Ok(()));
        let message = check_times(&given, at(142)).expect_err("over").to_string();
        assert!(message.contains("12 s ago") && message.contains("compare the clocks"), "{message}");
        let longer =
            Order { expires: given.issued.plus(LIFE_MAX + Duration::from_micros(1)), ..given.clone() };
        assert!(matches!(check_times(&longer, at(100)), Err(Refused::OrderSpan { .. })));
        let none = Order { expires: given.issued, ..given };
        assert!(matches!(check_times(&none, at(100)), Err(Refused::OrderSpan { .. })));
    }
}
