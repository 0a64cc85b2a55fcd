//! Visitors over the overlay: their logins, the limits per account, and their removal.
//!
//! Rules: the lock is held for one step, never across an await; the visitors of an account are limited; a
//! visitor whose account is removed or changed is disconnected within a second.
//! Not here: the check of a login (`login::raw`), connections and visas (the daemon).

use super::{ProxyAuthorizer, lock};
use crate::grant::{Chosen, Class, Grant, Rights};
use crate::login::raw::{Ends, Entered, Refused};
use overlay::clock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;
use tunnel::hash::Algorithm;
use wire::entering::{Hash, NONCE_LEN_BYTES, Reply, Visa};
use wire::id::PeerKey;
use wire::time::Time;

/// Most visitors of one account: the screens and scripts of a group.
pub const OF_ACCOUNT_MAX: usize = 64;

/// Most visitors of all accounts: half of the connections that a daemon may have.
pub const IN_ALL_MAX: usize = 512;

/// Admitted visitors, by their keys.
#[derive(Debug, Default)]
pub struct Guests(Mutex<BTreeMap<PeerKey, Entered>>);

/// Why a visitor is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The login failed.
    #[error(transparent)]
    Login(#[from] Refused),
    /// The account has reached its limit of visitors.
    #[error("expected at most {OF_ACCOUNT_MAX} visitors of one account at a time, found more")]
    Full,
    /// The proxy has reached its limit of visitors.
    #[error("busy: this proxy has {IN_ALL_MAX} visitors, the most that it may; try again later")]
    Crowded,
    /// MD5 is not enabled.
    #[error("this proxy takes no MD5; its operator allows it with `md5 = true`")]
    NoMd5,
    /// The system provides no random numbers.
    #[error("the proxy has no random numbers now; try again")]
    NoDice,
}

impl ProxyAuthorizer {
    /// Process the name of the account of `visitor`. Returns its challenge.
    ///
    /// # Errors
    /// If the visitor is not challenged.
    pub fn begin(
        &self,
        visitor: PeerKey,
        account: &str,
        hash: Hash,
        nonce: [u8; NONCE_LEN_BYTES],
    ) -> Result<Reply, Error> {
        let algorithm = match hash {
            Hash::Sha256 => Algorithm::Sha256,
            Hash::Md5 if self.takes_md5() => Algorithm::Md5,
            Hash::Md5 => return Err(Error::NoMd5),
        };
        let mut random = [0; NONCE_LEN_BYTES];
        getrandom::fill(&mut random).map_err(|_| Error::NoDice)?;
        let mut login = lock(self.login());
        let realm = login.handle_begin(visitor, (account, algorithm), (nonce, random), clock::now())?;
        Ok(Reply::Challenge { realm: realm.to_owned(), nonce: random })
    }

    /// Process the answer of a visitor: it is admitted from then on, until [`ProxyAuthorizer::forget`] removes it.
    ///
    /// # Errors
    /// Why the visitor is rejected.
    pub fn prove(&self, ends: Ends, proof: &[u8]) -> Result<Entered, Error> {
        let entered = self.prove_and_count(ends, proof);
        match &entered {
            Ok(_) => self.figures().entered_total.add(),
            Err(Error::Login(Refused::Wait(_))) => self.figures().held_up_total.add(),
            Err(_) => self.figures().entered_refused_total.add(),
        }
        entered
    }

    fn prove_and_count(&self, ends: Ends, proof: &[u8]) -> Result<Entered, Error> {
        let entered = lock(self.login()).handle_proof(ends, proof, clock::now())?;
        let mut inside = lock(&self.guests().0);
        let others = || inside.iter().filter(|(visitor, _)| **visitor != ends.visitor);
        if others().filter(|(_, one)| one.visitor.name == entered.visitor.name).count() >= OF_ACCOUNT_MAX {
            return Err(Error::Full);
        }
        if others().count() >= IN_ALL_MAX {
            return Err(Error::Crowded);
        }
        inside.insert(ends.visitor, entered.clone());
        Ok(entered)
    }

    /// Whether a visitor is admitted.
    #[must_use]
    pub fn is_inside(&self, visitor: PeerKey) -> bool {
        lock(&self.guests().0).contains_key(&visitor)
    }

    /// Remove the visitors that are no longer connected. Returns them, with the names of their accounts.
    pub fn forget(&self, is_connected: impl Fn(PeerKey) -> bool) -> Vec<(PeerKey, String)> {
        let mut inside = lock(&self.guests().0);
        let gone: Vec<_> = inside.iter().filter(|(visitor, _)| !is_connected(**visitor)).collect();
        let gone: Vec<_> =
            gone.into_iter().map(|(visitor, one)| (*visitor, one.visitor.name.clone())).collect();
        inside.retain(|visitor, _| is_connected(*visitor));
        gone
    }

    /// Remove the visitors whose account was removed or changed. Returns them.
    #[must_use]
    pub fn put_out(&self) -> Vec<PeerKey> {
        let login = lock(self.login());
        let mut inside = lock(&self.guests().0);
        let gone: Vec<PeerKey> =
            inside.iter().filter(|(_, one)| !login.stands(one)).map(|(visitor, _)| *visitor).collect();
        for visitor in &gone {
            inside.remove(visitor);
            self.figures().put_out_total.add();
        }
        gone
    }

    /// Number of admitted visitors.
    #[must_use]
    pub fn visitors_len(&self) -> usize {
        lock(&self.guests().0).len()
    }
}

/// The visa of a visitor, valid from `now` on: what its account may see.
#[must_use]
pub fn visa(entered: &Entered, visitor: PeerKey, now: Time, life: Duration) -> Visa {
    let Grant { domains, hosts, classes } = &*entered.visitor.grant;
    Visa {
        visitor,
        account: entered.visitor.name.clone(),
        domains: listed(domains),
        hosts: listed(hosts),
        classes: classes.iter().map(|class| class.word().to_owned()).collect(),
        is_operator: entered.visitor.rights == Rights::Operator,
        issued: now,
        expires: now.plus(life),
    }
}

/// The grant and rights in a visa. A class that is unknown to this program grants nothing.
#[must_use]
pub fn granted(visa: &Visa) -> (Grant, Rights) {
    let known = |word: &String| Class::ALL.into_iter().find(|class| class.word() == word);
    let grant = Grant {
        domains: chosen(visa.domains.as_ref()),
        hosts: chosen(visa.hosts.as_ref()),
        classes: visa.classes.iter().filter_map(known).collect(),
    };
    (grant, if visa.is_operator { Rights::Operator } else { Rights::Viewer })
}

fn listed<T: Clone>(chosen: &Chosen<T>) -> Option<Vec<T>> {
    match chosen {
        Chosen::All => None,
        Chosen::These(names) => Some(names.iter().cloned().collect()),
    }
}

fn chosen<T: Clone + Ord>(listed: Option<&Vec<T>>) -> Chosen<T> {
    match listed {
        None => Chosen::All,
        Some(names) => Chosen::These(names.iter().cloned().collect::<BTreeSet<T>>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Account, Accounts, Name, Proofs};
    use crate::login::{By, Visitor};
    use std::sync::Arc;
    use tunnel::challenge::{Exchange, Role, binding};
    use tunnel::digest::Ha1;

    const PROXY: PeerKey = PeerKey([200; 32]);

    fn accounts(names: &[&str]) -> Accounts {
        let mut accounts = Accounts::new("visperf").unwrap();
        for name in names {
            let name: Name = name.parse().unwrap();
            let grant = Grant { domains: Chosen::All, hosts: Chosen::All, classes: Class::USUAL.into() };
            let proofs = Proofs::of(&name, "visperf", "secret", true);
            accounts.add(Account { name, rights: Rights::Viewer, grant, proofs }).unwrap();
        }
        accounts
    }

    fn authorizer(takes_md5: bool) -> Arc<ProxyAuthorizer> {
        ProxyAuthorizer::new(&accounts(&["ana", "bob"]), Vec::new(), takes_md5, None).unwrap()
    }

    fn enter(authorizer: &ProxyAuthorizer, number: u16, name: &str, hash: Hash) -> Result<Entered, Error> {
        let mut key = [1; 32];
        key[..2].copy_from_slice(&number.to_be_bytes());
        let visitor = PeerKey(key);
        let asker = [7; 32];
        let Reply::Challenge { realm, nonce } = authorizer.begin(visitor, name, hash, asker)? else {
            panic!("no challenge")
        };
        let algorithm = if hash == Hash::Md5 { Algorithm::Md5 } else { Algorithm::Sha256 };
        let secret = Ha1::of(algorithm, name, &realm, "secret");
        let exchange = Exchange {
            algorithm,
            asker: name,
            holder: &realm,
            asker_nonce: &asker,
            holder_nonce: &nonce,
            binding: &binding(&visitor.0, &PROXY.0),
        };
        let proof = exchange.prove(secret.secret_hex().as_bytes(), Role::Asker).unwrap();
        authorizer.prove(Ends { visitor, proxy: PROXY, source: [10, 0, 0, 1].into() }, proof.bytes())
    }

    #[test]
    fn an_account_has_so_many_visitors_and_each_that_leaves_makes_place() {
        let authorizer = authorizer(false);
        for number in 0..OF_ACCOUNT_MAX as u16 {
            assert!(enter(&authorizer, number, "ana", Hash::Sha256).is_ok(), "{number}");
        }
        assert!(enter(&authorizer, 0, "ana", Hash::Sha256).is_ok(), "who is inside logs in again");
        assert_eq!(enter(&authorizer, 999, "ana", Hash::Sha256).err(), Some(Error::Full));
        assert!(enter(&authorizer, 999, "bob", Hash::Sha256).is_ok(), "others have places of their own");
        let mut key = [1; 32];
        key[..2].copy_from_slice(&3_u16.to_be_bytes());
        let gone = authorizer.forget(|visitor| visitor == PeerKey(key));
        assert_eq!(gone.len(), OF_ACCOUNT_MAX, "all of ana but one, and bob");
        assert_eq!(gone.iter().filter(|(_, account)| account == "bob").count(), 1);
        assert!(authorizer.is_inside(PeerKey(key)) && !authorizer.is_inside(gone[0].0));
        assert_eq!(authorizer.visitors_len(), 1, "one is connected");
        assert!(enter(&authorizer, 998, "ana", Hash::Sha256).is_ok());
    }

    #[test]
    fn a_guest_whose_account_is_removed_is_put_out_once() {
        let authorizer = authorizer(false);
        enter(&authorizer, 1, "ana", Hash::Sha256).unwrap();
        enter(&authorizer, 2, "bob", Hash::Sha256).unwrap();
        assert_eq!(authorizer.put_out(), []);
        authorizer.set_accounts(&accounts(&["bob"]));
        assert_eq!(authorizer.put_out().len(), 1);
        assert_eq!((authorizer.put_out().len(), authorizer.visitors_len()), (0, 1));
    }

    #[test]
    fn md5_is_taken_where_the_proxy_takes_it() {
        assert_eq!(enter(&authorizer(false), 1, "ana", Hash::Md5).err(), Some(Error::NoMd5));
        assert!(enter(&authorizer(true), 1, "ana", Hash::Md5).is_ok());
    }

    #[test]
    fn a_visa_grants_what_the_account_does() {
        let all = |classes: &[Class]| Grant {
            domains: Chosen::All,
            hosts: Chosen::All,
            classes: classes.iter().copied().collect(),
        };
        let some = Grant {
            domains: Chosen::These(["UT-ICL".try_into().unwrap()].into()),
            hosts: Chosen::These(["wn01".try_into().unwrap(), "wn02".try_into().unwrap()].into()),
            classes: [Class::Figures].into(),
        };
        for (grant, rights) in
            [(all(&Class::ALL), Rights::Operator), (all(&[]), Rights::Viewer), (some, Rights::Viewer)]
        {
            let by = By::Raw(Algorithm::Sha256);
            let visitor =
                Visitor { name: "ana".to_owned(), grant: Arc::new(grant.clone()), rights, by, proof: None };
            let secret = Ha1::of(Algorithm::Sha256, "ana", "visperf", "secret");
            let tag = Algorithm::Sha256.tag(b"", &[]);
            let visa =
                visa(&Entered { visitor, secret, tag }, PROXY, Time::default(), Duration::from_secs(1));
            assert_eq!(granted(&visa), (grant, rights));
            let unknown = Visa { classes: vec!["everything".to_owned()], ..visa };
            assert!(granted(&unknown).0.classes.is_empty());
        }
    }
}
