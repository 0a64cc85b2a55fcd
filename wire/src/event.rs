//! Interaction event: one action of the middleware, read from a line of its log.
//!
//! Pure. Invariant: an event's [`Id`] is determined by the sensor, the file generation, the offset of the
//! line and the event's number in it, so the same line read twice gives the same id (effectively once).
//! Not here: making events from lines (`log-filters`), joining events to calls ([`crate::call`]).

use crate::id::{Generation, SensorKey};
use crate::time::Time;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! words {
    ($(#[$doc:meta])* $type:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "snake_case")]
        $(#[$doc])*
        pub enum $type { $($(#[$vdoc])* $variant),+ }

        impl $type {
            /// All values, in the order of declaration.
            pub const ALL: &'static [$type] = &[$($type::$variant),+];

            /// The keyword in filters, queries and answers.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $($type::$variant => $word),+ }
            }

            /// Parse a keyword.
            #[must_use]
            pub fn from_word(word: &str) -> Option<$type> {
                match word { $($word => Some($type::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

words!(
    /// Kind of event.
    #[schemars(rename = "EventKind")]
    Kind {
        /// A client submitted a job or request.
        JobSubmit = "job_submit",
        /// The scheduler offered servers for a request, best first.
        ServerList = "server_list",
        /// A server or host was selected.
        JobSelect = "job_select",
        /// The job started on a host.
        JobStart = "job_start",
        /// The job ended; see `outcome`.
        JobEnd = "job_end",
        /// The user or an operator requested the cancellation of the job.
        JobCancel = "job_cancel",
        /// The job was requeued and will be tried again.
        JobRequeue = "job_requeue",
        /// The job was rejected.
        JobReject = "job_reject",
        /// The job was put on hold.
        JobHold = "job_hold",
        /// A held job was released.
        JobRelease = "job_release",
        /// A running job was suspended.
        JobSuspend = "job_suspend",
        /// A suspended job was resumed.
        JobResume = "job_resume",
        /// A part of a job started.
        StepStart = "step_start",
        /// A part of a job ended.
        StepEnd = "step_end",
        /// A file transfer started.
        TransferStart = "transfer_start",
        /// A file transfer ended; see `outcome`.
        TransferEnd = "transfer_end",
        /// A host joined, came back or accepts work again.
        NodeUp = "node_up",
        /// A host was lost.
        NodeDown = "node_down",
        /// A host accepts no new work.
        NodeDrain = "node_drain",
        /// A daemon of the middleware started.
        ServiceStart = "service_start",
        /// A daemon of the middleware stopped.
        ServiceStop = "service_stop",
        /// Report of load or capacity.
        Workload = "workload",
        /// Any other message; notices of visperf itself (such as a gap in a log) are of this kind.
        Message = "message",
    }
);

words!(
    /// Outcome of a job, transfer or request.
    Outcome {
        /// Ended successfully.
        Ok = "ok",
        /// Ended with an error.
        Failed = "failed",
        /// Cancelled by its user or an operator.
        Cancelled = "cancelled",
        /// Ended because its time limit was exceeded.
        Timeout = "timeout",
        /// Ended because its host was lost.
        NodeFail = "node_fail",
        /// Ended; the log does not contain the outcome.
        Finished = "finished",
    }
);

/// Value of an attribute, as printed by the middleware.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Value {
    /// Text.
    Text(CompactString),
    /// Several texts, in order.
    List(Vec<CompactString>),
    /// Bytes that are not UTF-8.
    Bytes(Vec<u8>),
}

impl Value {
    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::List(_) | Value::Bytes(_) => None,
        }
    }
}

/// Named values, in the order in which the filter gave them; names are unique.
pub type Attributes = Vec<(CompactString, Value)>;

/// Content of an event from the log, before the sensor adds its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Kind of event.
    pub kind: Kind,
    /// Time in the log; the time of reading if the log has none.
    pub time: Time,
    /// Job identifier of the middleware; empty if none.
    pub job: CompactString,
    /// User of the job; a number if only the number is printed; empty if unknown.
    pub user: CompactString,
    /// Acting party: client, submit host, sending side. Empty if unknown.
    pub from: CompactString,
    /// Party acted on: server, execution host, receiving side. Several are joined by commas.
    pub to: CompactString,
    /// Outcome, for the kinds that end something.
    pub outcome: Option<Outcome>,
    /// Further data of the line.
    pub attributes: Attributes,
    /// When the job was submitted, if the record has it.
    pub submitted: Option<Time>,
    /// When the work started, if the record has it.
    pub started: Option<Time>,
    /// When the work ended, if the record has it.
    pub ended: Option<Time>,
}

impl Content {
    /// Create an event of this kind and time without other data.
    #[must_use]
    pub fn new(kind: Kind, time: Time) -> Content {
        Content {
            kind,
            time,
            job: CompactString::default(),
            user: CompactString::default(),
            from: CompactString::default(),
            to: CompactString::default(),
            outcome: None,
            attributes: Vec::new(),
            submitted: None,
            started: None,
            ended: None,
        }
    }

    /// Look up an attribute by name.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

/// Permanent identifier of an event: `SENSOR-GENERATION-OFFSET`, and `-NUMBER` for the second and later
/// events of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Id {
    /// Sensor that read the line.
    pub sensor: SensorKey,
    /// Generation of the log file.
    pub generation: Generation,
    /// Offset of the record in it, in bytes.
    pub offset: u64,
    /// Number of the event within the record, from 0.
    pub number: u16,
}

impl Id {
    /// The id that is written like this, if it is one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Id> {
        let mut parts = text.split('-');
        let sensor = parts.next().filter(|key| key.len() == 16)?;
        let id = Id {
            sensor: SensorKey(u64::from_str_radix(sensor, 16).ok()?),
            generation: Generation(parts.next()?.parse().ok()?),
            offset: parts.next()?.parse().ok()?,
            number: parts.next().map_or(Ok(0), str::parse).ok()?,
        };
        parts.next().is_none().then_some(id)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Formatted part by part for speed: it is in every event of an answer.
        self.sensor.fmt(f)?;
        f.write_str("-")?;
        self.generation.fmt(f)?;
        f.write_str("-")?;
        self.offset.fmt(f)?;
        if self.number == 0 {
            return Ok(());
        }
        f.write_str("-")?;
        self.number.fmt(f)
    }
}

/// Source of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Host of the sensor.
    pub host: CompactString,
    /// Path of the file on that host.
    pub file: CompactString,
    /// Name of the filter.
    pub filter: CompactString,
}

/// An event with its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Permanent identifier.
    pub id: Id,
    /// Time when the sensor read it.
    pub seen: Time,
    /// Id of the call that it belongs to; empty if none.
    pub call: CompactString,
    /// Content from the log.
    pub content: Content,
    /// Where it was read.
    pub source: Source,
}

/// The fields of an event that queries compare, whichever way the event is stored.
pub trait Fields {
    /// Kind of event.
    fn kind(&self) -> Kind;
    /// Time in the log.
    fn time(&self) -> Time;
    /// Job identifier; empty if none.
    fn job(&self) -> &str;
    /// User of the job; empty if unknown.
    fn user(&self) -> &str;
    /// Acting party; empty if unknown.
    fn from(&self) -> &str;
    /// Parties acted on, joined by commas.
    fn to(&self) -> &str;
    /// Id of the call; empty if none.
    fn call(&self) -> &str;
    /// Whether the job, the user, a party's field or a text of the attributes is accepted.
    fn has_text(&self, accepts: &dyn Fn(&str) -> bool) -> bool;
}

impl Fields for Event {
    fn kind(&self) -> Kind {
        self.content.kind
    }

    fn time(&self) -> Time {
        self.content.time
    }

    fn job(&self) -> &str {
        &self.content.job
    }

    fn user(&self) -> &str {
        &self.content.user
    }

    fn from(&self) -> &str {
        &self.content.from
    }

    fn to(&self) -> &str {
        &self.content.to
    }

    fn call(&self) -> &str {
        &self.call
    }

    fn has_text(&self, accepts: &dyn Fn(&str) -> bool) -> bool {
        let attributes = self.content.attributes.iter();
        [self.job(), self.user(), self.from(), self.to()].into_iter().any(accepts)
            || attributes.map(|(_, value)| value).any(|value| match value {
                Value::Text(text) => accepts(text),
                Value::List(texts) => texts.iter().any(|text| accepts(text)),
                Value::Bytes(_) => false,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written() {
        for number in [0, 7] {
            let id = Id { sensor: SensorKey(0x1f), generation: Generation(3), offset: 1 << 40, number };
            assert_eq!(Id::parse(&id.to_string()), Some(id));
        }
        for none in ["", "1f-3-4", "000000000000001f-3", "000000000000001f-3-4-5-6", "000000000000001f-3-x"] {
            assert_eq!(Id::parse(none), None, "{none:?}");
        }
    }

    #[test]
    fn every_word_comes_back() {
        for &kind in Kind::ALL {
            assert_eq!(Kind::from_word(kind.as_str()), Some(kind));
        }
        for &outcome in Outcome::ALL {
            assert_eq!(Outcome::from_word(outcome.as_str()), Some(outcome));
        }
        assert_eq!(Kind::from_word("job-end"), None);
    }

    #[test]
    fn an_id_gives_its_parts() {
        let id = Id { sensor: SensorKey(10), generation: Generation(3), offset: 77, number: 0 };
        assert_eq!(id.to_string(), "000000000000000a-3-77");
        assert_eq!(Id { number: 2, ..id }.to_string(), "000000000000000a-3-77-2");
    }
}
