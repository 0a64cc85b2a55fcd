//! Member daemon: a sensor that has joined a domain, with its key, certificate, connections and membership.
//!
//! Rule: everything is read and bound before anything runs; without a membership in the state directory there
//! is no overlay, and nothing listens.
//! Not here: joining (`overlay::joining`), reports (`reporting`), other domains (`inter_domain`).

use super::admission_status::AdmissionStatus;
use super::credentials::Credentials;
use super::forward::{DomainRole, Members, Own, Router};
use super::inter_domain::InterDomain;
use super::issuing::Issuing;
use super::late_files::LateFiles;
use super::overlay::{Overlay, Part};
use super::queries::Queries;
use super::reporting::Reporting;
use super::state_dir;
use anyhow::ensure;
use daemon::shutdown::Tasks;
use overlay::authenticator::Authenticator;
use overlay::clock;
use overlay::config::Config;
use overlay::domain::{self, Domain, DomainHandle};
use overlay::election::{self, Me};
use overlay::identity::domain_files::DomainFiles;
use overlay::identity::join::Membership;
use overlay::identity::member_files;
use overlay::joining::renewal::{Pace, Renewal};
use overlay::membership::Profile;
use overlay::net::event_loop::CONNECTIONS_MAX;
use overlay::net::handle::Handle;
use overlay::net::protocol::Protocol;
use overlay::revocation_gossip::RevocationGossip;
use rpc::dispatch::Dispatcher;
use sensor::query::channels::relays::{Relays, StreamRunner};
use sensor::run::Sensor;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wire::address::Address;
use wire::credential::{Certificate, Role};

/// Timeout for the last message to the receiver of the report, after the election's last messages.
const FAREWELL: Duration = Duration::from_secs(1);

/// A member that is bound, and not yet running.
pub(crate) struct Member {
    own: Own,
    pub(crate) net: Handle,
    pub(crate) gate: Arc<Authenticator>,
    pub(crate) view: DomainHandle,
    pub(crate) between: InterDomain,
    overlay: Overlay,
    domain: Domain,
    reporting: Option<Reporting>,
    renewal: Renewal,
    denying: RevocationGossip,
    /// Only on the host where the domain was created: admits other hosts.
    issuer: Option<Issuing>,
    /// Subscriptions to other hosts of the domain, for the time in which it is the representative.
    relays: (Relays, StreamRunner),
}

/// The membership in `state`, if its daemon has joined a domain.
///
/// # Errors
/// If the file cannot be used.
pub(crate) fn membership(state: &Path) -> anyhow::Result<Option<Membership>> {
    Ok(member_files::load_membership(state)?)
}

/// Set the sensor's domain and host to those of its certificate.
///
/// # Errors
/// If the configuration names another domain or host.
pub(crate) fn name_after(config: &mut sensor::config::Config, membership: &Membership) -> anyhow::Result<()> {
    let certificate = membership.certificate()?;
    let usual = sensor::config::DOMAIN_DEFAULT;
    ensure!(
        config.domain == certificate.domain || config.domain.as_str() == usual,
        "the configuration says domain = {:?}, but this daemon has joined {}; change the configuration, or use \
         another state directory and join {0:?} with it",
        config.domain.as_str(),
        certificate.domain
    );
    config.domain = certificate.domain;
    config.host = certificate.host;
    Ok(())
}

impl Member {
    /// Read keys and files, listen, and be ready to [`Member::spawn`]; queries are answered at `address`, and
    /// `sensor` reports. Call it within a tokio runtime.
    ///
    /// # Errors
    /// If a file cannot be used, or the address cannot be listened on.
    pub(crate) fn open(
        state: &Path,
        membership: &Membership,
        config: &Config,
        address: SocketAddr,
        sensor: &mut Sensor,
        files: &LateFiles,
    ) -> anyhow::Result<Member> {
        let Credentials { certificate, key, chain, previous, gate, denials, directories } =
            Credentials::read(state, membership, config)?;
        let place = (certificate.host.as_str(), CONNECTIONS_MAX, Part::End);
        let mut overlay = Overlay::open(key, gate, Some(chain.clone()), config, place)?;
        overlay.gate.show(chain, previous);
        let is_usual = config.listen.is_none() && config.advertise.is_empty();
        state_dir::write_reached(state, if is_usual { &[] } else { &overlay.advertised }, files)?;
        let renewal = Renewal {
            state: state.to_owned(),
            key: overlay.key.clone(),
            gate: Arc::clone(&overlay.gate),
            denials: Arc::clone(&denials),
            net: overlay.net.clone(),
            pace: Pace::default(),
        };
        let files = DomainFiles::new(state, overlay.key.clone());
        // An error of the files is reported when the issuer needs them.
        let has_others = files.exist() && files.has_others(clock::calendar()).unwrap_or(false);
        let issuer = files
            .exist()
            .then(|| Issuing::new(files, directories.clone(), &mut overlay, Arc::clone(&denials)));
        let (domain, view) =
            open_domain(state, membership, (config, has_others), &certificate, &mut overlay)?;
        let denying = RevocationGossip {
            domain: certificate.domain.clone(),
            gate: Arc::clone(&overlay.gate),
            denials: Arc::clone(&denials),
            net: overlay.net.clone(),
            members: view.clone(),
            questions: overlay.hub.questions(Protocol::Directory),
        };
        let between = InterDomain::open(state, &overlay, &certificate, &view, denials, directories, address)?;
        let takes_part = certificate.roles.has(Role::Publisher);
        let reporting =
            takes_part.then(|| Reporting::open(sensor, &mut overlay, &certificate, &view)).flatten();
        let (net, gate) = (overlay.net.clone(), Arc::clone(&overlay.gate));
        let belonging = match takes_part {
            true => DomainRole::Sensor,
            false => DomainRole::Visitor { has_directories: between.has_directories() },
        };
        let own = Own {
            domain: certificate.domain,
            host: certificate.host,
            members: view.clone(),
            belonging,
            welcome: overlay.welcome.clone(),
        };
        let relays = Relays::new(Arc::new(Members { net: net.clone(), own: own.clone() }));
        Ok(Member {
            relays,
            own,
            net,
            gate,
            view,
            between,
            overlay,
            domain,
            reporting,
            renewal,
            denying,
            issuer,
        })
    }

    /// A sentence about its domain and the addresses at which others dial it.
    pub(crate) fn membership_text(&self) -> String {
        let Own { domain, host, .. } = &self.own;
        let reached: Vec<&str> = self.overlay.advertised.iter().map(Address::as_str).collect();
        match reached.as_slice() {
            [] => format!("it is {host} of {domain}; no peer can dial it; it dials others"),
            reached => format!("it is {host} of {domain}; other daemons reach it at {}", reached.join(", ")),
        }
    }

    /// The reason why the issuer of this daemon cannot sign now; `None` if it is no issuer.
    pub(crate) fn issuer_trouble(&self) -> Option<watch::Receiver<Option<String>>> {
        self.issuer.as_ref().map(Issuing::trouble)
    }

    /// Health messages about refusals of this daemon by others, as sentences.
    pub(crate) fn welcome(&self) -> AdmissionStatus {
        self.overlay.welcome.clone()
    }

    /// The router of queries to other daemons.
    pub(crate) fn router(&self) -> Router {
        let relays = Some(self.relays.0.clone());
        Router { net: self.net.clone(), own: Some(self.own.clone()), others: self.between.others(), relays }
    }

    /// Run until `shutdown`; the connections are closed after the last messages are sent.
    pub(crate) fn spawn(self, tasks: &mut Tasks, dispatcher: Arc<Dispatcher>, shutdown: &CancellationToken) {
        let Member {
            gate,
            view,
            between,
            overlay,
            domain,
            reporting,
            renewal,
            denying,
            issuer,
            relays,
            own,
            ..
        } = self;
        let own_domain = own.domain.clone();
        let quiet = CancellationToken::new();
        let (ending, closing) = (shutdown.clone(), quiet.clone());
        // Two parts announce that this sensor leaves: the election, and the report to its receiver.
        let reported = match reporting {
            Some(reporting) => reporting.spawn(tasks, shutdown),
            None => {
                let nothing = CancellationToken::new();
                nothing.cancel();
                nothing
            }
        };
        tasks.spawn_sure("domain", async move {
            match own.belonging {
                DomainRole::Sensor => domain.run(ending).await,
                DomainRole::Visitor { .. } => domain.run_as_guest(ending).await,
            }
            let _ = tokio::time::timeout(FAREWELL, reported.cancelled()).await;
            closing.cancel();
        });
        overlay.answer_queries(Queries::new(dispatcher, gate, Some(own_domain), shutdown.clone()));
        overlay.spawn(tasks, quiet);
        between.spawn(tasks, shutdown);
        let ending = shutdown.clone();
        tasks.spawn_sure("subscriptions", relays.1.run(ending));
        let ending = shutdown.clone();
        tasks.spawn_sure("renewal", renewal.run(ending));
        let ending = shutdown.clone();
        tasks.spawn_sure("lists of denied", async move {
            denying.run(ending.clone()).await;
            ending.cancelled().await;
        });
        if let Some(issuing) = issuer {
            let ending = shutdown.clone();
            tasks.spawn_sure("issuer", issuing.run(view, ending));
        }
    }
}

/// Open the sensor's membership in its domain; `has_others` means that the issuer here has admitted other
/// hosts.
fn open_domain(
    state: &Path,
    membership: &Membership,
    (config, has_others): (&Config, bool),
    certificate: &Certificate,
    overlay: &mut Overlay,
) -> anyhow::Result<(Domain, DomainHandle)> {
    // Including the issuer, at the addresses from the token: it is found when all members have moved.
    let known = membership.seeds.iter().chain(&membership.issuer).chain(&config.seeds);
    let seeds: BTreeSet<Address> = known.cloned().collect();
    let seeds: Vec<Address> = seeds.into_iter().collect();
    let mut election = election::Config::new(certificate.domain.clone());
    election.has_seeds = !seeds.is_empty() || has_others;
    let me = Me {
        key: overlay.key.peer(),
        profile: Profile {
            host: certificate.host.clone(),
            may_represent: certificate.roles.has(Role::Representative),
            priority: certificate.priority,
        },
        addresses: overlay.advertised.iter().map(|at| at.as_str().into()).collect(),
    };
    let config = domain::Config { election, me, seeds, folder: state.to_owned(), seed: overlay.seed };
    let (peers, sessions) = (overlay.hub.peers(), overlay.hub.sessions(Protocol::Control));
    let gate = Arc::clone(&overlay.gate);
    Ok(Domain::open(config, overlay.net.clone(), gate, peers, sessions)?)
}
