//! Makes the events of a record: finds its rule and evaluates it.
//!
//! Pure. The first matching rule is used.

use super::{Engine, Last};
use crate::calendar::Clock;
use crate::expression::{Context, Expression, compact};
use crate::fields::Record;
use crate::filter::{ALSO_MAX, CallChoice, Calls, EventSpec, Filter, Rule};
use crate::found::{Change, Found};
use crate::memory::Entry;
use crate::value;
use compact_str::{CompactString, ToCompactString};
use std::sync::Arc;
use wire::call::Keys;
use wire::call::job::Fact;
use wire::event::{Content, Kind, Outcome, Value};
use wire::time::Time;

/// Most bytes of attributes in the events of one record.
const ATTRIBUTES_LEN_MAX_BYTES: usize = 1 << 20;

/// Most names of one event's call: for a job of a thousand processes some of them are enough.
const NAMES_MAX: usize = 64;

/// Events that a line reports about a recalled record are numbered from here, separately for each rule: that
/// record may also have events of its own, before a stop of the program as well as after it.
const RECALLED_FROM: usize = 1 << 15;

/// Find the rule of a record and emit its events. Returns whether a rule matched.
pub(crate) fn record(
    engine: &mut Engine,
    text: &[u8],
    offset: u64,
    seen: Time,
    out: &mut Vec<Found>,
) -> bool {
    let filter = Arc::clone(&engine.filter);
    if filter.header.is_some() && !Record::with_columns(&filter.cutting, &engine.columns, text).fits_columns()
    {
        // A separator in a user's text must not shift the columns.
        return false;
    }
    let program = filter.program();
    let chosen = program.set.first(text, |pattern| {
        let rule = &program.rules[program.patterns[pattern].0];
        rule.unless.as_ref().is_none_or(|unless| !unless.is_match(text))
    });
    let Some((number, alternative)) = chosen.map(|pattern| program.patterns[pattern]) else { return false };
    engine.taken_by[number] += 1;
    let rule = &program.rules[number];
    if rule.events.is_empty() && rule.remember.is_none() && rule.forget.is_none() {
        return true;
    }
    if !rule.alternatives[alternative].find(text, &mut engine.scratch) {
        return false;
    }
    apply(engine, &filter, number, Place { text, offset, seen }, out);
    true
}

#[derive(Clone, Copy)]
struct Place<'a> {
    text: &'a [u8],
    offset: u64,
    seen: Time,
}

fn apply(engine: &mut Engine, filter: &Filter, number: usize, place: Place<'_>, out: &mut Vec<Found>) {
    let rule = &filter.program().rules[number];
    // Taken out so that the engine can be changed while they are used; put back at the end.
    let spans = std::mem::take(&mut engine.scratch.spans);
    let parts = std::mem::take(&mut engine.parts);
    let columns = std::mem::take(&mut engine.columns);
    let record = Record::with_columns(&filter.cutting, &columns, place.text);
    let mut context = Context { record: &record, spans: &spans, recalled: &[], parts: &parts, own: None };
    let recalled = recall(engine, rule, &context);
    let across = recall_across(engine, rule, &context, recalled.as_ref());
    match (&recalled, &across) {
        (_, Some(values)) => context.recalled = values,
        (Some(entry), None) => context.recalled = &entry.values,
        (None, None) => {}
    }
    let origin = recalled.as_ref().filter(|_| rule.origin_recalled);
    let mut next = if origin.is_some() { RECALLED_FROM + number * (ALSO_MAX + 1) } else { 0 };
    for spec in &rule.events {
        if let Some(found) = make_event(engine, filter, spec, &context, place, origin) {
            let number = u16::try_from(next).expect("256 rules of 17 events are fewer");
            out.push(Found { number, ..found });
            next += 1;
        }
    }
    remember(engine, rule, &context, place);
    engine.scratch.spans = spans;
    engine.parts = parts;
    engine.columns = columns;
}

/// The values under the keys that the rule recalls. If several keys have a name, the first one is used; so
/// for offset and time.
fn recall(engine: &Engine, rule: &Rule, context: &Context<'_, '_>) -> Option<Entry> {
    let mut found = rule.recall.iter().filter_map(|key| engine.memory.get(&key.text(context)));
    let mut all = found.next()?.clone();
    for entry in found {
        let new =
            |(name, _): &&(CompactString, CompactString)| !all.values.iter().any(|(known, _)| known == name);
        let added: Vec<_> = entry.values.iter().filter(new).cloned().collect();
        all.values.extend(added);
    }
    Some(all)
}

/// All values that the rule recalls, including those of other logs: the log's own values have priority.
fn recall_across(
    engine: &Engine,
    rule: &Rule,
    context: &Context<'_, '_>,
    own: Option<&Entry>,
) -> Option<Vec<(CompactString, CompactString)>> {
    if rule.recall_across.is_empty() {
        return None;
    }
    let mut all = own.map(|entry| entry.values.clone()).unwrap_or_default();
    for key in &rule.recall {
        for (name, value) in engine.across.recall(&key.text(context), &rule.recall_across) {
            if !all.iter().any(|(known, _)| *known == name) {
                all.push((name, value));
            }
        }
    }
    Some(all)
}

fn remember(engine: &mut Engine, rule: &Rule, context: &Context<'_, '_>, place: Place<'_>) {
    if let Some(forget) = &rule.forget {
        let key = forget.text(context);
        if engine.memory.forget(&key) {
            engine.changes.push(Change::Forget { key: key.clone() });
        }
        if engine.across.forget(&key) {
            engine.changes.push(Change::ForgetAcross { key });
        }
    }
    let Some(remember) = &rule.remember else { return };
    let key = remember.key.text(context);
    if key.is_empty() {
        return;
    }
    let values: Vec<(CompactString, CompactString)> = remember
        .values
        .iter()
        .map(|(name, value)| (name.clone(), value.text(context)))
        .filter(|(_, value)| !value.is_empty())
        .collect();
    let time = engine.last_time();
    if remember.across_logs {
        engine.changes.push(Change::RememberAcross { key: key.clone(), values: values.clone(), time });
        engine.across.remember(key, values, time);
        return;
    }
    engine.changes.push(Change::Remember {
        key: key.clone(),
        values: values.clone(),
        offset: place.offset,
        time,
    });
    engine.memory.remember(key, values, place.offset, time);
}

fn make_event(
    engine: &mut Engine,
    filter: &Filter,
    spec: &EventSpec,
    context: &Context<'_, '_>,
    place: Place<'_>,
    origin: Option<&Entry>,
) -> Option<Found> {
    let kind = Kind::from_word(&spec.event.as_ref()?.text(context))?;
    let time = event_time(engine, filter, spec, context, place, origin);
    let mut content = Content::new(kind, time);
    let text =
        |expression: &Option<Expression>| expression.as_ref().map(|e| e.text(context)).unwrap_or_default();
    content.job = text(&spec.job);
    content.user = text(&spec.user);
    content.from = text(&spec.from);
    content.to = text(&spec.to);
    content.outcome = spec.outcome.as_ref().and_then(|outcome| Outcome::from_word(&outcome.text(context)));
    content.attributes.reserve_exact(spec.attributes.len());
    for (name, value) in &spec.attributes {
        if engine.attribute_bytes > ATTRIBUTES_LEN_MAX_BYTES {
            // The remaining events of this record are dropped: a filter may copy a long line many times.
            break;
        }
        if let Some(value) = value.attribute(context) {
            engine.attribute_bytes += len_bytes(&value);
            content.attributes.push((name.clone(), value));
        }
    }
    let mut moment = |expression: &Option<Expression>| {
        expression.as_ref().and_then(|e| read_time(filter, &mut engine.clock, &e.text(context), place.seen))
    };
    content.submitted = moment(&spec.submitted);
    content.started = moment(&spec.started);
    content.ended = moment(&spec.ended);
    if let Some(eligible) = moment(&spec.eligible) {
        let secs = eligible.micros().div_euclid(1_000_000).to_compact_string();
        content.attributes.push((Fact::Eligible.as_str().into(), Value::Text(secs)));
    }
    fill_parties(&mut content);
    imply(filter, spec, &mut content);
    let keys = keys(engine, filter, spec, context, &content);
    Some(Found { offset: origin.map_or(place.offset, |entry| entry.offset), number: 0, content, keys })
}

fn event_time(
    engine: &mut Engine,
    filter: &Filter,
    spec: &EventSpec,
    context: &Context<'_, '_>,
    place: Place<'_>,
    origin: Option<&Entry>,
) -> Time {
    if let Some(expression) = &spec.time
        && let Some(time) = read_time(filter, &mut engine.clock, &expression.text(context), place.seen)
    {
        engine.last = Last::Known(time);
        return time;
    }
    if let Some(time) = origin.and_then(|entry| entry.time) {
        return time;
    }
    engine.last_time().unwrap_or(place.seen)
}

fn read_time(filter: &Filter, clock: &mut Clock, text: &str, seen: Time) -> Option<Time> {
    if text.is_empty() {
        return None;
    }
    filter
        .formats
        .iter()
        .find_map(|format| format.read_all(text.as_bytes()))
        .and_then(|stamp| clock.resolve(&stamp, seen))
}

/// Fill in parties that the filter does not set from the attributes.
fn fill_parties(content: &mut Content) {
    let party = |content: &Content, names: &[&str]| {
        names.iter().find_map(|name| {
            content.attribute(name).map(|value| match value {
                Value::Text(text) => text.clone(),
                Value::List(list) => list.join(",").into(),
                Value::Bytes(bytes) => CompactString::from_utf8_lossy(bytes),
            })
        })
    };
    if content.to.is_empty() {
        content.to = party(content, &["host", "hosts"]).unwrap_or_default();
    }
    if content.from.is_empty() {
        content.from = party(content, &["client", "submit_host"]).unwrap_or_default();
    }
}

fn len_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::List(list) => list.iter().map(CompactString::len).sum(),
        Value::Bytes(bytes) => bytes.len(),
    }
}

fn has_call(kind: Kind) -> bool {
    let word = kind.as_str();
    word.starts_with("job_")
        || word.starts_with("step_")
        || word.starts_with("transfer_")
        || kind == Kind::ServerList
}

fn calls_of<'a>(filter: &'a Filter, spec: &'a EventSpec) -> Option<&'a Calls> {
    match &spec.call {
        CallChoice::Never => None,
        CallChoice::Own(calls) => Some(calls),
        CallChoice::Filter => filter.calls.as_ref(),
    }
}

/// Set the start or end of the call to the event's time, if the filter declares that this kind implies it.
#[expect(clippy::wildcard_enum_match_arm, reason = "other kinds imply nothing")]
fn imply(filter: &Filter, spec: &EventSpec, content: &mut Content) {
    let Some(implies) = calls_of(filter, spec).map(|calls| calls.implies) else { return };
    let time = Some(content.time);
    match content.kind {
        Kind::JobSelect if implies.selected_is_started => content.started = content.started.or(time),
        Kind::JobCancel if implies.cancelled_is_ended => content.ended = content.ended.or(time),
        Kind::StepEnd if implies.step_end_is_end => content.ended = content.ended.or(time),
        _ => {}
    }
}

fn keys(
    engine: &Engine,
    filter: &Filter,
    spec: &EventSpec,
    context: &Context<'_, '_>,
    content: &Content,
) -> Option<Keys> {
    let calls = calls_of(filter, spec)?;
    if !has_call(content.kind) {
        return None;
    }
    let own = Context { own: Some(content), ..*context };
    let mut names: Vec<CompactString> = Vec::with_capacity(calls.names.len());
    let mut add = |name: CompactString| {
        if !name.is_empty() && names.len() < NAMES_MAX && !names.contains(&name) {
            names.push(name);
        }
    };
    for expression in &calls.names {
        match expression.value(&own) {
            value::Value::List(list) => list.iter().for_each(|name| add(compact(name))),
            value::Value::Nothing | value::Value::Text(_) => add(expression.text(&own)),
        }
    }
    if names.is_empty() {
        return None;
    }
    let parent = calls.parent.as_ref().map(|parent| parent.text(&own)).filter(|parent| !parent.is_empty());
    Some(Keys {
        scope: engine.scope.clone(),
        names,
        parent,
        naming: calls.naming,
        authority: filter.authority,
    })
}
