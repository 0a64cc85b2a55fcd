//! Poll schedule of the sensors whose health is shown, and of the domains whose terms are looked up.
//!
//! Pure: times are given. Rule: a sensor that is queried at its own address is queried every second, so that
//! its failure is shown within three; the others are reported by their domain, and further details are
//! queried every five seconds. Not here: the requests (`asking`), parsing of answers (`crate::sensors`).

use super::asking::Question;
use super::poll_schedule::{Due, EVERY, PollSchedule};
use crate::feed;
use crate::sensors::{ADDRESSES_MAX, At, HOSTS_MAX};
use std::time::Duration;

/// Interval of queries to sensors that their domain reports, and of term lookups.
const SELDOM: Duration = Duration::from_secs(5);
/// Domains whose terms are looked up.
const DOMAINS_MAX: usize = 64;

/// The schedule.
#[derive(Debug, Default)]
pub(super) struct Sensors {
    sensors: Vec<(At, PollSchedule)>,
    domains: Vec<(String, PollSchedule)>,
}

impl Sensors {
    /// Replace the set of sensors and domains.
    pub(super) fn set_request(&mut self, request: feed::Sensors) {
        self.sensors.retain(|(at, _)| request.sensors.contains(at));
        self.domains.retain(|(domain, _)| request.domains.contains(domain));
        for at in request.sensors.into_iter().take(ADDRESSES_MAX + 1 + HOSTS_MAX) {
            if !self.sensors.iter().any(|(known, _)| *known == at) {
                let every = if is_itself(&at) { EVERY } else { SELDOM };
                self.sensors.push((at, PollSchedule::every(every)));
            }
        }
        for domain in request.domains.into_iter().take(DOMAINS_MAX) {
            if !self.domains.iter().any(|(known, _)| *known == domain) {
                self.domains.push((domain, PollSchedule::every(SELDOM)));
            }
        }
    }

    /// The query to the next sensor that is due at its own address, sent even while the daemon is lost; it
    /// counts as in flight from then on.
    pub(super) fn question_itself(&mut self, now: Duration, is_full: bool) -> Option<Question> {
        self.next_sensor(now, is_full, true)
    }

    /// The next query to the daemon that is due; it counts as in flight from then on.
    pub(super) fn question(&mut self, now: Duration, is_full: bool) -> Option<Question> {
        if let Some(question) = self.next_sensor(now, is_full, false) {
            return Some(question);
        }
        let domains = self.domains.iter_mut().filter(|(_, schedule)| is_due(schedule, now, is_full));
        let (domain, schedule) = domains.min_by_key(|(_, schedule)| schedule.next(false))?;
        schedule.ask();
        Some(Question::Term(domain.clone()))
    }

    /// The sensor that is due for longest.
    fn next_sensor(&mut self, now: Duration, is_full: bool, itself: bool) -> Option<Question> {
        let sensors = self.sensors.iter_mut();
        let due = sensors.filter(|(at, schedule)| is_itself(at) == itself && is_due(schedule, now, is_full));
        let (at, schedule) = due.min_by_key(|(_, schedule)| schedule.next(false))?;
        schedule.ask();
        Some(Question::Sensor(at.clone()))
    }

    /// The schedules of queries to the daemon.
    pub(super) fn schedules(&self) -> impl Iterator<Item = &PollSchedule> {
        let sensors = self.sensors.iter().filter(|(at, _)| !is_itself(at)).map(|(_, schedule)| schedule);
        sensors.chain(self.domains.iter().map(|(_, schedule)| schedule))
    }

    /// The schedules of queries to sensors at their own addresses.
    pub(super) fn own_schedules(&self) -> impl Iterator<Item = &PollSchedule> {
        self.sensors.iter().filter(|(at, _)| is_itself(at)).map(|(_, schedule)| schedule)
    }

    /// Record that a sensor answered, or did not.
    pub(super) fn answered(&mut self, at: &At, is_well: bool, now: Duration, took: Duration) {
        let schedule = self.sensors.iter_mut().find(|(known, _)| known == at);
        schedule.into_iter().for_each(|(_, schedule)| settle(schedule, is_well, now, took));
    }

    /// Record that a term was looked up, or was not.
    pub(super) fn resolved(&mut self, domain: &str, is_well: bool, now: Duration, took: Duration) {
        let schedule = self.domains.iter_mut().find(|(known, _)| known == domain);
        schedule.into_iter().for_each(|(_, schedule)| settle(schedule, is_well, now, took));
    }
}

/// Whether a query is due; with `is_full`, what failed before is not queried.
fn is_due(schedule: &PollSchedule, now: Duration, is_full: bool) -> bool {
    schedule.due(now, false).is_some() && !(is_full && schedule.has_failed())
}

fn is_itself(at: &At) -> bool {
    matches!(at, At::Address(_))
}

fn settle(schedule: &mut PollSchedule, is_well: bool, now: Duration, took: Duration) {
    match is_well {
        true => schedule.answered(Due::All, now, took),
        false => schedule.failed(now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flock::sweep::HostName;
    use std::net::SocketAddr;

    const SEC: Duration = Duration::from_secs(1);

    fn asked(sensors: &mut Sensors, now: Duration) -> Vec<Question> {
        std::iter::from_fn(|| sensors.question_itself(now, false).or_else(|| sensors.question(now, false)))
            .collect()
    }

    #[test]
    fn a_sensor_at_its_address_is_asked_each_second_and_others_each_five() {
        let address = At::Address(SocketAddr::from(([127, 0, 0, 1], 7327)));
        let host = At::Host(HostName::new("demo", "wn01"));
        let mut sensors = Sensors::default();
        let wanted =
            feed::Sensors { sensors: vec![address.clone(), host.clone()], domains: vec!["demo".into()] };
        sensors.set_request(wanted.clone());
        assert_eq!(asked(&mut sensors, SEC).len(), 3);
        assert!(asked(&mut sensors, 9 * SEC).is_empty(), "no host is asked twice at a time");
        sensors.answered(&address, true, SEC, Duration::ZERO);
        sensors.answered(&host, true, SEC, Duration::ZERO);
        sensors.resolved("demo", true, SEC, Duration::ZERO);
        assert_eq!(asked(&mut sensors, 2 * SEC), [Question::Sensor(address.clone())]);
        sensors.answered(&address, false, 2 * SEC, Duration::ZERO);
        assert!(asked(&mut sensors, 3 * SEC).is_empty(), "later each time");
        let later = asked(&mut sensors, 6 * SEC);
        assert_eq!(later, [Question::Sensor(address), Question::Sensor(host), Question::Term("demo".into())]);
        sensors.set_request(feed::Sensors::default());
        assert!(asked(&mut sensors, 60 * SEC).is_empty());
    }
}
