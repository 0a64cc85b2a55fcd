//! Asking through a proxy: the options that name its door, the account there, and the certificate by which it is known.
//!
//! Rule: MD5 is never answered.
//! Not here: what a door is, and what is spoken there (`overlay::door`), HTTP (`http`), the connection (`connection`), what
//! Digest says (`tunnel::digest`).

use overlay::door::{self, Door, Tls};
use std::path::PathBuf;
use tunnel::digest::client::Login;

/// The options that lead through a proxy.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Via {
    /// Ask through a proxy: HOST:PORT of its door, /d/DOMAIN or /d/DOMAIN/HOST behind it (docs/firewalls.md)
    #[arg(long, value_name = "PROXY", env = "VISPERF_VIA", value_parser = parse, requires = "account")]
    via: Option<Door>,
    /// The account at the proxy
    #[arg(long, value_name = "NAME", env = "VISPERF_ACCOUNT", requires = "secret")]
    account: Option<String>,
    /// The file with the account's secret
    #[arg(long, value_name = "FILE", env = "VISPERF_SECRET")]
    secret: Option<PathBuf>,
    /// The proxy's certificate, unless an authority stands for it that the system trusts
    #[arg(long, value_name = "FILE", env = "VISPERF_CERTIFICATE")]
    certificate: Option<PathBuf>,
}

impl Via {
    /// `HOST:PORT` of the proxy, if one is to be asked.
    pub(crate) fn address(&self) -> Option<String> {
        self.via.as_ref().map(Door::to_string)
    }

    /// What every path there begins with.
    pub(crate) fn prefix(&self) -> &str {
        self.via.as_ref().map_or("", |door| &door.behind)
    }

    /// Who logs in there.
    ///
    /// # Errors
    /// If the secret cannot be read.
    pub(crate) fn login(&self) -> Result<Option<Login>, String> {
        let (Some(_), Some(name), Some(file)) = (&self.via, &self.account, &self.secret) else {
            return Ok(None);
        };
        let secret = door::read_secret(file)?;
        Ok(Some(Login { name: name.clone(), secret, allows_md5: false }))
    }

    /// By what it is known; none where nothing is encrypted.
    ///
    /// # Errors
    /// If there is nothing by which to know it, or its name cannot be one.
    pub(crate) fn tls(&self) -> Result<Option<Tls>, String> {
        self.via.as_ref().map_or(Ok(None), |door| door.tls(self.certificate.as_deref()))
    }
}

/// A door, with a domain behind it and perhaps a host.
fn parse(text: &str) -> Result<Door, String> {
    Door::parse(text, |behind| {
        match behind.is_empty() || proxy::place::of(behind).is_some_and(|place| place.domain.is_some()) {
            true => Ok(()),
            false => Err(format!("expected /d/DOMAIN or /d/DOMAIN/HOST behind the proxy, found {behind:?}")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_domain_and_perhaps_a_host_stand_behind_a_door() {
        assert_eq!(
            parse("p.example:99/d/UT-ICL/wn01/").map(|door| door.behind),
            Ok("/d/UT-ICL/wn01".to_owned())
        );
        assert_eq!(parse("proxy.example").map(|door| door.behind), Ok(String::new()));
        for wrong in ["p.example:99/RPC2", "p.example:99/d/a b"] {
            let said = parse(wrong).unwrap_err();
            assert!(said.contains("/d/DOMAIN or /d/DOMAIN/HOST"), "{wrong}: {said}");
        }
    }

    #[test]
    fn an_encrypted_door_needs_something_to_know_it_by() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("empty.pem");
        std::fs::write(&file, "").unwrap();
        let via = Via { via: parse("proxy.example").ok(), certificate: Some(file), ..Via::default() };
        assert!(via.tls().unwrap_err().contains("--certificate"));
    }

    #[test]
    fn a_secret_that_others_may_read_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "abc\n").unwrap();
        let via = Via {
            via: parse("proxy.example").ok(),
            account: Some("ana".to_owned()),
            secret: Some(file.clone()),
            ..Via::default()
        };
        let give = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        give(0o644);
        assert!(via.login().unwrap_err().contains("chmod 600"));
        give(0o600);
        let login = via.login().unwrap().unwrap();
        assert_eq!((login.secret.as_str(), login.allows_md5), ("abc", false));
    }
}
