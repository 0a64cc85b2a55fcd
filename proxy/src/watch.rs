//! Reloads changed accounts and certificates while the proxy runs.
//!
//! Rule: a file that cannot be used is reported once and changes nothing; the data in use stay.
//! Not here: the content of the files.

use crate::account_file;
use crate::authorizer::ProxyAuthorizer;
use crate::certificate::{Certificate, Origin};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// Interval at which the files are checked: a removed account is rejected within it.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// State of the checks.
pub struct Watch {
    state: PathBuf,
    authorizer: Arc<ProxyAuthorizer>,
    certificate: Option<Arc<Certificate>>,
    accounts_seen: Option<Mark>,
    /// The last error of the account file, so that it is reported once.
    accounts_problem: Option<String>,
    certificate_seen: [Option<Mark>; 2],
    certificate_problem: Option<String>,
}

/// Identity of a file version: a replaced file has another inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    inode: u64,
    len_bytes: u64,
    modified: Option<SystemTime>,
}

fn mark(path: &Path) -> Option<Mark> {
    use std::os::unix::fs::MetadataExt as _;
    let found = std::fs::metadata(path).ok()?;
    Some(Mark { inode: found.ino(), len_bytes: found.len(), modified: found.modified().ok() })
}

impl Watch {
    /// Watch the files of the proxy with this state folder. The first check reloads everything, so a change
    /// between the start and the first check is not missed.
    #[must_use]
    pub fn new(
        state: &Path,
        authorizer: Arc<ProxyAuthorizer>,
        certificate: Option<Arc<Certificate>>,
    ) -> Watch {
        Watch {
            state: state.to_owned(),
            authorizer,
            certificate,
            accounts_seen: None,
            accounts_problem: None,
            certificate_seen: [None; 2],
            certificate_problem: None,
        }
    }

    /// Check periodically until `shutdown` fires.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut look = tokio::time::interval(LOOK_INTERVAL);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = look.tick() => {}
            }
            // A file may be on a disk that does not respond.
            let looked = tokio::task::spawn_blocking(move || {
                self.look();
                self
            });
            match looked.await {
                Ok(watch) => self = watch,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => return,
            }
        }
    }

    /// Check once; without a change it costs three system calls. A file that could not be read is tried again
    /// at the next check: a removed account must not stay because the system lacked a resource for a moment.
    pub fn look(&mut self) {
        self.look_at_accounts();
        self.look_at_certificate();
    }

    fn look_at_accounts(&mut self) {
        let accounts = mark(&account_file::path(&self.state));
        if accounts == self.accounts_seen {
            return;
        }
        self.accounts_seen = accounts;
        let trouble = match account_file::read(&self.state) {
            Ok(Some(accounts)) => {
                self.authorizer.set_accounts(&accounts);
                tracing::info!(accounts = accounts.all().count(), "took up changed accounts");
                None
            }
            Ok(None) => {
                tracing::warn!("the file of accounts is gone; those that were read stay");
                None
            }
            Err(error) => {
                self.accounts_seen = None;
                Some(error.to_string())
            }
        };
        if trouble != self.accounts_problem
            && let Some(error) = &trouble
        {
            tracing::error!(error, "the changed accounts cannot be used; those before stay");
        }
        self.accounts_problem = trouble;
    }

    fn look_at_certificate(&mut self) {
        let seen = self.certificate_marks();
        let Some(certificate) = self.certificate.as_ref().filter(|_| seen != self.certificate_seen) else {
            return;
        };
        self.certificate_seen = seen;
        let trouble = match certificate.reread() {
            Ok(is_another) => {
                if is_another {
                    tracing::info!(fingerprint = certificate.fingerprint(), "took up another certificate");
                }
                None
            }
            Err(error) => {
                self.certificate_seen = [None; 2];
                Some(error.to_string())
            }
        };
        if trouble != self.certificate_problem
            && let Some(error) = &trouble
        {
            tracing::error!(error, "the changed certificate cannot be used; the one before stays");
        }
        self.certificate_problem = trouble;
    }

    fn certificate_marks(&self) -> [Option<Mark>; 2] {
        let origin: Option<&Origin> = self.certificate.as_ref().map(|certificate| certificate.origin());
        origin.map_or([None; 2], |origin| [mark(&origin.certificate()), mark(&origin.key())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Account, Accounts, Name, Proofs};
    use crate::grant::{Chosen, Class, Grant, Rights};
    use std::collections::BTreeMap;

    fn account() -> Account {
        let name: Name = "ana".parse().expect("a name");
        let grant = Grant { domains: Chosen::All, hosts: Chosen::All, classes: Class::USUAL.into() };
        let proofs = Proofs::of(&name, "visperf", "secret", false);
        Account { name, rights: Rights::Viewer, grant, proofs }
    }

    fn reread(authorizer: &ProxyAuthorizer) -> u64 {
        authorizer.counters().into_iter().collect::<BTreeMap<_, _>>()["reread_total"]
    }

    /// A proxy without accounts.
    fn authorizer() -> Arc<ProxyAuthorizer> {
        ProxyAuthorizer::new(&Accounts::new("visperf").expect("a realm"), Vec::new(), false, None)
            .expect("dice")
    }

    #[test]
    fn a_changed_file_is_taken_up_and_a_broken_one_is_not() {
        let state = tempfile::tempdir().expect("a folder");
        let (account, authorizer) = (account(), authorizer());
        let mut watch = Watch::new(state.path(), Arc::clone(&authorizer), None);
        watch.look();
        assert_eq!(reread(&authorizer), 0);
        account_file::change(state.path(), "visperf", |all| all.add(account)).expect("added");
        watch.look();
        watch.look();
        assert_eq!(reread(&authorizer), 1, "once for each change");
        std::fs::write(account_file::path(state.path()), "nothing").expect("written");
        watch.look();
        assert_eq!(reread(&authorizer), 1);
    }

    #[test]
    fn what_could_not_be_read_for_a_moment_is_read_by_the_next_look() {
        let state = tempfile::tempdir().expect("a folder");
        let authorizer = authorizer();
        account_file::change(state.path(), "visperf", |all| all.add(account())).expect("added");
        let mut watch = Watch::new(state.path(), Arc::clone(&authorizer), None);
        let (path, aside) = (account_file::path(state.path()), state.path().join("aside"));
        // Replace it by a folder with the same metadata: it cannot be read, like a file when descriptors run
        // out.
        std::fs::rename(&path, &aside).expect("moved");
        std::fs::create_dir(&path).expect("made");
        watch.look();
        watch.accounts_seen = watch.accounts_seen.and(mark(&aside));
        std::fs::remove_dir(&path).expect("removed");
        std::fs::rename(&aside, &path).expect("moved back");
        watch.look();
        assert_eq!(reread(&authorizer), 1);
    }

    #[test]
    fn what_changed_before_the_watch_began_is_not_missed() {
        let state = tempfile::tempdir().expect("a folder");
        let authorizer = authorizer();
        account_file::change(state.path(), "visperf", |all| all.add(account())).expect("added");
        let mut watch = Watch::new(state.path(), Arc::clone(&authorizer), None);
        watch.look();
        watch.look();
        assert_eq!(reread(&authorizer), 1);
    }
}
