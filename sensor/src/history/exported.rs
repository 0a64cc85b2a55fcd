//! Exported days of the domain, as queries of the past read them: what a program that can read their files provides.
//!
//! Rule: they are read where this host has nothing any more, and what cannot be read of them is said in the answer. Not
//! here: the files (`history_files`), when they are read (`store::plan`).

use std::sync::{Arc, OnceLock};
use store::bucket::Bucket;
use store::exported::ExportedTimes;
use wire::id::HostName;
use wire::sample::Metric;
use wire::time::Time;

/// Minutes that are wanted.
#[derive(Clone)]
pub struct WantedMinutes {
    /// From this time on.
    pub since: Time,
    /// Before this time.
    pub until: Time,
    /// Of this host; of all, if `None`.
    pub host: Option<HostName>,
    /// How the names of the metrics start.
    pub name_start: String,
    /// Metrics of these names.
    pub name: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

/// Takes a minute of a host and a metric; returns whether more are wanted.
pub type TakeMinute<'a> = dyn FnMut(&HostName, &Arc<Metric>, Time, &Bucket) -> bool + 'a;

/// Days that were exported to a place.
pub trait ExportedDays: Send + Sync {
    /// Returns the times of the days, oldest first, without overlaps, and why some of them may be missing. It does not wait.
    fn spans(&self) -> (Vec<(Time, Time)>, Option<String>);

    /// Returns the times of the days that are exported whole, of a host or of all that is copied, oldest first. It does not
    /// wait.
    fn whole(&self, host: Option<&HostName>) -> Vec<(Time, Time)>;

    /// Passes the wanted minutes on, those of a series in the order of time. It waits for the place.
    ///
    /// # Errors
    /// What could not be read; all else was.
    fn read(&self, wanted: &WantedMinutes, each: &mut TakeMinute<'_>) -> Result<(), String>;
}

/// The exported days that queries read; none until they are set.
#[derive(Clone, Default)]
pub struct Exported(Arc<OnceLock<Box<dyn ExportedDays>>>);

impl Exported {
    /// Sets the days; once.
    pub fn set(&self, days: Box<dyn ExportedDays>) {
        // A daemon has one place.
        let _ = self.0.set(days);
    }

    /// Returns what is exported, if there is a place: what is not, is held beyond its age.
    #[must_use]
    pub fn times(&self, host: Option<&HostName>) -> Option<ExportedTimes> {
        Some(ExportedTimes::new(self.days()?.whole(host)))
    }

    /// Returns the days, if there is a place.
    #[must_use]
    pub fn days(&self) -> Option<&dyn ExportedDays> {
        self.0.get().map(AsRef::as_ref)
    }
}
