//! Accounts of a proxy: names, password hashes, permissions; and the text format of the account file.
//!
//! ```text
//! visperf-accounts 1 realm=visperf
//! ana rights=viewer domains=UT-ICL hosts=* calls=figures,logs,grid sha-256=<64 digits>
//! old rights=viewer domains=* hosts=* calls=figures md5=<32 digits>
//! ```
//! Pure. Rules: a text is accepted completely or refused with the line number, never with the content of the
//! line, because that may be a secret. An account has an MD5 hash only if its operator marked it as legacy.
//! Not here: the file (`account_file`), secrets in clear text, which are shown once and never stored.

use crate::grant::{Chosen, Class, Grant, NAMES_MAX, Rights};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use tunnel::digest::Ha1;
use tunnel::hash::Algorithm;

/// Most accounts of a proxy: the users of a grid; some 2 MiB.
pub const ACCOUNTS_MAX: usize = 10_000;

/// Longest name of an account, in bytes.
pub const NAME_LEN_MAX_BYTES: usize = 64;

/// Longest realm, in bytes.
pub const REALM_LEN_MAX_BYTES: usize = 64;

/// Default realm of an account file.
pub const REALM_DEFAULT: &str = "visperf";

const FIRST_WORDS: &str = "visperf-accounts 1 realm=";

/// Why an account or an account file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A line of the file is invalid.
    #[error("line {line}: expected {expected}, found something else")]
    Line {
        /// Line number, counted from 1.
        line: usize,
        /// What was expected in the line.
        expected: &'static str,
    },
    /// The account name is invalid.
    #[error("expected a name of 1 to {NAME_LEN_MAX_BYTES} letters, digits and . _ - @ +, found another text")]
    Name,
    /// The realm is invalid.
    #[error(
        "expected a realm of 1 to {REALM_LEN_MAX_BYTES} letters, digits and . _ - @ +, found another text"
    )]
    Realm,
    /// More than [`ACCOUNTS_MAX`] accounts.
    #[error("expected at most {ACCOUNTS_MAX} accounts, found more")]
    Full,
    /// Two accounts have this name.
    #[error("expected each account once, found {0} again")]
    Twice(Name),
}

/// Name of an account. Its characters are safe in files, logs and header fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = Error;

    fn from_str(text: &str) -> Result<Name, Error> {
        if is_plain(text, NAME_LEN_MAX_BYTES) { Ok(Name(text.to_owned())) } else { Err(Error::Name) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_plain(text: &str, most: usize) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@+".contains(&byte);
    (1..=most).contains(&text.len()) && text.bytes().all(is_letter)
}

/// Password hashes of an account; at least one is present.
#[derive(Clone, Debug)]
pub struct Proofs {
    sha256: Option<Ha1>,
    md5: Option<Ha1>,
}

impl Proofs {
    /// Hash `secret` by SHA-256, and also by MD5 for a legacy account.
    #[must_use]
    pub fn of(name: &Name, realm: &str, secret: &str, is_legacy: bool) -> Proofs {
        let by = |algorithm| Ha1::of(algorithm, name.as_str(), realm, secret);
        Proofs { sha256: Some(by(Algorithm::Sha256)), md5: is_legacy.then(|| by(Algorithm::Md5)) }
    }

    /// For an imported account with only an MD5 hash.
    #[must_use]
    pub fn of_md5(ha1: Ha1) -> Proofs {
        Proofs { sha256: None, md5: Some(ha1) }
    }

    /// The hash of this algorithm, if the account has it.
    #[must_use]
    pub fn by(&self, algorithm: Algorithm) -> Option<&Ha1> {
        match algorithm {
            Algorithm::Sha256 => self.sha256.as_ref(),
            Algorithm::Md5 => self.md5.as_ref(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Account {
    pub name: Name,
    /// Highest rights of the account.
    pub rights: Rights,
    /// Domains, hosts and methods granted to the account.
    pub grant: Grant,
    pub proofs: Proofs,
}

/// All accounts of a proxy, and their realm.
#[derive(Clone, Debug)]
pub struct Accounts {
    realm: String,
    by_name: BTreeMap<Name, Account>,
}

impl Accounts {
    /// No accounts, in the realm `realm`.
    ///
    /// # Errors
    /// If the realm is invalid.
    pub fn new(realm: &str) -> Result<Accounts, Error> {
        if !is_plain(realm, REALM_LEN_MAX_BYTES) {
            return Err(Error::Realm);
        }
        Ok(Accounts { realm: realm.to_owned(), by_name: BTreeMap::new() })
    }

    /// Realm in which the secrets were hashed.
    #[must_use]
    pub fn realm(&self) -> &str {
        &self.realm
    }

    /// Look up an account by its name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Account> {
        self.by_name.get(&name.parse::<Name>().ok()?)
    }

    /// All accounts, sorted by name.
    pub fn all(&self) -> impl Iterator<Item = &Account> {
        self.by_name.values()
    }

    /// Add an account.
    ///
    /// # Errors
    /// If there are too many accounts, or one of that name exists; nothing has changed then.
    pub fn add(&mut self, account: Account) -> Result<(), Error> {
        if self.by_name.contains_key(&account.name) {
            return Err(Error::Twice(account.name));
        }
        if self.by_name.len() >= ACCOUNTS_MAX {
            return Err(Error::Full);
        }
        self.by_name.insert(account.name.clone(), account);
        Ok(())
    }

    /// Remove an account. Returns whether it existed.
    pub fn remove(&mut self, name: &Name) -> bool {
        self.by_name.remove(name).is_some()
    }

    /// The accounts as text, in the format of the account file.
    #[must_use]
    pub fn write(&self) -> String {
        let mut text = format!("{FIRST_WORDS}{}\n", self.realm);
        for Account { name, rights, grant, proofs } in self.by_name.values() {
            let classes: Vec<&str> = grant.classes.iter().map(|class| class.word()).collect();
            let (rights, domains, hosts) = (rights.word(), &grant.domains, &grant.hosts);
            text.push_str(&format!(
                "{name} rights={rights} domains={domains} hosts={hosts} calls={}",
                classes.join(",")
            ));
            for (key, proof) in [("sha-256", &proofs.sha256), ("md5", &proofs.md5)] {
                if let Some(proof) = proof {
                    text.push_str(&format!(" {key}={}", proof.secret_hex()));
                }
            }
            text.push('\n');
        }
        text
    }

    /// Parse the text of an account file.
    ///
    /// # Errors
    /// If a line is not in the format of [`Accounts::write`].
    pub fn read(text: &str) -> Result<Accounts, Error> {
        let mut lines = text.lines().enumerate();
        let first = lines.next().and_then(|(_, line)| line.strip_prefix(FIRST_WORDS));
        let begins = Error::Line { line: 1, expected: "visperf-accounts 1 realm=REALM" };
        let mut accounts = Accounts::new(first.ok_or(begins)?)?;
        for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')) {
            accounts.add(account(line).map_err(|expected| Error::Line { line: at + 1, expected })?)?;
        }
        Ok(accounts)
    }
}

/// Parse a line; the error is what was expected.
fn account(line: &str) -> Result<Account, &'static str> {
    let mut words = line.split_ascii_whitespace();
    let name = words.next().and_then(|word| word.parse().ok()).ok_or("a name first")?;
    let mut fields: BTreeMap<&str, &str> = BTreeMap::new();
    for word in words {
        let (key, value) = word.split_once('=').ok_or("KEY=VALUE after the name")?;
        if fields.insert(key, value).is_some() {
            return Err("each key once");
        }
    }
    let mut take = |key| fields.remove(key);
    let rights = match take("rights") {
        Some("viewer") => Rights::Viewer,
        Some("operator") => Rights::Operator,
        _ => return Err("rights=viewer or rights=operator"),
    };
    let domains = take("domains").and_then(chosen).ok_or("domains=* or domains=NAME,NAME")?;
    let hosts = take("hosts").and_then(chosen).ok_or("hosts=* or hosts=NAME,NAME")?;
    let classes = take("calls").and_then(classes).ok_or("calls= of figures, logs, grid, proxy, steering")?;
    let proof = |algorithm, text: Option<&str>, expected| {
        text.map(|text| Ha1::from_hex(algorithm, text).ok_or(expected)).transpose()
    };
    let sha256 = proof(Algorithm::Sha256, take("sha-256"), "sha-256= of 64 hexadecimal digits")?;
    let md5 = proof(Algorithm::Md5, take("md5"), "md5= of 32 hexadecimal digits")?;
    if sha256.is_none() && md5.is_none() {
        return Err("sha-256= or md5=");
    }
    if !fields.is_empty() {
        return Err("no other keys than rights, domains, hosts, calls, sha-256 and md5");
    }
    Ok(Account { name, rights, grant: Grant { domains, hosts, classes }, proofs: Proofs { sha256, md5 } })
}

/// Parse `*` (all), or names separated by commas.
fn chosen<T: Ord + for<'a> TryFrom<&'a str>>(text: &str) -> Option<Chosen<T>> {
    if text == "*" {
        return Some(Chosen::All);
    }
    let names: Option<BTreeSet<T>> = text.split(',').map(|name| T::try_from(name).ok()).collect();
    names.filter(|names| names.len() <= NAMES_MAX).map(Chosen::These)
}

fn classes(text: &str) -> Option<BTreeSet<Class>> {
    let class = |word| Class::ALL.into_iter().find(|class| class.word() == word);
    text.split(',').map(class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "visperf-accounts 1 realm=visperf\n\
        ana rights=viewer domains=CERN,UT-ICL hosts=* calls=figures,logs sha-256=<S>\n\
        old rights=operator domains=* hosts=wn01 calls=figures,logs,grid,proxy,steering sha-256=<S> md5=<M>\n";

    fn text() -> String {
        TEXT.replace("<S>", &"0a".repeat(32)).replace("<M>", &"0b".repeat(16))
    }

    #[test]
    fn what_was_written_is_read() {
        let accounts = Accounts::read(&text()).expect("readable");
        assert_eq!((accounts.write(), accounts.realm()), (text(), "visperf"));
        let ana = accounts.get("ana").expect("there");
        assert!(ana.proofs.by(Algorithm::Sha256).is_some() && ana.proofs.by(Algorithm::Md5).is_none());
        let commented = format!("{}# a remark\n\n", text());
        assert_eq!(Accounts::read(&commented).expect("readable").all().count(), 2);
        assert!(accounts.get("no such").is_none() && accounts.get("").is_none());
    }

    #[test]
    fn a_bad_line_is_reported_by_its_number_and_not_shown() {
        let check = |from: &str, to: &str, line: usize| {
            let bad = text().replace(from, to);
            assert_ne!(bad, text(), "{from}");
            let error = Accounts::read(&bad).expect_err(to);
            assert!(matches!(error, Error::Line { line: found, .. } if found == line), "{to}: {error}");
            assert!(!error.to_string().contains("0a0a"), "{error}");
        };
        check("visperf-accounts 1", "visperf-accounts 2", 1);
        check("ana rights=viewer", "a/b rights=viewer", 2);
        check("rights=viewer", "rights=root", 2);
        check("rights=viewer", "rights=viewer rights=viewer", 2);
        check("rights=viewer", "viewer", 2);
        check("domains=CERN", "domains=CE RN", 2);
        check("domains=CERN,", "domains=,", 2);
        check("calls=figures,logs ", "calls=everything ", 2);
        check(&format!(" sha-256={}\n", "0a".repeat(32)), "\n", 2);
        check("0a\n", "\n", 2);
        check(" md5=", " colour=", 3);
        check("0b0b", "xx0b", 3);
        let twice = text().replace("old ", "ana ");
        assert_eq!(Accounts::read(&twice).expect_err("twice"), Error::Twice("ana".parse().expect("a name")));
        assert_eq!(Accounts::read("").expect_err("empty").to_string().split(':').next(), Some("line 1"));
    }

    #[test]
    fn names_and_realms_are_checked() {
        for good in ["a", "ana@site.example", "o_x-1+2"] {
            assert!(good.parse::<Name>().is_ok(), "{good}");
        }
        for bad in ["", "a b", "a:b", "ü", "a\"", &"a".repeat(65)] {
            assert_eq!(bad.parse::<Name>(), Err(Error::Name), "{bad}");
            assert_eq!(Accounts::new(bad).map(drop), Err(Error::Realm), "{bad}");
        }
    }

    #[test]
    fn md5_is_there_for_legacy_accounts_only() {
        let name: Name = "ana".parse().expect("a name");
        assert!(Proofs::of(&name, "visperf", "s", false).by(Algorithm::Md5).is_none());
        let legacy = Proofs::of(&name, "visperf", "s", true);
        assert!(legacy.by(Algorithm::Md5).is_some() && legacy.by(Algorithm::Sha256).is_some());
        assert!(!format!("{legacy:?}").contains(legacy.by(Algorithm::Md5).expect("there").secret_hex()));
    }
}
