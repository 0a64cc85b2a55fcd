//! Configuration of the flight recorder: `[sensor.recorder]`.
//!
//! Pure. Rule: [`RawConfig`] mirrors the file and nothing else; a [`Config`] is valid by construction, and
//! all errors are reported at once, each with its key.

use super::ring::{BYTES_MAX, Limits};
use super::trigger::{On, Pattern, Trigger};
use crate::channel::subscription::CompiledRequest;
use crate::process::source::Kind;
use crate::sample::schedule::Rate;
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use std::time::Duration;
use wire::channel::{self, Budget, ChannelRequest, expression};

/// Default for `seconds`: how far the recorder reaches back.
pub const SECONDS_DEFAULT: f64 = 60.0;
/// Default rate of recorded sweeps when only what ran is read: an idle host can spare that.
pub const HZ_OF_CHANGED: f64 = 16.0;
/// Default rate when every sweep walks all tasks in the kernel.
pub const HZ_OF_SWEEP: f64 = 2.0;
/// Default rate when every sweep reads files of `/proc`: such sweeps are made anyway.
pub const HZ_OF_PROCFS: f64 = 1.0;
/// Default for `budget_mib`: disk space for recordings, in MiB.
pub const BUDGET_MIB_DEFAULT: u64 = 256;
/// Allowed range of `seconds`: for more, the memory of the ring suffices only for few processes.
pub const SECONDS_ALLOWED: std::ops::RangeInclusive<f64> = 5.0..=600.0;
/// Allowed range of `budget_mib`, in MiB: at least one long recording.
pub const BUDGET_MIB_ALLOWED: std::ops::RangeInclusive<u64> = 64..=1 << 20;
/// Most triggers: each is checked for every line.
pub const TRIGGERS_MAX: usize = 64;
/// Default CPU budget of a condition, in milliseconds per second: a busy second of a large host must not stop
/// it.
pub const CONDITION_CPU_MS_DEFAULT: u32 = 100;
/// Largest compiled expression, in bytes.
const EXPRESSION_BYTES_MAX: usize = 1 << 20;

/// `[sensor.recorder]` as written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    /// Whether the recorder is on [default: true].
    pub on: Option<bool>,
    /// How far it reaches back, in seconds.
    pub seconds: Option<f64>,
    /// Recorded sweeps per second.
    pub hz: Option<f64>,
    /// Disk space for recordings, in MiB.
    pub budget_mib: Option<u64>,
    #[serde(default)]
    pub triggers: Vec<RawTrigger>,
}

/// One `[[sensor.recorder.triggers]]` as written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTrigger {
    pub name: String,
    /// Which events it checks: `line`, `call-start` or `call-end`; or `condition`, which is the default with
    /// a condition.
    #[serde(default)]
    pub on: On,
    /// Fires when this condition becomes true; the syntax is in docs/channels.md.
    pub condition: Option<String>,
    /// Filter for the processes of the condition.
    pub filter: Option<String>,
    /// How often the condition is evaluated, in Hz [default: 1].
    pub hz: Option<f64>,
    /// CPU budget of the condition, in milliseconds per second.
    pub cpu_ms: Option<u32>,
    /// Regular expression for the kind of the event.
    pub kind: Option<String>,
    /// Regular expression for the id of the call.
    pub call: Option<String>,
    /// Regular expression for the job.
    pub job: Option<String>,
    /// Regular expression for the outcome.
    pub outcome: Option<String>,
    /// Regular expression for the user.
    pub user: Option<String>,
    /// Regular expression for the parties.
    pub host: Option<String>,
    /// Regular expression for the other texts.
    pub text: Option<String>,
    /// Seconds recorded before the event.
    pub before_s: Option<f64>,
    /// Seconds recorded after the event.
    pub after_s: Option<f64>,
    /// Seconds without another recording after it has fired, or after another trigger has recorded its event.
    pub cool_down_s: Option<f64>,
}

/// Checked configuration of the recorder.
#[derive(Clone, Debug)]
pub struct Config {
    /// Limits of the ring; `None` disables the recorder.
    pub ring: Option<Limits>,
    /// Requested rate of recorded sweeps; without it the rate depends on the cost of a sweep
    /// ([`Config::rate`]).
    pub requested_rate: Option<Rate>,
    /// Disk space for recordings, in bytes.
    pub budget_bytes: u64,
    pub triggers: Vec<Trigger>,
}

/// Error in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    /// Path of the key below `[sensor.recorder]`.
    pub keys: Vec<String>,
    /// What was found and what was expected.
    pub message: String,
}

impl Config {
    /// Checks `raw`.
    ///
    /// # Errors
    /// Every invalid value.
    pub fn new(raw: RawConfig) -> Result<Config, Vec<KeyError>> {
        let mut wrong = Vec::new();
        let mut note = |keys: &[&str], message: String| {
            wrong.push(KeyError { keys: keys.iter().map(|key| (*key).to_owned()).collect(), message });
        };
        let mut seconds = raw.seconds.unwrap_or(SECONDS_DEFAULT);
        if !SECONDS_ALLOWED.contains(&seconds) {
            note(&["seconds"], format!("{seconds} seconds back; expected 5 to 600"));
            seconds = SECONDS_DEFAULT;
        }
        let requested = raw.hz.map(Rate::of_processes).transpose();
        let requested = requested.map_err(|error| note(&["hz"], error.to_string())).unwrap_or_default();
        let mib = raw.budget_mib.unwrap_or(BUDGET_MIB_DEFAULT);
        if !BUDGET_MIB_ALLOWED.contains(&mib) {
            note(&["budget_mib"], format!("{mib} MiB for recordings; expected 64 to 1048576"));
        }
        if raw.triggers.len() > TRIGGERS_MAX {
            note(&["triggers"], format!("{} triggers; expected at most {TRIGGERS_MAX}", raw.triggers.len()));
        }
        let reach = Duration::from_secs_f64(seconds);
        let triggers = raw.triggers.iter().enumerate().map(|(entry, raw)| {
            trigger(raw, reach, |key, message| note(&["triggers", &entry.to_string(), key], message))
        });
        let triggers = triggers.collect();
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let reach_ns = u64::try_from(reach.as_nanos()).expect("at most ten minutes");
        let limits = Limits { reach_ns, bytes_max: BYTES_MAX };
        let ring = raw.on.unwrap_or(true).then_some(limits);
        Ok(Config { ring, requested_rate: requested, budget_bytes: mib << 20, triggers })
    }
}

impl Config {
    /// Rate of recorded sweeps with this kind of source.
    #[must_use]
    pub fn rate(&self, kind: Kind) -> Rate {
        let hz = match kind {
            Kind::BpfChanged => HZ_OF_CHANGED,
            Kind::BpfSweep => HZ_OF_SWEEP,
            Kind::Procfs => HZ_OF_PROCFS,
        };
        self.requested_rate.unwrap_or_else(|| Rate::of_processes(hz).expect("the rates above are allowed"))
    }
}

fn trigger(raw: &RawTrigger, reach: Duration, mut note: impl FnMut(&str, String)) -> Trigger {
    if raw.name.is_empty() {
        note("name", "it is empty; expected a name for its recordings".to_owned());
    }
    let condition = condition(raw, &mut note);
    let mut expression = |key: &str, text: &Option<String>| -> Option<Regex> {
        let built = RegexBuilder::new(text.as_ref()?).size_limit(EXPRESSION_BYTES_MAX).build();
        built.map_err(|error| note(key, error.to_string())).ok()
    };
    let pattern = Pattern {
        kind: expression("kind", &raw.kind),
        call: expression("call", &raw.call),
        job: expression("job", &raw.job),
        outcome: expression("outcome", &raw.outcome),
        user: expression("user", &raw.user),
        host: expression("host", &raw.host),
        text: expression("text", &raw.text),
    };
    let mut span = |key: &str, secs: Option<f64>, default: f64, max: f64| {
        let secs = secs.unwrap_or(default);
        if !(0.0..=max).contains(&secs) {
            note(key, format!("{secs} seconds; expected 0 to {max}"));
            return Duration::ZERO;
        }
        Duration::from_secs_f64(secs)
    };
    // What is recorded must fit into the ring, before and after the event.
    let max = reach.as_secs_f64();
    Trigger {
        name: raw.name.as_str().into(),
        on: if condition.is_some() { On::Condition } else { raw.on },
        pattern,
        condition,
        before: span("before_s", raw.before_s, max.min(30.0), max),
        after: span("after_s", raw.after_s, max.min(10.0), max),
        cool_down: span("cool_down_s", raw.cool_down_s, 60.0, 86_400.0),
    }
}

/// The subscription of a trigger with a condition. Keys for events are an error beside a condition, and keys
/// of conditions without one.
fn condition(raw: &RawTrigger, note: &mut impl FnMut(&str, String)) -> Option<Box<ChannelRequest>> {
    let Some(text) = &raw.condition else {
        let others = [
            ("filter", raw.filter.is_some()),
            ("hz", raw.hz.is_some()),
            ("cpu_ms", raw.cpu_ms.is_some()),
            ("on", raw.on == On::Condition),
        ];
        for (key, _) in others.into_iter().filter(|(_, is_given)| *is_given) {
            note(key, "it is of a condition; expected one in `condition`".to_owned());
        }
        return None;
    };
    let RawTrigger { kind, call, job, outcome, user, host, text: texts, .. } = raw;
    let fields = [
        ("kind", kind),
        ("call", call),
        ("job", job),
        ("outcome", outcome),
        ("user", user),
        ("host", host),
        ("text", texts),
    ];
    for (key, _) in fields.into_iter().filter(|(_, field)| field.is_some()) {
        note(key, "it looks at events; expected nothing of them beside a condition".to_owned());
    }
    if !matches!(raw.on, On::Line | On::Condition) {
        note("on", "it looks at events; expected \"condition\" beside a condition".to_owned());
    }
    let condition = expression::condition(text).map_err(|error| note("condition", error.to_string())).ok();
    let filter = expression::filter(raw.filter.as_deref().unwrap_or(""));
    let filter = filter.map_err(|error| note("filter", error.to_string())).unwrap_or_default();
    let rate = channel::Rate::try_from(raw.hz.unwrap_or(1.0)).map_err(|error| note("hz", error.to_string()));
    let rate = rate.unwrap_or_default();
    let budget = Budget { cpu_ms: raw.cpu_ms.unwrap_or(CONDITION_CPU_MS_DEFAULT), ..Budget::default() };
    let budget = budget.checked().map_err(|error| note("cpu_ms", error.to_string())).unwrap_or_default();
    let requested =
        ChannelRequest { filter, condition, rate, budget, only_signals: true, ..ChannelRequest::default() };
    // The evaluator knows which fields there are.
    if let Err(error) = CompiledRequest::new(requested.clone(), || Duration::ZERO)
        && requested.condition.is_some()
    {
        note("condition", error.to_string());
    }
    Some(Box::new(requested))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<Config, String> {
        let raw = daemon::config_file::load(std::path::Path::new("f"), text).expect("well formed");
        let keys = |wrong: Vec<KeyError>| {
            let keys: Vec<String> = wrong.iter().map(|mistake| mistake.keys.join(".")).collect();
            keys.join(" ")
        };
        Config::new(raw).map_err(keys)
    }

    #[test]
    fn it_is_on_by_itself_and_can_be_turned_off() {
        let config = check("").expect("nothing is needed");
        assert_eq!(config.ring, Some(Limits { reach_ns: 60_000_000_000, bytes_max: BYTES_MAX }));
        assert!((config.rate(Kind::BpfChanged).hz() - HZ_OF_CHANGED).abs() < 1e-9);
        let parsed = check("hz = 64").expect("good");
        assert!((parsed.rate(Kind::Procfs).hz() - 64.0).abs() < 1e-9, "a given rate holds whatever it costs");
        assert!(check("on = false").expect("good").ring.is_none());
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let text = "seconds = 1\nhz = 2000\nbudget_mib = 1\n[[triggers]]\nname = 'a'\n[[triggers]]\nname = ''\n\
                    kind = '('\ntext = '['\nbefore_s = 61\nafter_s = -1\ncool_down_s = nan";
        let expected = "seconds hz budget_mib triggers.1.name triggers.1.kind triggers.1.text triggers.1.before_s \
                        triggers.1.after_s triggers.1.cool_down_s";
        assert_eq!(check(text).map(|_| ()), Err(expected.to_owned()));
    }

    #[test]
    fn a_condition_is_of_processes_and_nothing_else() {
        let text = "[[triggers]]\nname = 'a'\ncondition = 'sum cpu > 3 until 2'\nfilter = 'uid > 0'\nhz = 10";
        let config = check(text).expect("good");
        let trigger = &config.triggers[0];
        let requested = trigger.condition.as_ref().expect("given");
        assert_eq!((trigger.on, requested.rate.hz(), requested.only_signals), (On::Condition, 10.0, true));
        assert_eq!(requested.budget.cpu_ms, CONDITION_CPU_MS_DEFAULT);
        let config = check("[[triggers]]\nname = 'a'\ncondition = 'count > 3'\ncpu_ms = 500").expect("good");
        assert_eq!(config.triggers[0].condition.as_ref().expect("given").budget.cpu_ms, 500);
        for (more, expected) in [
            ("condition = 'sum cpu > 3'\nkind = 'job'", "triggers.0.kind"),
            ("condition = 'sum cpu > 3'\non = 'call-end'", "triggers.0.on"),
            ("condition = 'sum cpu'", "triggers.0.condition"),
            ("condition = 'sum warmth > 3'", "triggers.0.condition"),
            ("condition = 'count > 3'\nfilter = 'warm'\nhz = 5000", "triggers.0.filter triggers.0.hz"),
            ("filter = 'cpu > 1'\nhz = 5", "triggers.0.filter triggers.0.hz"),
            ("on = 'condition'", "triggers.0.on"),
            ("condition = 'count > 3'\ncpu_ms = 501", "triggers.0.cpu_ms"),
            ("cpu_ms = 100", "triggers.0.cpu_ms"),
        ] {
            let found = check(&format!("[[triggers]]\nname = 'a'\n{more}")).map(|_| ());
            assert_eq!(found, Err(expected.to_owned()), "{more}");
        }
    }

    #[test]
    fn a_window_is_no_longer_than_the_ring() {
        let config = check("seconds = 20\n[[triggers]]\nname = 'a'").expect("good");
        let trigger = &config.triggers[0];
        assert_eq!((trigger.before, trigger.after), (Duration::from_secs(20), Duration::from_secs(10)));
        let wrong = check("seconds = 20\n[[triggers]]\nname = 'a'\nbefore_s = 21");
        assert_eq!(wrong.map(|_| ()), Err("triggers.0.before_s".to_owned()));
    }
}
