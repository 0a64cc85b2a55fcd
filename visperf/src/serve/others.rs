//! Other domains: which daemon represents one, and asking it.
//!
//! Rule: whom to ask is looked up for each question, from memory where that is seconds old; a fault names the
//! daemon that was asked, and says how old it is what was known of it.
//! Not here: how a domain is looked up (`overlay::resolve`, `directory`), which questions are for others (`elsewhere`).

use super::elsewhere::{self, Hop};
use directory::handle::{Handle as Table, Known};
use overlay::clock;
use overlay::contacts::Contacts;
use overlay::net::protocol::Protocol;
use overlay::resolve::Outcome;
use overlay::resolve::asker::Asker;
use rpc::fault::Fault;
use rpc::value::Value;
use std::sync::Arc;
use std::time::Duration;
use wire::id::DomainName;
use wire::query::Question;
use wire::registration::{Reach, Record};

/// How long a look-up may take of the time that a question has.
const LOOK_UP_MAX: Duration = Duration::from_secs(3);

/// Where domains are looked up.
#[derive(Clone)]
pub(crate) enum Lookup {
    /// At the directories, or in memory.
    Asked(Asker),
    /// This daemon is a directory.
    Table(Table),
}

/// Reaches other domains; cheap to clone.
#[derive(Clone)]
pub(crate) struct Others {
    pub(crate) lookup: Lookup,
    pub(crate) contacts: Arc<Contacts>,
}

/// A representative that can be asked.
struct Place {
    record: Record,
    reach: Reach,
    /// How long ago it was heard of, if it is no longer live.
    last_seen: Option<Duration>,
}

impl Others {
    /// The answer of `domain`'s representative to `question`, within `time_left`.
    pub(crate) async fn ask(
        &self,
        domain: &DomainName,
        mut question: Question,
        time_left: Duration,
    ) -> Result<Value, Fault> {
        let started = clock::now();
        let place = self.find(domain, time_left.min(LOOK_UP_MAX)).await?;
        let time_left = time_left.saturating_sub(clock::now().since(started));
        question.time_left_ms = elsewhere::millis(time_left);
        let hop = Hop {
            peer: place.reach.peer,
            host: Some(place.record.host.clone()),
            part: "representative",
            domain: Some(domain.clone()),
        };
        let bytes = postcard::to_stdvec(&question).expect("a question has no part that cannot be written");
        let whom = (hop.peer, place.reach.addresses.as_slice());
        let answered = self.contacts.ask(whom, Protocol::Query, &bytes, time_left).await;
        let result = elsewhere::answer(&hop, answered);
        result.map_err(|fault| match place.last_seen {
            Some(age) if fault.code == rpc::fault::UNAVAILABLE || fault.code == rpc::fault::TIMEOUT => {
                let message = format!("{}; it was last heard of {} s ago", fault.message, age.as_secs());
                Fault::new(fault.code, message)
            }
            _ => fault,
        })
    }

    async fn find(&self, domain: &DomainName, time: Duration) -> Result<Place, Fault> {
        let (record, last_seen) = match &self.lookup {
            Lookup::Asked(asker) => match asker.resolve(domain, time).await {
                Outcome::Found(found) => {
                    let heard = found.primary;
                    (heard.record, heard.remaining.is_zero().then_some(heard.age))
                }
                outcome => return Err(absent(domain, &outcome)),
            },
            Lookup::Table(table) => match table.look_up(domain) {
                Known::Found(found) => (found.record, found.lease_remaining.is_zero().then_some(found.age)),
                Known::Left(_, age) => return Err(directory::methods::left(domain, age)),
                Known::Nothing => return Err(absent(domain, &Outcome::Unknown)),
                Known::NothingYet => {
                    return Err(elsewhere::unavailable(format!(
                        "{domain} is not known yet: this directory has just started; ask again in some seconds"
                    )));
                }
            },
        };
        let reach = record.reach.clone().ok_or_else(|| {
            elsewhere::unavailable(format!(
                "{domain} is known to this process alone: it is not in the overlay"
            ))
        })?;
        Ok(Place { record, reach, last_seen })
    }
}

/// Why there is nobody to ask.
pub(crate) fn absent(domain: &DomainName, outcome: &Outcome) -> Fault {
    match outcome {
        Outcome::Left(age) => directory::methods::left(domain, *age),
        Outcome::Unreachable => elsewhere::unavailable(format!(
            "no directory could be asked for {domain}, and it was never known here; see `visperf info` for the \
             connections, and [overlay] directories in the configuration"
        )),
        Outcome::Unknown | Outcome::Found(_) => Fault::not_found(format!(
            "no domain {domain} is known to the directories; see `visperf domains` for those that are"
        )),
    }
}
