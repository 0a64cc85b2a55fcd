//! Numbers with few decimals, which most are: times to the microsecond, rates, shares.
//!
//! Pure. Rule: the digits are the fewest that the number is read back from, as those of the general way are.

/// Below this, numbers are closer to each other than a millionth, so no two decimals of six places are the same number, and none
/// of fewer places is written as one of six.
const EXACT_BELOW: f64 = 4_294_967_296.0;
/// A one with six decimals.
const SCALE: u64 = 1_000_000;

/// Appends a finite number. A whole one ends with `whole` where it has no exponent.
pub(crate) fn write_double(out: &mut String, value: f64, whole: &str) {
    let Some(millionths) = millionths(value) else {
        let mut buffer = zmij::Buffer::new();
        let text = buffer.format_finite(value);
        return match text.strip_suffix(".0") {
            Some(digits) => [digits, whole].into_iter().for_each(|part| out.push_str(part)),
            None => out.push_str(text),
        };
    };
    out.push_str(itoa::Buffer::new().format(millionths / SCALE));
    let rest = millionths % SCALE;
    if rest == 0 {
        return out.push_str(whole);
    }
    // A one before the decimals keeps the noughts that they begin with.
    let mut buffer = itoa::Buffer::new();
    let decimals = buffer.format(SCALE + rest);
    let last = decimals.bytes().rposition(|digit| digit != b'0').unwrap_or_default();
    out.push('.');
    out.push_str(&decimals[1..=last]);
}

/// The number in millionths, if it is a whole number of them and no general way is needed.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // within 2^32 * 10^6 < 2^53
fn millionths(value: f64) -> Option<u64> {
    if !(1e-3..EXACT_BELOW).contains(&value) {
        return None;
    }
    let millionths = (value * 1e6 + 0.5) as u64;
    (millionths as f64 / 1e6 == value).then_some(millionths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn general(value: f64) -> String {
        zmij::Buffer::new().format_finite(value).to_owned()
    }

    fn written(value: f64) -> String {
        let mut out = String::new();
        write_double(&mut out, value, ".0");
        out
    }

    #[test]
    fn digits_are_those_of_the_general_way() {
        let values = [
            0.0,
            -0.0,
            0.1,
            0.25,
            1.0,
            1e-3,
            999e-6,
            1e-6,
            1e21,
            1e16,
            1_795_178_489.25,
            4_294_967_295.999_999,
        ];
        for value in
            values.into_iter().chain([4_294_967_296.0, 123_456.000_001, f64::MIN_POSITIVE, f64::MAX, -2.5])
        {
            assert_eq!(written(value), general(value));
        }
    }

    proptest! {
        #[test]
        fn of_every_number_too(
            micros in 0_u64..5_000_000_000_000_000,
            places in 0_u32..7,
            bits in any::<f64>().prop_filter("finite", |number| number.is_finite()),
        ) {
            let step = 10_u64.pow(places);
            #[allow(clippy::cast_precision_loss)]
            let few = (micros / step * step) as f64 / 1e6;
            for value in [few, bits, few + 1e-7, few.next_up(), few.next_down()] {
                prop_assert_eq!(written(value), general(value));
            }
        }
    }
}
