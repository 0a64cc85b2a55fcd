//! Rounds of an archive: which hosts it is to have, copying them, and giving up what is where it belongs.
//!
//! Shell. Rules: a host that can be asked is copied from there; what it does not have any more, and hosts that are gone, from
//! other archives. Series that this archive does not own are deleted once every owner has as much of each day.
//! Not here: copying a host (`copying`), who owns it (`owners`).

use super::copying::ask;
use super::owners::owners;
use super::{Archive, Peers};
use crate::sample::ticker::locked;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::api::archive::ArchiveParams;
use wire::api::domain::{Host, HostState, HostsParams};
use wire::id::HostName;

/// Most hosts that are copied at a time.
const AT_ONCE: usize = 4;

/// Longest time between two looks at what other archives have. They are asked at once when one comes or goes, and then after
/// ever longer times, as they need some until they have what is to be theirs.
const LOOK_EVERY: Duration = Duration::from_secs(600);

/// What an archive knows of the others.
#[derive(Default)]
struct Others {
    /// Length of each host's series at each archive.
    have: BTreeMap<HostName, BTreeMap<HostName, u64>>,
    /// The archives, this one too.
    archives: BTreeSet<HostName>,
    /// When they were asked last, and how long after that they are asked again.
    asked: Option<(Instant, Duration)>,
}

impl Others {
    /// Returns how long after a look at these archives the next one follows; `None` if it is not time for one.
    fn due(&self, archives: &BTreeSet<HostName>, round: Duration) -> Option<Duration> {
        match self.asked {
            Some((asked, pause)) if *archives == self.archives => {
                (asked.elapsed() >= pause).then(|| (pause * 2).min(LOOK_EVERY))
            }
            _ => Some(round),
        }
    }
}

/// A host, and where it is copied from.
struct Task {
    host: HostName,
    /// Whether its sensor answers.
    is_live: bool,
    /// Archives that have more of it.
    archives: Vec<HostName>,
}

impl Archive {
    /// Copies what this archive is to have, again and again, until `shutdown`.
    pub async fn run(self, peers: Arc<dyn Peers>, shutdown: CancellationToken) {
        let mut due = tokio::time::interval(self.0.config.round);
        due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut others = Others::default();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = due.tick() => {}
            }
            tokio::select! {
                // What is being written is finished by its thread.
                () = shutdown.cancelled() => return,
                () = self.round(&peers, &mut others) => {}
            }
        }
    }

    async fn round(&self, peers: &Arc<dyn Peers>, others: &mut Others) {
        let rows = match ask(peers, None, &HostsParams {}).await {
            Ok(answer) => answer.hosts,
            Err(error) => return self.note(Some(format!("the hosts of the domain are not known: {error}"))),
        };
        let archives = self.present(&rows);
        let due = others.due(&archives, self.0.config.round);
        if let Some(pause) = due {
            *others = self.look(peers, archives, pause).await;
        }
        let live: BTreeSet<HostName> = rows
            .iter()
            .filter(|row| row.state == HostState::Live)
            .filter_map(|row| named(&row.host))
            .collect();
        let mut known: BTreeSet<HostName> = rows.iter().filter_map(|row| named(&row.host)).collect();
        let here = self.0.copies.hosts();
        known.extend(here.keys().cloned());
        known.extend(others.have.values().flat_map(BTreeMap::keys).cloned());
        let (own, spare): (BTreeSet<HostName>, BTreeSet<HostName>) =
            known.into_iter().partition(|host| self.owners(host, &others.archives).contains(&&self.0.host));
        self.show(&own, &others.archives);
        let bytes = |host: &HostName| here.get(host).map_or(0, |extent| extent.bytes);
        let tasks = own.into_iter().filter_map(|host| task((bytes(&host), host), &live, others)).collect();
        self.copy_all(peers, tasks).await;
        if due.is_some() {
            for host in spare.iter().filter(|host| here.contains_key(*host)) {
                self.give_up(peers, host, &others.archives).await;
            }
        }
    }

    /// Returns the archives that are there, or were until a short time ago.
    fn present(&self, rows: &[Host]) -> BTreeSet<HostName> {
        let take_over = self.0.config.take_over.as_secs_f64();
        let is_there = |row: &&Host| {
            row.archive == Some(true) && (row.state == HostState::Live || row.age_secs < take_over)
        };
        let archives = rows.iter().filter(is_there).filter_map(|row| named(&row.host));
        archives.chain([self.0.host.clone()]).collect()
    }

    fn owners<'a>(&self, host: &HostName, archives: &'a BTreeSet<HostName>) -> Vec<&'a HostName> {
        owners(host, archives, self.0.config.copies)
    }

    /// Asks other archives what they have, and again after this time.
    async fn look(&self, peers: &Arc<dyn Peers>, archives: BTreeSet<HostName>, pause: Duration) -> Others {
        let mut others = Others { asked: Some((Instant::now(), pause)), ..Others::default() };
        for archive in archives.iter().filter(|archive| **archive != self.0.host) {
            match ask(peers, Some(archive), &ArchiveParams::default()).await {
                Ok(answer) => {
                    let hosts = answer.hosts.into_iter();
                    let have = hosts.filter_map(|host| Some((named(&host.host)?, host.bytes))).collect();
                    others.have.insert(archive.clone(), have);
                }
                Err(error) => tracing::debug!(%archive, %error, "it does not say what it has"),
            }
        }
        others.archives = archives;
        others
    }

    fn show(&self, own: &BTreeSet<HostName>, archives: &BTreeSet<HostName>) {
        let mut shown = locked(&self.0.state);
        shown.archives.clone_from(archives);
        shown.hosts.retain(|host, _| own.contains(host));
        for host in own {
            shown.hosts.entry(host.clone()).or_default().is_own = true;
        }
    }

    async fn copy_all(&self, peers: &Arc<dyn Peers>, tasks: Vec<Task>) {
        let mut running = JoinSet::new();
        for task in tasks {
            if running.len() >= AT_ONCE {
                resumed(running.join_next().await);
            }
            let (own, peers) = (self.clone(), Arc::clone(peers));
            running.spawn(async move { own.copy_host(&peers, task).await });
        }
        while let Some(done) = running.join_next().await {
            resumed(Some(done));
        }
    }

    async fn copy_host(&self, peers: &Arc<dyn Peers>, Task { host, is_live, archives }: Task) {
        if is_live {
            let copied = self.copy(peers, &host, &host).await;
            self.note_host(&host, copied);
        }
        for archive in archives {
            if let Err(error) = self.copy(peers, &host, &archive).await {
                self.note_host(&host, Err(format!("from {archive}: {error}")));
            }
        }
    }

    /// Deletes a host's series if all that are to have them do.
    async fn give_up(&self, peers: &Arc<dyn Peers>, host: &HostName, archives: &BTreeSet<HostName>) {
        let owners = self.owners(host, archives);
        if owners.len() < self.0.config.copies || self.0.copies.has_earlier(host) {
            return;
        }
        let days = self.0.copies.days(host).unwrap_or_default();
        for owner in owners {
            let request = ArchiveParams { measured_by: Some(host.to_string()) };
            let Ok(answer) = ask(peers, Some(owner), &request).await else { return };
            let there: BTreeMap<String, u64> =
                answer.hosts.into_iter().flat_map(|host| host.days).map(|day| (day.day, day.bytes)).collect();
            if days.iter().any(|day| there.get(&day.date.to_string()).is_none_or(|len| *len < day.len)) {
                return;
            }
        }
        let (own, name) = (self.clone(), host.clone());
        let removing = tokio::task::spawn_blocking(move || own.0.copies.remove(&name));
        match removing.await {
            Ok(Ok(())) => tracing::info!(%host, "its series are at other archives, and deleted here"),
            Ok(Err(error)) => tracing::warn!(%host, %error, "its series cannot be deleted"),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => {}
        }
    }
}

/// Returns from where a host is copied that has so many bytes here; `None` if there is no place.
fn task((here, host): (u64, HostName), live: &BTreeSet<HostName>, others: &mut Others) -> Option<Task> {
    let mut archives = Vec::new();
    for (archive, have) in &mut others.have {
        // Once for each look.
        if have.get(&host).is_some_and(|there| *there > here) {
            have.remove(&host);
            archives.push(archive.clone());
        }
    }
    let is_live = live.contains(&host);
    (is_live || !archives.is_empty()).then_some(Task { host, is_live, archives })
}

fn resumed(done: Option<Result<(), tokio::task::JoinError>>) {
    if let Some(Err(error)) = done
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
}

fn named(name: &str) -> Option<HostName> {
    HostName::try_from(name).ok()
}
