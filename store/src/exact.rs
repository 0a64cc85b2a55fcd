//! Exact numbers: the values of metrics in a form in which sums and differences are exact.
//!
//! Pure. Kernels count in integers, ticks or microseconds; written as a double, such a value is a decimal
//! fraction that no double has exactly, and sums of it drift. As a count of millionths it is exact.

use wire::sample::Number;

/// A value of a metric.
#[derive(Clone, Copy, Debug)]
pub enum Exact {
    /// An integer.
    Whole(u64),
    /// Millionths: a real number that is exactly the double nearest to a multiple of 0.000001.
    Micro(i64),
    /// Any other real number.
    Real(f64),
}

/// How a value is represented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Whole = 0,
    Micro = 1,
    Real = 2,
}

impl Kind {
    pub(crate) fn of_bits(bits: u8) -> Option<Kind> {
        [Kind::Whole, Kind::Micro, Kind::Real].into_iter().find(|kind| *kind as u8 == bits)
    }
}

/// Equal if of the same kind and with the same bits; so NaN equals itself, and -0 is not 0.
impl PartialEq for Exact {
    fn eq(&self, other: &Exact) -> bool {
        self.kind() == other.kind() && self.bits() == other.bits()
    }
}

impl From<Number> for Exact {
    fn from(number: Number) -> Exact {
        match number {
            Number::Whole(whole) => Exact::Whole(whole),
            Number::Real(real) => millionths(real).map_or(Exact::Real(real), Exact::Micro),
        }
    }
}

impl From<Exact> for Number {
    fn from(exact: Exact) -> Number {
        match exact {
            Exact::Whole(whole) => Number::Whole(whole),
            Exact::Micro(_) | Exact::Real(_) => Number::Real(exact.as_f64()),
        }
    }
}

impl Exact {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Exact::Whole(_) => Kind::Whole,
            Exact::Micro(_) => Kind::Micro,
            Exact::Real(_) => Kind::Real,
        }
    }

    /// The bits of the number within its kind.
    pub(crate) fn bits(self) -> u64 {
        match self {
            Exact::Whole(whole) => whole,
            Exact::Micro(micro) => micro.cast_unsigned(),
            Exact::Real(real) => real.to_bits(),
        }
    }

    pub(crate) fn of_bits(kind: Kind, bits: u64) -> Exact {
        match kind {
            Kind::Whole => Exact::Whole(bits),
            Kind::Micro => Exact::Micro(bits.cast_signed()),
            Kind::Real => Exact::Real(f64::from_bits(bits)),
        }
    }

    /// The nearest double.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn as_f64(self) -> f64 {
        match self {
            Exact::Whole(whole) => whole as f64,
            Exact::Micro(micro) => micro as f64 / 1e6,
            Exact::Real(real) => real,
        }
    }

    /// The sum; a double if the kinds differ or the exact sum is out of range.
    pub(crate) fn plus(self, other: Exact) -> Exact {
        let exact = match (self, other) {
            (Exact::Whole(a), Exact::Whole(b)) => a.checked_add(b).map(Exact::Whole),
            (Exact::Micro(a), Exact::Micro(b)) => a.checked_add(b).map(Exact::Micro),
            _ => None,
        };
        exact.unwrap_or_else(|| Exact::Real(self.as_f64() + other.as_f64()))
    }

    /// By how much a counter increased from `previous` to this value. A counter that decreased was reset
    /// meanwhile and has counted this value since.
    pub(crate) fn increase_since(self, previous: Exact) -> Exact {
        if self.as_f64() < previous.as_f64() {
            return self;
        }
        match (self, previous) {
            (Exact::Whole(a), Exact::Whole(b)) if a >= b => Exact::Whole(a - b),
            (Exact::Whole(a), Exact::Whole(_)) => Exact::Whole(a),
            (Exact::Micro(a), Exact::Micro(b)) => Exact::Micro(a - b),
            _ => Exact::Real(self.as_f64() - previous.as_f64()),
        }
    }

    /// The smaller number.
    pub(crate) fn min(self, other: Exact) -> Exact {
        if other.is_below(self) { other } else { self }
    }

    /// The larger number.
    pub(crate) fn max(self, other: Exact) -> Exact {
        if self.is_below(other) { other } else { self }
    }

    fn is_below(self, other: Exact) -> bool {
        match (self, other) {
            (Exact::Whole(a), Exact::Whole(b)) => a < b,
            (Exact::Micro(a), Exact::Micro(b)) => a < b,
            _ => self.as_f64() < other.as_f64(),
        }
    }
}

/// Converts a real number to millionths, if that is exact.
fn millionths(real: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    let scaled = (real * 1e6).round();
    #[allow(clippy::cast_possible_truncation)] // Below 2^53.
    let whole = (scaled.abs() < EXACT).then_some(scaled as i64)?;
    #[allow(clippy::cast_precision_loss)] // Below 2^53.
    ((whole as f64 / 1e6).to_bits() == real.to_bits()).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_exact_and_odd_numbers_stay_doubles() {
        assert_eq!(Exact::from(Number::Real(1234.56)), Exact::Micro(1_234_560_000));
        for real in [0.1 + 0.2, -0.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(Exact::from(Number::Real(real)), Exact::Real(real), "{real}");
        }
        assert_eq!(Exact::Whole(1).plus(Exact::Whole(u64::MAX)), Exact::Real(u64::MAX as f64 + 1.0));
        assert_eq!(Exact::Micro(100_000).plus(Exact::Micro(200_000)), Exact::Micro(300_000));
    }

    #[test]
    fn a_counter_that_fell_has_counted_from_zero() {
        assert_eq!(Exact::Whole(7).increase_since(Exact::Whole(5)), Exact::Whole(2));
        assert_eq!(Exact::Whole(5).increase_since(Exact::Whole(7)), Exact::Whole(5));
        let (large, larger) = (u64::MAX - 1, u64::MAX);
        assert_eq!(Exact::Whole(larger).increase_since(Exact::Whole(large)), Exact::Whole(1));
        assert_eq!(Exact::Whole(large).increase_since(Exact::Whole(larger)), Exact::Whole(large));
        assert_eq!(Exact::Real(0.5).increase_since(Exact::Whole(0)), Exact::Real(0.5));
    }

    proptest! {
        #[test]
        fn a_number_is_unchanged(real in any::<f64>(), ticks in any::<i32>(), whole in any::<u64>()) {
            for number in [Number::Real(real), Number::Real(f64::from(ticks) / 100.0), Number::Whole(whole)] {
                let back = Number::from(Exact::from(number));
                prop_assert_eq!(format!("{back:?}"), format!("{number:?}"));
                let exact = Exact::from(number);
                prop_assert_eq!(Exact::of_bits(exact.kind(), exact.bits()), exact);
            }
        }
    }
}
