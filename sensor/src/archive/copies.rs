//! Copies of the series of many hosts, each in a folder of its own, within a limit of space.
//!
//! Shell. Rules: when space is short, the oldest day is deleted of those hosts that take more than an equal share, so that no host
//! costs others theirs; what was deleted is not fetched again. Not here: the files of a host (`store::daily_copy`).

use super::owners::spelled;
use crate::sample::ticker::locked;
use jiff::civil::Date;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use store::daily::{DailyLimit, DailyReader};
use store::daily_copy::{DailyCopy, DayLen, Following, Reached};
use wire::id::HostName;
use wire::version::JOB_SERIES;

/// Most hosts: those of a large domain, and as many that are gone.
pub const HOSTS_MAX: usize = 8192;

/// All copies.
pub struct Copies {
    folder: PathBuf,
    limit: DailyLimit,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    hosts: BTreeMap<HostName, Host>,
    deleted: u64,
}

#[derive(Clone, Debug, Default)]
struct Host {
    days: BTreeMap<Date, u64>,
    /// Length of what was set aside.
    earlier: BTreeMap<Date, u64>,
    /// Days until this one were deleted.
    deleted_until: Option<Date>,
}

/// What there is of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Length in all, in bytes.
    pub bytes: u64,
    pub oldest: Option<Date>,
    pub newest: Option<Date>,
}

/// Whose log is copied from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// That of the host itself.
    Host,
    /// The copy of another archive, which may have less.
    Archive,
}

impl Host {
    fn used(&self) -> u64 {
        self.days.values().chain(self.earlier.values()).sum()
    }

    /// The oldest day, unless it is this one.
    fn oldest_but(&self, date: Option<Date>) -> Option<Date> {
        let oldest = self.days.keys().next().into_iter().chain(self.earlier.keys().next()).min().copied();
        oldest.filter(|oldest| Some(*oldest) != date)
    }
}

impl Copies {
    /// Opens the copies in this folder, which is created if it does not exist.
    ///
    /// # Errors
    /// If the folder cannot be created or read.
    pub fn open(folder: &Path, limit: DailyLimit) -> io::Result<Copies> {
        daemon::state_folder::prepare_below(folder)?;
        let mut table = Table::default();
        for entry in std::fs::read_dir(folder)? {
            let name = entry?.file_name();
            let host = name.to_str().and_then(|name| HostName::try_from(name).ok());
            let Some(host) = host.filter(|host| name.to_str() == Some(spelled(host).as_str())) else {
                continue;
            };
            let copy = DailyCopy::new(&folder.join(&name), JOB_SERIES);
            let lens = |reader: DailyReader| -> io::Result<BTreeMap<Date, u64>> {
                Ok(reader.lens()?.into_iter().map(|day| (day.date, day.len)).collect())
            };
            let (days, earlier) = (lens(copy.reader())?, lens(copy.earlier())?);
            table.hosts.insert(host, Host { days, earlier, deleted_until: copy.deleted_until()? });
        }
        Ok(Copies { folder: folder.to_owned(), limit, table: Mutex::new(table) })
    }

    /// Disk space in use, in bytes.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        locked(&self.table).hosts.values().map(Host::used).sum()
    }

    /// Number of days that were deleted for want of space.
    #[must_use]
    pub fn deleted(&self) -> u64 {
        locked(&self.table).deleted
    }

    /// Returns what there is of each host.
    #[must_use]
    pub fn hosts(&self) -> BTreeMap<HostName, Extent> {
        let extent = |host: &Host| Extent {
            bytes: host.used(),
            oldest: host.oldest_but(None),
            newest: host.days.keys().next_back().copied(),
        };
        locked(&self.table).hosts.iter().map(|(name, host)| (name.clone(), extent(host))).collect()
    }

    /// Returns the length of each day of a host; `None` if there is nothing of it.
    #[must_use]
    pub fn days(&self, host: &HostName) -> Option<Vec<DayLen>> {
        let table = locked(&self.table);
        let days = &table.hosts.get(host)?.days;
        Some(days.iter().map(|(&date, &len)| DayLen { date, len }).collect())
    }

    /// Whether days of a host differed from its log, and are here alone.
    #[must_use]
    pub fn has_earlier(&self, host: &HostName) -> bool {
        locked(&self.table).hosts.get(host).is_some_and(|host| !host.earlier.is_empty())
    }

    /// Returns readers of a host's series: of the copy, and of what was set aside.
    #[must_use]
    pub fn readers(&self, host: &HostName) -> Vec<DailyReader> {
        let copy = self.copy(host);
        if self.days(host).is_some() { vec![copy.reader(), copy.earlier()] } else { Vec::new() }
    }

    /// Returns how far those days are copied that are to be fetched, of these that a source has.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn lacking(&self, host: &HostName, from: From, there: &[DayLen]) -> io::Result<Vec<Reached>> {
        let wanted: Vec<Date> = {
            let table = locked(&self.table);
            let known = table.hosts.get(host).cloned().unwrap_or_default();
            let mut all: Vec<Date> =
                known.days.keys().copied().chain(there.iter().map(|day| day.date)).collect();
            all.sort_unstable();
            all.dedup();
            let first = all.len().saturating_sub(self.limit.days);
            let is_retained = |date: Date| {
                all[first..].contains(&date) && known.deleted_until.is_none_or(|until| date > until)
            };
            let lacks = |day: &DayLen| {
                let here = known.days.get(&day.date).copied().unwrap_or(0);
                day.len > here || (from == From::Host && day.len < here)
            };
            there.iter().filter(|day| lacks(day) && is_retained(day.date)).map(|day| day.date).collect()
        };
        let reader = self.copy(host).reader();
        wanted.into_iter().map(|date| reader.reached(date)).collect()
    }

    /// Stores what follows in a day; returns whether there was anything.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn store(
        &self,
        host: &HostName,
        from: From,
        day: &Reached,
        following: &Following,
    ) -> io::Result<bool> {
        match following {
            Following::Bytes(bytes) if !bytes.is_empty() => {
                self.make_room(host, day.date, bytes.len() as u64)?;
                self.copy(host).append(day.date, day.len, bytes)?;
                let mut table = locked(&self.table);
                let host = table.hosts.entry(host.clone()).or_default();
                host.days.insert(day.date, day.len + bytes.len() as u64);
                Ok(true)
            }
            // Of two archives that differ, each keeps what it has.
            Following::Differs if from == From::Host && day.len > 0 => {
                let copy = self.copy(host);
                copy.set_aside(day.date)?;
                let aside = copy.earlier().reached(day.date)?.len;
                let mut table = locked(&self.table);
                let host = table.hosts.entry(host.clone()).or_default();
                host.days.remove(&day.date);
                host.earlier.insert(day.date, aside);
                Ok(true)
            }
            Following::Bytes(_) | Following::Differs | Following::Gone => Ok(false),
        }
    }

    /// Deletes all of a host.
    ///
    /// # Errors
    /// If a file cannot be deleted.
    pub fn remove(&self, host: &HostName) -> io::Result<()> {
        let folder = self.folder.join(spelled(host));
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => {
                locked(&self.table).hosts.remove(host);
                Ok(())
            }
        }
    }

    fn copy(&self, host: &HostName) -> DailyCopy {
        DailyCopy::new(&self.folder.join(spelled(host)), JOB_SERIES)
    }

    fn make_room(&self, host: &HostName, date: Date, needed: u64) -> io::Result<()> {
        loop {
            let Some((of, oldest)) = self.superfluous(host, date, needed)? else { return Ok(()) };
            self.copy(&of).delete(oldest)?;
            let mut table = locked(&self.table);
            table.deleted += 1;
            if let Some(of) = table.hosts.get_mut(&of) {
                of.days.remove(&oldest);
                of.earlier.remove(&oldest);
                of.deleted_until = of.deleted_until.max(Some(oldest));
            }
        }
    }

    /// Returns the day that is to be deleted first; `None` if there is room.
    fn superfluous(&self, host: &HostName, date: Date, needed: u64) -> io::Result<Option<(HostName, Date)>> {
        let table = locked(&self.table);
        if !table.hosts.contains_key(host) && table.hosts.len() >= HOSTS_MAX {
            return Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                format!("{HOSTS_MAX} hosts are archived already"),
            ));
        }
        let own = table.hosts.get(host);
        let is_new = own.is_none_or(|own| !own.days.contains_key(&date));
        if let Some(own) = own.filter(|own| is_new && own.days.len() >= self.limit.days.max(1))
            && let Some(oldest) = own.oldest_but(Some(date)).filter(|oldest| *oldest < date)
        {
            return Ok(Some((host.clone(), oldest)));
        }
        let used: u64 = table.hosts.values().map(Host::used).sum();
        if used + needed <= self.limit.bytes {
            return Ok(None);
        }
        let share = self.limit.bytes / (table.hosts.len() as u64 + u64::from(own.is_none())).max(1);
        let of = |(name, of): (&HostName, &Host)| {
            let written = (name == host).then_some(date);
            let takes = of.used() + if name == host { needed } else { 0 };
            (takes > share).then(|| Some((of.oldest_but(written)?, name.clone()))).flatten()
        };
        match table.hosts.iter().filter_map(of).min() {
            Some((oldest, of)) => Ok(Some((of, oldest))),
            None => {
                let text = format!(
                    "the limit of {} bytes (budget_mib) has no room for a day of each host",
                    self.limit.bytes
                );
                Err(io::Error::new(io::ErrorKind::QuotaExceeded, text))
            }
        }
    }
}
