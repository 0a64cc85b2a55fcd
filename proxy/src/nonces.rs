//! Nonces of HTTP Digest: created and verified without a table, each count usable once.
//!
//! ```text
//! nonce = base64url(issued µs, 8 bytes ‖ random, 12 ‖ HMAC-SHA-256(boot secret, both ‖ channel), first 16)
//! ```
//! Pure; callers pass `now`, the random part and the channel: what the nonce is bound to besides its realm.
//! Rules: a nonce of another proxy, another start or another channel, or one older than [`LIFE`], is invalid.
//! Each count of a used nonce is accepted once, in a window of [`WINDOW`] (clients send several requests at
//! once, and browsers reorder them). Only used nonces are stored. When the table is full, the oldest are
//! dropped and every nonce of their age becomes invalid, so that dropping never makes a captured login valid
//! again.
//! Not here: whether a response is correct (`login`).

use data_encoding::BASE64URL_NOPAD;
use std::collections::BTreeMap;
use std::time::Duration;
use tunnel::hash::{Algorithm, Tag};
use wire::time::Moment;

/// Lifetime of a nonce.
pub const LIFE: Duration = Duration::from_secs(60);

/// Age from which the client receives the next nonce with its answer.
pub const RENEWED_FROM: Duration = Duration::from_secs(30);

/// Counts this far below the highest are still accepted, each once.
pub const WINDOW: u32 = 64;

/// Most used nonces: a thousand new clients per second for a minute; some 4 MiB.
pub const USED_MAX: usize = 60_000;

/// Length of the random part of a nonce.
pub const RANDOM_LEN_BYTES: usize = 12;

const ISSUED_LEN_BYTES: usize = 8;
const MADE_LEN_BYTES: usize = ISSUED_LEN_BYTES + RANDOM_LEN_BYTES;
const TAG_LEN_BYTES: usize = 16;

/// Result of checking a nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonceStatus {
    /// Issued here, for this channel, and not expired.
    Live(Nonce),
    /// Not issued here since the start, or for another channel, or expired.
    OfNoUse,
}

/// A valid nonce, which may be used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nonce {
    issued: Moment,
    random: [u8; RANDOM_LEN_BYTES],
}

/// The count was used, or is below the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed;

/// Used counts of one nonce.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    highest: u32,
    /// Bit `n`: the count `highest - n` was used.
    taken: u64,
}

impl Counts {
    fn take(&mut self, count: u32) -> Result<(), Replayed> {
        if count > self.highest {
            let by = count - self.highest;
            self.taken = if by >= WINDOW { 0 } else { self.taken << by };
            self.taken |= 1;
            self.highest = count;
            return Ok(());
        }
        let below = self.highest - count;
        if count == 0 || below >= WINDOW || self.taken >> below & 1 == 1 {
            return Err(Replayed);
        }
        self.taken |= 1 << below;
        Ok(())
    }
}

/// Nonces of one run of a proxy.
pub struct Nonces {
    secret: [u8; 32],
    used: BTreeMap<Nonce, Counts>,
    /// Nonces issued up to this time are invalid, used or not.
    given_up: Option<Moment>,
}

impl Nonces {
    /// No used nonces; `secret` is random at each start.
    #[must_use]
    pub fn new(secret: [u8; 32]) -> Nonces {
        Nonces { secret, used: BTreeMap::new(), given_up: None }
    }

    /// Create a nonce bound to `channel`.
    #[must_use]
    pub fn issue(&self, random: [u8; RANDOM_LEN_BYTES], channel: &[u8], now: Moment) -> String {
        let mut bytes = made(Nonce { issued: now, random });
        let tag = self.tag(&bytes, channel);
        bytes.extend_from_slice(tag.bytes());
        BASE64URL_NOPAD.encode(&bytes)
    }

    /// Check the nonce of a client.
    #[must_use]
    pub fn look(&self, text: &str, channel: &[u8], now: Moment) -> NonceStatus {
        self.read(text, channel, now).map_or(NonceStatus::OfNoUse, NonceStatus::Live)
    }

    /// Whether the client should receive a new nonce.
    #[must_use]
    pub fn is_old(nonce: Nonce, now: Moment) -> bool {
        now.since(nonce.issued) >= RENEWED_FROM
    }

    /// Use up `count` of `nonce`. Call it only for a client that proved the account, so that no other client
    /// fills the table.
    ///
    /// # Errors
    /// If the count was already used.
    pub fn spend(&mut self, nonce: Nonce, count: u32, now: Moment) -> Result<(), Replayed> {
        if self.is_given_up(nonce) {
            return Err(Replayed);
        }
        if !self.used.contains_key(&nonce) && self.used.len() >= USED_MAX {
            self.make_room(now);
            if self.is_given_up(nonce) {
                return Err(Replayed);
            }
        }
        self.used.entry(nonce).or_default().take(count)
    }

    /// Number of stored nonces.
    #[must_use]
    pub fn used_len(&self) -> usize {
        self.used.len()
    }

    fn is_given_up(&self, nonce: Nonce) -> bool {
        self.given_up.is_some_and(|until| nonce.issued <= until)
    }

    fn make_room(&mut self, now: Moment) {
        while let Some(oldest) = self.used.first_entry() {
            let issued = oldest.key().issued;
            if self.used.len() < USED_MAX && now.since(issued) <= LIFE {
                return;
            }
            self.used.pop_first();
            self.given_up = self.given_up.max(Some(issued));
        }
    }

    fn read(&self, text: &str, channel: &[u8], now: Moment) -> Option<Nonce> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
        let (made, tag) = bytes.split_at_checked(MADE_LEN_BYTES)?;
        if !self.tag(made, channel).fits(tag) {
            return None;
        }
        let (issued, random) = made.split_at(ISSUED_LEN_BYTES);
        let micros = u64::from_be_bytes(issued.try_into().ok()?);
        let nonce = Nonce { issued: Moment(Duration::from_micros(micros)), random: random.try_into().ok()? };
        (now.since(nonce.issued) <= LIFE && !self.is_given_up(nonce)).then_some(nonce)
    }

    fn tag(&self, made: &[u8], channel: &[u8]) -> Tag {
        Algorithm::Sha256.tag(&self.secret, &[made, channel]).cut(TAG_LEN_BYTES)
    }
}

impl std::fmt::Debug for Nonces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Nonces({} used)", self.used.len())
    }
}

fn made(nonce: Nonce) -> Vec<u8> {
    let micros = u64::try_from(nonce.issued.0.as_micros()).unwrap_or(u64::MAX);
    [micros.to_be_bytes().as_slice(), &nonce.random].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn at(millis: u64) -> Moment {
        Moment(Duration::from_millis(millis))
    }

    fn random(number: u64) -> [u8; RANDOM_LEN_BYTES] {
        let mut random = [0; RANDOM_LEN_BYTES];
        random[..8].copy_from_slice(&number.to_be_bytes());
        random
    }

    fn live(nonces: &Nonces, text: &str, now: Moment) -> Nonce {
        match nonces.look(text, b"channel", now) {
            NonceStatus::Live(nonce) => nonce,
            NonceStatus::OfNoUse => panic!("{text} is of no use"),
        }
    }

    #[test]
    fn a_nonce_is_known_here_on_its_channel_and_for_its_life() {
        let nonces = Nonces::new([7; 32]);
        let text = nonces.issue(random(1), b"channel", at(5000));
        assert!(!Nonces::is_old(live(&nonces, &text, at(5000)), at(34_999)));
        assert!(Nonces::is_old(live(&nonces, &text, at(65_000)), at(65_000)));
        let no_use = |nonces: &Nonces, text: &str, channel: &[u8], now| {
            assert_eq!(nonces.look(text, channel, now), NonceStatus::OfNoUse, "{text}");
        };
        no_use(&nonces, &text, b"channel", at(65_001));
        no_use(&nonces, &text, b"another channel", at(5000));
        no_use(&Nonces::new([8; 32]), &text, b"channel", at(5000));
        no_use(&nonces, &text[1..], b"channel", at(5000));
        no_use(&nonces, &format!("{text}AAAA"), b"channel", at(5000));
        no_use(&nonces, "", b"channel", at(5000));
        for place in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            no_use(&nonces, &String::from_utf8(changed).unwrap(), b"channel", at(5000));
        }
    }

    #[test]
    fn each_count_is_taken_once_within_the_window() {
        let mut nonces = Nonces::new([7; 32]);
        let nonce = live(&nonces, &nonces.issue(random(1), b"channel", at(0)), at(0));
        let mut spend = |count| nonces.spend(nonce, count, at(1)).is_ok();
        assert!(spend(1) && !spend(1) && !spend(0));
        assert!(spend(5) && spend(3) && spend(2) && !spend(3));
        assert!(spend(100) && spend(37) && !spend(36), "36 lies below the window");
        assert!(spend(u32::MAX) && !spend(u32::MAX) && !spend(100) && spend(u32::MAX - 63));
    }

    #[test]
    fn making_room_never_lets_a_used_nonce_in_again() {
        let mut nonces = Nonces::new([7; 32]);
        let mut first = Vec::new();
        for number in 0..USED_MAX as u64 + 10 {
            let now = at(number / 10);
            let text = nonces.issue(random(number), b"channel", now);
            let nonce = live(&nonces, &text, now);
            assert_eq!(nonces.spend(nonce, 1, now), Ok(()));
            if number < 5 {
                first.push((text, nonce));
            }
            assert!(nonces.used_len() <= USED_MAX);
        }
        for (text, nonce) in first {
            assert_eq!(nonces.look(&text, b"channel", at(7000)), NonceStatus::OfNoUse);
            assert_eq!(nonces.spend(nonce, 1, at(7000)), Err(Replayed));
            assert_eq!(nonces.spend(nonce, 2, at(7000)), Err(Replayed));
        }
    }

    proptest! {
        #[test]
        fn no_count_is_taken_twice(counts in prop::collection::vec(1_u32..200, 0..400)) {
            let mut kept = Counts::default();
            let mut taken = BTreeSet::new();
            for count in counts {
                let highest = taken.last().copied().unwrap_or(0);
                let is_new = !taken.contains(&count) && highest.saturating_sub(count) < WINDOW;
                prop_assert_eq!(kept.take(count).is_ok(), is_new, "{}", count);
                if is_new {
                    taken.insert(count);
                }
            }
        }
    }
}
