//! Jitter of marks: a mark is drawn slightly beside its position, by an offset of its own, so that marks at
//! one position are seen as many; idle processes are in a separate band beside the chart.
//!
//! Pure. Rule: the offset of a mark never changes, and marks near zero glide from the band to their position;
//! so nothing jumps.

use super::Member;
use super::measure::{Measure, Spot};
use overlay::dice;

/// Width of the band of idle processes, as a share of the chart's width.
pub const BAND: f32 = 0.07;
/// Up to this x a mark is still partly in the band.
const BAND_UNTIL: f32 = 0.02;
/// Maximum offset of a mark, as a share of the chart.
const ASIDE: f32 = 0.008;
/// Maximum vertical offset in the band, as a share of the chart.
const ASIDE_IN_BAND: f32 = 0.06;

/// Where the mark at `spot` is drawn; the band is left of 0.
#[must_use]
pub fn spread(member: Member, measure: Measure, spot: Spot) -> Spot {
    let (across, along) = numbers(member, measure);
    // From 1, in the band, to 0.
    let resting = (1.0 - spot.x / BAND_UNTIL).clamp(0.0, 1.0);
    let aside = (along - 0.5) * 2.0 * (ASIDE + (ASIDE_IN_BAND - ASIDE) * resting);
    let y = spot.y + aside;
    // An offset beyond the edge is reflected inside.
    let y = if y < 0.0 {
        -y
    } else if y > 1.0 {
        2.0 - y
    } else {
        y
    };
    let x = spot.x + (across - 0.5) * ASIDE * (1.0 - resting) - resting * BAND * (0.12 + 0.76 * across);
    Spot { x: x.min(1.0), y }
}

/// Two pseudo-random numbers from 0 to 1, fixed for each mark.
#[allow(clippy::cast_precision_loss)]
fn numbers(member: Member, measure: Measure) -> (f32, f32) {
    let number = u64::from(member.pid)
        .wrapping_add(u64::from(member.host) << 32)
        .wrapping_add((measure.at() as u64) << 56)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = dice::mixed(number);
    let share = |bits: u64| (bits & 0xffff) as f32 / 65_535.0;
    (share(mixed), share(mixed >> 16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_mark_glides_and_stays_in_sight(pid in 1_u32..1 << 22, x in 0.0_f32..1.0, y in 0.0_f32..=1.0) {
            let member = Member { host: 3, pid, start_ns: 1 };
            for measure in Measure::ALL {
                let drawn = |x: f32| spread(member, measure, Spot { x, y });
                let (here, near) = (drawn(x), drawn(x + 1e-4));
                prop_assert!((-BAND..=1.0).contains(&here.x) && (0.0..=1.0).contains(&here.y), "{here:?}");
                prop_assert!((here.x - near.x).abs() < 2e-3 && (here.y - near.y).abs() < 2e-3);
                prop_assert!((here.x - x).abs() <= BAND + BAND_UNTIL && (here.y - y).abs() <= ASIDE_IN_BAND);
                prop_assert!(drawn(0.0).x < 0.0, "who uses nothing is in the band");
            }
        }
    }
}
