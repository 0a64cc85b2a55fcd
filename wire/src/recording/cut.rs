//! Cuts a part of a recording into a recording of its own.
//!
//! Pure. Rule: a part contains exactly the sweeps, lives and events within its span; it starts with a whole
//! sweep.

use super::segment::{Item, Player, Segment};
use super::{Recording, Serving};
use crate::process::ProcessKey;
use crate::process::delta::Encoder;
use std::collections::BTreeSet;

impl Recording {
    /// The part from `from_ns` to `to_ns`, both included, in nanoseconds since boot. Unreadable data of a
    /// segment count as a damaged block.
    #[must_use]
    pub fn cut(&self, from_ns: u64, to_ns: u64) -> Recording {
        let mut part = Recording::new(self.header.clone());
        part.header.from_ns = part.header.from_ns.max(from_ns);
        part.header.to_ns = part.header.to_ns.min(to_ns);
        part.damage = self.damage;
        part.end = self.end;
        let mut keys = BTreeSet::new();
        let mut player = Player::default();
        for whole in self.segments.iter().filter(|segment| segment.overlaps(from_ns, to_ns)) {
            let (segment, is_read) = cut(whole, from_ns, to_ns, &mut player, &mut keys);
            part.damage.blocks += u32::from(!is_read);
            part.segments.extend(Some(segment).filter(|segment| segment.len_bytes() > 0));
        }
        let is_within = |moment_ns: u64| (from_ns..=to_ns).contains(&moment_ns);
        let events = self.events.iter().filter(|event| is_within(self.header.moment_ns(event.seen)));
        part.events = events.cloned().collect();
        let serving = self.serving.iter().filter(|serving: &&Serving| keys.contains(&serving.key));
        part.serving = serving.cloned().collect();
        part
    }
}

/// The part of a segment, and whether all of the segment could be read.
fn cut(
    whole: &Segment,
    from_ns: u64,
    to_ns: u64,
    player: &mut Player,
    keys: &mut BTreeSet<ProcessKey>,
) -> (Segment, bool) {
    let (mut part, mut encoder, mut places) = (Segment::default(), Encoder::default(), 0);
    let read = player.play(whole, |item| {
        match item {
            Item::Swept(swept) if swept.sweep.begin_ns > to_ns => return false,
            Item::Swept(swept) if swept.sweep.begin_ns >= from_ns => {
                let (sweep, rows) = (swept.sweep, swept.rows);
                let there = rows.iter().flatten();
                keys.extend(there.clone().map(|row| row.key));
                // The table may have lost places at its end.
                places = places.max(rows.len());
                part.push_sweep(sweep.begin_ns, there.count(), |out| {
                    encoder.changes(sweep, rows, 0..places, out);
                });
            }
            Item::Ended(life) if (from_ns..=to_ns).contains(&life.end_ns) => {
                keys.insert(life.key);
                part.push_life(life);
            }
            Item::Swept(_) | Item::Ended(_) => {}
        }
        true
    });
    part.shrink();
    (part, read.is_ok())
}
