//! Formatting of numbers with few decimals, the most frequent kind: times to the microsecond, rates, shares.
//!
//! Pure. Rule: the output is the shortest text that parses to the same number, like that of the general
//! formatter.

/// Below this, the distance of adjacent numbers is less than a millionth, so two decimals with six places are
/// never the same number, and the shortest text is found.
const EXACT_BELOW: f64 = 4_294_967_296.0;
/// 10^6: six decimals.
const SCALE: u64 = 1_000_000;

/// Append a finite number. A whole number without exponent ends with `whole`.
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
    // The leading one preserves the leading zeros of the decimals.
    let mut buffer = itoa::Buffer::new();
    let decimals = buffer.format(SCALE + rest);
    let last = decimals.bytes().rposition(|digit| digit != b'0').unwrap_or_default();
    out.push('.');
    out.push_str(&decimals[1..=last]);
}

/// The number in millionths, if it is a whole number of them; otherwise the general formatter is needed.
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
