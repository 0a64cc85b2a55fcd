//! Import of accounts from the files of Apache's `htdigest`, one `name:realm:MD5` per line.
//!
//! Pure. Rule: an imported account has only an MD5 hash, so it is a viewer, and only where MD5 is enabled.
//! Secrets chosen by people are easier to guess than those that this program generates.
//! Not here: the permissions of the accounts (the caller decides).

use crate::account::{self, Name};
use tunnel::digest::Ha1;
use tunnel::hash::Algorithm;

/// Longest file, in bytes: the maximum number of accounts, with the longest lines.
pub const LEN_MAX_BYTES: u64 = (account::ACCOUNTS_MAX * 256) as u64;

/// Why a line is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The line is not of the form `name:realm:MD5`.
    #[error("line {line}: expected NAME:REALM:DIGITS with 32 hexadecimal digits, found something else")]
    Form {
        /// Line number, counted from 1.
        line: usize,
    },
    /// The account is of another realm, for which its hash is useless.
    #[error(
        "line {line}: expected realm {expected}, found another; digits of one realm prove nothing in another"
    )]
    Realm {
        /// Line number, counted from 1.
        line: usize,
        /// Realm of the accounts of this proxy.
        expected: String,
    },
    /// The name is not valid for an account.
    #[error("line {line}: {error}")]
    Name {
        /// Line number, counted from 1.
        line: usize,
        error: account::Error,
    },
}

/// Parse a file; all its accounts must be of `realm`.
///
/// # Errors
/// The first invalid line.
pub fn read(text: &str, realm: &str) -> Result<Vec<(Name, Ha1)>, Error> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(at, line)| one(at + 1, line, realm)).collect()
}

fn one(line: usize, text: &str, realm: &str) -> Result<(Name, Ha1), Error> {
    let mut parts = text.trim_end().split(':');
    let (Some(name), Some(found), Some(digits), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Error::Form { line });
    };
    if found != realm {
        return Err(Error::Realm { line, expected: realm.to_owned() });
    }
    let name = name.parse().map_err(|error| Error::Name { line, error })?;
    let ha1 = Ha1::from_hex(Algorithm::Md5, digits).ok_or(Error::Form { line })?;
    Ok((name, ha1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_htdigest_are_read() {
        // The output of `htdigest` for Mufasa, "Circle Of Life".
        let text = "Mufasa:testrealm@host.com:939e7578ed9e3c518a452acee763bce9\n\n";
        let read = read(text, "testrealm@host.com").expect("readable");
        let expected = Ha1::of(Algorithm::Md5, "Mufasa", "testrealm@host.com", "Circle Of Life");
        assert_eq!(read[0].1.secret_hex(), expected.secret_hex());
    }

    #[test]
    fn other_lines_are_refused_by_number() {
        let digits = "0".repeat(32);
        let check =
            |text: &str, expected: Error| assert_eq!(read(text, "r").map(|_| ()), Err(expected), "{text}");
        check(&format!("a:r:{digits}\nb:r\n"), Error::Form { line: 2 });
        check(&format!("a:r:{digits}:x"), Error::Form { line: 1 });
        check("a:r:zz", Error::Form { line: 1 });
        check(&format!("a:s:{digits}"), Error::Realm { line: 1, expected: "r".into() });
        check(&format!("a b:r:{digits}"), Error::Name { line: 1, error: account::Error::Name });
    }
}
