//! Accounts of other programs: the files that Apache's `htdigest` writes, `name:realm:MD5` a line.
//!
//! Pure. Rule: such an account has MD5 and nothing else, so it is a viewer, and only where MD5 is switched on; secrets
//! of people are guessed more easily than those that this program makes.
//! Not here: what it may see (the caller says).

use crate::account::{self, Name};
use tunnel::digest::Ha1;
use tunnel::hash::Algorithm;

/// Longest file, in bytes: as many accounts as there may be, of the longest lines.
pub const LEN_MAX_BYTES: u64 = (account::ACCOUNTS_MAX * 256) as u64;

/// Why a line is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not of the form.
    #[error("line {line}: expected NAME:REALM:DIGITS with 32 hexadecimal digits, found something else")]
    Form {
        /// Its number, from 1.
        line: usize,
    },
    /// Of another realm, for which the digits are of no use.
    #[error(
        "line {line}: expected realm {expected}, found another; digits of one realm prove nothing in another"
    )]
    Realm {
        /// Its number, from 1.
        line: usize,
        /// The realm of the accounts here.
        expected: String,
    },
    /// A name that no account here can have.
    #[error("line {line}: {error}")]
    Name {
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        error: account::Error,
    },
}

/// The accounts of a file, which must all be of `realm`.
///
/// # Errors
/// The first line that cannot be used.
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
        // As `htdigest` writes it for Mufasa, "Circle Of Life".
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
