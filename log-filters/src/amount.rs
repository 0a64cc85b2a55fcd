//! Amounts of memory as batch systems print them: `4096`, `50M`, `100kb`, `1.5GiB`.
//!
//! Pure. Rule: a unit is a power of 1024, as in Slurm, Grid Engine and PBS. Not here: durations (`span`).

/// Parses an amount of memory to bytes, without a fraction; `None` if it is invalid.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        "p" | "pb" | "pib" => 50,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    whole.checked_add(fraction_bytes(fraction, shift))
}

/// Bytes of a decimal fraction of a unit; six digits of it are enough.
fn fraction_bytes(digits: &str, shift: u32) -> u64 {
    let digits = &digits[..digits.len().min(6)];
    let Ok(number) = digits.parse::<u64>() else { return 0 };
    let scale = 10u64.pow(u32::try_from(digits.len()).unwrap_or(0));
    u64::try_from((u128::from(number) << shift) / u128::from(scale)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_bytes() {
        for (text, expected) in [
            ("4096", Some(4096)),
            ("50M", Some(50 << 20)),
            ("100kb", Some(100 << 10)),
            ("1.5GiB", Some(3 << 29)),
            ("4144.000000", Some(4144)),
            ("4144.000000K", Some(4144 << 10)),
            ("2T", Some(2 << 40)),
            (" 7 MB ", Some(7 << 20)),
            ("0", Some(0)),
            ("", None),
            ("M", None),
            (".5G", None),
            ("1.2.3", None),
            ("10X", None),
            ("-5", None),
            ("99999999999P", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
