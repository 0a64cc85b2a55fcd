//! The operator that signs commands (orders) to processes: its key and certificate, in a state folder of this
//! host.
//!
//! Rules: the first folder with an operator of the requested domain is used; if there is none, the error says
//! what each folder has. Every order gets a number that was never used; it is on disk before the order is
//! handed out.
//! Not here: what an order is (`order`), the commands that request one.

use super::key::Key;
use super::refused::Refused;
use super::{certificate, command_files, key_file, member_files, safe_file, signed_command};
use std::path::{Path, PathBuf};
use wire::control::{Act, LIFE_MAX, Nonce, Order};
use wire::credential::{Certificate, Chain, Role};
use wire::id::{DomainName, HostName};
use wire::process::ProcessKey;
use wire::time::Time;

/// An operator that can sign orders.
#[derive(Clone, Debug)]
pub struct Operator {
    key: Key,
    chain: Chain,
    certificate: Certificate,
    /// The folder that stores the number of its last order.
    folder: PathBuf,
}

/// Why there is no operator, or why it could not sign an order.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No folder has an operator of the domain.
    #[error(
        "no certificate of an operator of {domain} is at hand; looked in:{tried}\nof a domain: type `visperf key` here, \
         `visperf domain certify KEY --host NAME --role operator > FILE` on the host with its root key, and `visperf \
         join FILE` here; of a machine in no domain (`visperf up`): who started its daemon can, but for root \
         (docs/control.md)"
    )]
    None {
        /// The requested domain.
        domain: DomainName,
        /// What each folder has instead, one line each.
        tried: String,
    },
    /// The order's number could not be stored, or the system gave no random bytes.
    #[error(transparent)]
    Files(#[from] safe_file::Error),
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl Operator {
    /// Find the operator of `domain` in these folders.
    ///
    /// # Errors
    /// If there is none: what each folder has instead, and what to do.
    pub fn find(folders: &[PathBuf], domain: &DomainName) -> Result<Operator, Error> {
        let mut tried = String::new();
        for folder in folders {
            match of_folder(folder, domain) {
                Ok(operator) => return Ok(operator),
                Err(why) => tried.push_str(&format!("\n  {}: {why}", folder.display())),
            }
        }
        Err(Error::None { domain: domain.clone(), tried })
    }

    /// Sign an order to do `act` to a process of `host`, at `now`. Returns one line, to be handed to any
    /// daemon at once.
    ///
    /// # Errors
    /// If it cannot be numbered or signed; its number may be used up all the same.
    pub fn order(&self, host: &HostName, process: ProcessKey, act: Act, now: Time) -> Result<String, Error> {
        let nonce = Nonce(key_file::random(&self.folder)?);
        let order = Order {
            domain: self.certificate.domain.clone(),
            root: self.certificate.root,
            host: host.clone(),
            process,
            act,
            nonce,
            sequence: command_files::next_sequence(&self.folder, now)?,
            issued: now,
            expires: now.plus(LIFE_MAX),
        };
        Ok(signed_command::text(&signed_command::sign(&order, &self.key, &self.chain)?))
    }
}

fn of_folder(folder: &Path, domain: &DomainName) -> Result<Operator, String> {
    let own = command_files::load_operator(folder).map_err(|error| error.to_string())?;
    let (key, chain) = match own {
        Some(own) => (own.key, own.chain),
        None => member(folder)?,
    };
    let certificate = certificate::open(&chain).map_err(|refused| refused.to_string())?.certificate;
    if certificate.domain != *domain {
        return Err(format!("a certificate of another domain, {}", certificate.domain));
    }
    if !certificate.roles.has(Role::Operator) {
        return Err(format!("a certificate with {}, not operator", certificate.roles));
    }
    Ok(Operator { key, chain, certificate, folder: folder.to_owned() })
}

fn member(folder: &Path) -> Result<(Key, Chain), String> {
    let membership = member_files::load_membership(folder).map_err(|error| error.to_string())?;
    let membership = membership.ok_or_else(|| "no certificate".to_owned())?;
    let previous = member_files::load_previous(folder, &membership).map_err(|error| error.to_string())?;
    let chain =
        certificate::newest_that_holds(Some(&membership.chain), previous.as_ref(), crate::clock::calendar());
    let chain = chain.unwrap_or(&membership.chain).clone();
    let key = key_file::load(folder).map_err(|error| error.to_string())?;
    Ok((key.ok_or_else(|| "no key".to_owned())?, chain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::control::Signal;

    #[test]
    fn the_folder_with_the_right_operator_is_found_and_others_are_reported() {
        let (empty, other, own) = (tempfile::tempdir(), tempfile::tempdir(), tempfile::tempdir());
        let [empty, other, own] = [empty, other, own].map(|folder| folder.expect("a folder"));
        let name = |name: &str| DomainName::try_from(name).expect("a name");
        let host = HostName::try_from("h").expect("a name");
        let make = |folder: &tempfile::TempDir, domain: &str| {
            command_files::create_operator(folder.path(), &name(domain), &host, Time::default())
                .expect("made")
        };
        make(&other, "elsewhere");
        let made = make(&own, "local");
        let folders = [&empty, &other, &own].map(|folder| folder.path().to_owned());
        let found = Operator::find(&folders, &name("local")).expect("found");
        assert_eq!((found.key.peer(), found.folder.as_path()), (made.key.peer(), own.path()));
        let tried = Operator::find(&folders[..2], &name("local")).expect_err("there is none").to_string();
        for part in ["no certificate\n", "another domain, elsewhere", "--role operator", "docs/control.md"] {
            assert!(tried.contains(part), "{part:?} in {tried}");
        }
    }

    #[test]
    fn each_order_has_a_number_of_its_own_and_is_the_operators() {
        let folder = tempfile::tempdir().expect("a folder");
        let (domain, host) = (DomainName::try_from("local"), HostName::try_from("h"));
        let (domain, host) = (domain.expect("a name"), host.expect("a name"));
        command_files::create_operator(folder.path(), &domain, &host, Time::default()).expect("made");
        let operator = Operator::find(&[folder.path().to_owned()], &domain).expect("found");
        let process = ProcessKey { pid: 7, start_ns: 9 };
        let sign = || {
            let line =
                operator.order(&host, process, Act::Signal(Signal::Term), Time::default()).expect("signed");
            let signed = signed_command::parse(&line).expect("an order");
            (signed.order.signer(), signed.order.unverified().expect("readable"))
        };
        let ((signer, one), (_, other)) = (sign(), sign());
        assert_eq!((signer, one.process, &one.host), (operator.key.peer(), process, &host));
        assert!(one.sequence < other.sequence && one.nonce != other.nonce);
    }
}
