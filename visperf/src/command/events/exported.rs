//! `visperf events --from PLACE`: events of exported days, without a daemon.
//!
//! Rule: what is in memory at a time is a page of events, or as many as `--limit` asks for. Not here: the files
//! (`history_files`).

use super::printer::Printer;
use super::{Args, PAGE};
use crate::command::history::exported::Exported;
use crate::exit::Failure;
use crate::output::note;
use compact_str::CompactString;
use history_files::table::Table;
use std::collections::{HashSet, VecDeque};
use wire::api::events::{Event, EventsParams};
use wire::event::{Fields as _, Value};
use wire::text_regex::TextRegex;
use wire::time::Time;
use wire::{call, event, name_match};

/// Prints the events of a place.
///
/// # Errors
/// If the place cannot be read, or some of its files cannot.
pub(super) fn print(place: &str, args: &Args) -> Result<(), Failure> {
    let mut exported = Exported::open(place, args.whose.domain.as_deref())?;
    exported.choose(args.between.since, args.between.until);
    let mut params = args.params();
    let calls = Calls::read(&mut exported, &params);
    let regex = params.regex.take();
    let wanted = Wanted { calls, params, regex };
    let mut printer = Printer::new(&args.query);
    let count = match args.limit {
        Some(limit) => newest(&mut exported, &wanted, limit, &mut printer)?,
        None => all(&mut exported, &wanted, &mut printer)?,
    };
    if count == 0 && !args.query.json {
        note(args.nothing());
    }
    exported.finish()
}

/// What is asked.
struct Wanted {
    params: EventsParams,
    /// The expression of the parameters.
    regex: Option<TextRegex>,
    calls: Calls,
}

/// The calls of the job and the user that are asked for: an event may not say whose it is.
#[derive(Default)]
struct Calls {
    of_job: HashSet<CompactString>,
    of_user: HashSet<CompactString>,
}

impl Calls {
    fn read(exported: &mut Exported, EventsParams { job, user, .. }: &EventsParams) -> Calls {
        let mut calls = Calls::default();
        let files = exported.files(Table::Calls).into_iter().filter(|_| job.is_some() || user.is_some());
        for file in files {
            let read = exported.destination.calls(&file, &mut |call: call::Call| {
                if job.as_ref().is_some_and(|job| call.has_number(job)) {
                    calls.of_job.insert(call.id.clone());
                }
                if user.as_ref().is_some_and(|user| call.user == *user) {
                    calls.of_user.insert(call.id);
                }
            });
            if let Err(error) = read {
                exported.failed(&error);
            }
        }
        calls
    }
}

impl Wanted {
    fn between(&self) -> (Option<Time>, Option<Time>) {
        (self.params.since.map(|since| since.0), self.params.until.map(|until| until.0))
    }

    fn fits(&self, event: &event::Event) -> bool {
        let (EventsParams { call, job, user, .. }, content) = (&self.params, &event.content);
        let Calls { of_job, of_user } = &self.calls;
        self.params.fit(event)
            && self.regex.as_ref().is_none_or(|regex| matches(regex, event))
            && call.as_ref().is_none_or(|id| name_match::matches(id, &event.call))
            && job.as_ref().is_none_or(|job| *job == content.job || of_job.contains(&event.call))
            && user.as_ref().is_none_or(|user| *user == content.user || of_user.contains(&event.call))
    }
}

/// Whether a text of an event matches, or a part of an attribute.
fn matches(regex: &TextRegex, event: &event::Event) -> bool {
    event.has_text(&|text| regex.is_match(text.as_bytes()))
        || event.content.attributes.iter().any(|(_, value)| has_match(regex, value))
}

/// Whether a part of an attribute matches: the texts of a list are exported as one.
fn has_match(regex: &TextRegex, value: &Value) -> bool {
    match value {
        Value::Text(text) => text.split(',').any(|part| regex.is_match(part.as_bytes())),
        Value::List(_) | Value::Bytes(_) => false,
    }
}

/// Prints all events, and returns how many there were.
fn all(exported: &mut Exported, wanted: &Wanted, printer: &mut Printer) -> Result<u64, Failure> {
    let mut count = 0;
    for file in exported.files(Table::Events) {
        let (mut page, mut printed) = (Vec::new(), Ok(()));
        let read = exported.destination.events(&file, wanted.between(), &mut |event| {
            if wanted.fits(&event) {
                count += 1;
                page.push(event);
            }
            if page.len() as u64 >= PAGE {
                printed = print_page(std::mem::take(&mut page), printer);
            }
            printed.is_ok()
        });
        printed?;
        print_page(page, printer)?;
        if let Err(error) = read {
            exported.failed(&error);
        }
    }
    Ok(count)
}

/// Prints the newest events, the oldest first, and returns how many there were.
fn newest(
    exported: &mut Exported,
    wanted: &Wanted,
    limit: u64,
    printer: &mut Printer,
) -> Result<u64, Failure> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut found = VecDeque::new();
    let bar = exported.bar();
    for file in exported.files(Table::Events).into_iter().rev() {
        let left = limit - found.len();
        if left == 0 {
            break;
        }
        let mut last = VecDeque::new();
        let read = exported.destination.events(&file, wanted.between(), &mut |event| {
            if wanted.fits(&event) {
                last.push_back(event);
            }
            if last.len() > left {
                last.pop_front();
            }
            true
        });
        if let Err(error) = read {
            exported.failed(&error);
        }
        last.append(&mut found);
        found = last;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let count = found.len() as u64;
    print_page(found.into(), printer)?;
    Ok(count)
}

/// Prints events in the order of time: logs are read one after another, and each may lag.
fn print_page(mut page: Vec<event::Event>, printer: &mut Printer) -> Result<(), Failure> {
    page.sort_by_key(|event| event.content.time);
    for event in page {
        printer.print(&Event::from(event))?;
    }
    printer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_of_a_list_has_a_start_and_an_end() {
        let has = |regex: &str| {
            let regex = regex.parse().expect("it is an expression");
            has_match(&regex, &Value::Text("wn01,wn02".into()))
        };
        assert!(has("^wn02$") && has("^wn01$"));
        assert!(!has("^wn0$") && !has("1,w"));
    }
}
