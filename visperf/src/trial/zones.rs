//! Time zones given by `--zone` to logs whose timestamps have none.
//!
//! Pure.

use jiff::tz::TimeZone;
use std::path::Path;

/// One `--zone`: for a log, or for all that are not named.
#[derive(Clone, Debug)]
pub(crate) struct ZoneOf {
    /// The log's file name, or its path as given on the command line.
    log: Option<String>,
    zone: TimeZone,
}

impl ZoneOf {
    /// Parse `ZONE` or `LOG=ZONE`.
    ///
    /// # Errors
    /// Says what was expected.
    pub(crate) fn parse(text: &str) -> Result<ZoneOf, String> {
        let (log, name) = match text.rsplit_once('=') {
            Some((log, name)) => (Some(log.to_owned()), name),
            None => (None, text),
        };
        let zone = match name {
            "local" => TimeZone::system(),
            _ => log_filters::calendar::zone(name)?,
        };
        Ok(ZoneOf { log, zone })
    }

    fn names(&self, path: &Path) -> bool {
        let is_name_of =
            |log: &str| path.as_os_str() == log || path.file_name().is_some_and(|name| name == log);
        self.log.as_deref().is_some_and(is_name_of)
    }
}

/// The zone of the log at `path`: of the last option that names it, else that of the unnamed logs.
pub(crate) fn zone_of(zones: &[ZoneOf], path: &Path) -> TimeZone {
    zones
        .iter()
        .rfind(|zone| zone.names(path))
        .map_or_else(|| zone_of_others(zones), |named| named.zone.clone())
}

/// The zone of the logs that none of `zones` names.
pub(crate) fn zone_of_others(zones: &[ZoneOf]) -> TimeZone {
    let for_all = zones.iter().rfind(|zone| zone.log.is_none());
    for_all.map_or_else(TimeZone::system, |for_all| for_all.zone.clone())
}

/// The log name of the first `--zone` that matches none of the logs.
pub(crate) fn of_no_log<'z>(zones: &'z [ZoneOf], logs: &[impl AsRef<Path>]) -> Option<&'z str> {
    let names_none = |zone: &&ZoneOf| !logs.iter().any(|log| zone.names(log.as_ref()));
    zones.iter().filter(names_none).find_map(|zone| zone.log.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_the_zone_that_names_it_or_the_one_for_all() {
        let zones = |texts: &[&str]| -> Vec<ZoneOf> {
            texts.iter().map(|text| ZoneOf::parse(text).unwrap()).collect()
        };
        let of = |texts: &[&str], path: &str| zone_of(&zones(texts), Path::new(path));
        let fixed = |name: &str| log_filters::calendar::zone(name).unwrap();
        let given = ["slurmd.log=+01:00", "-05:00", "/var/a=b.log=UTC"];
        assert_eq!(of(&given, "/var/log/slurmd.log"), fixed("+01:00"));
        assert_eq!(of(&given, "slurmctld.log"), fixed("-05:00"));
        assert_eq!(of(&given, "/var/a=b.log"), TimeZone::UTC);
        assert_eq!(of(&["UTC", "+02:00"], "x"), fixed("+02:00"), "the last");
        assert_eq!(of(&["a=UTC"], "x"), TimeZone::system());
        assert_eq!(of_no_log(&zones(&given), &["/x/slurmd.log"]), Some("/var/a=b.log"));
        assert_eq!(of_no_log(&zones(&given[..2]), &["/x/slurmd.log"]), None);
        assert!(ZoneOf::parse("a=Moon/Base").unwrap_err().contains("Europe/Rome"));
    }
}
