//! Compiler from a filter's rules to patterns, captures and expressions.
//!
//! Pure. Rule: an error names the position of the mistake. Not here: the rest of a filter (`compile`).

use super::compile::Place;
use super::{ALSO_MAX, CallChoice, Calls, EventSpec, Implies, RECALL_KEYS_MAX, Remember, Rule};
use crate::captures::Captures;
use crate::definition::{self as raw, Definition};
use crate::error::Error;
use crate::expression::{self, Expression, Key, Piece};
use crate::pattern::{self, Set};
use crate::references::{References, Slots};
use std::ops::Range;
use toml::Spanned;
use wire::call::Naming;
use wire::event::{Kind, Outcome};

/// Most regexes of a filter, including the alternatives of its rules: four per rule.
const PATTERNS_MAX: usize = 1_024;
/// Deepest nesting of expressions: the shipped ones need four, and each level is a call at run time.
const EXPRESSION_DEPTH_MAX: usize = 16;
/// Most value names that a rule recalls from other logs.
const ACROSS_NAMES_MAX: usize = 16;
/// Most attributes of an event.
const ATTRIBUTES_MAX: usize = 128;

fn sources(patterns: &raw::Patterns) -> Vec<&str> {
    match patterns {
        raw::Patterns::One(one) => vec![one],
        raw::Patterns::Several(several) => several.iter().map(String::as_str).collect(),
    }
}

pub(crate) fn rule_set(place: &Place<'_>, raw: &Definition) -> Result<(Set, Vec<(usize, usize)>), Error> {
    let (mut all, mut owners) = (Vec::new(), Vec::new());
    for (number, rule) in raw.rule.iter().enumerate() {
        for (alternative, source) in sources(rule.get_ref().matches.get_ref()).into_iter().enumerate() {
            all.push(source);
            owners.push((number, alternative));
        }
    }
    if all.len() > PATTERNS_MAX {
        let message = format!("the filter has {} regexes; at most {PATTERNS_MAX} are allowed", all.len());
        let (rule, _) = owners[PATTERNS_MAX];
        return Err(place.error(raw.rule[rule].get_ref().matches.span(), message));
    }
    let set = Set::new(&all).map_err(|message| {
        // The failing pattern's own error is clearer than the set's.
        let fault = all.iter().zip(&owners).find_map(|(source, &(rule, _))| {
            let message = pattern::compile(source).err()?;
            Some(place.error(raw.rule[rule].get_ref().matches.span(), message))
        });
        fault.unwrap_or_else(|| place.error(0..0, message))
    })?;
    Ok((set, owners))
}

/// The limit for the regexes of all `unless` together is that of all `match` together.
pub(crate) fn check_unless(place: &Place<'_>, raw: &Definition) -> Result<(), Error> {
    let all: Vec<&Spanned<String>> =
        raw.rule.iter().filter_map(|rule| rule.get_ref().unless.as_ref()).collect();
    for source in &all {
        place.regex(source)?;
    }
    let sources: Vec<&str> = all.iter().map(|source| source.get_ref().as_str()).collect();
    match (Set::new(&sources), all.last()) {
        (Err(message), Some(last)) => Err(place.error(last.span(), message)),
        _ => Ok(()),
    }
}

type Slot<'a> = dyn FnMut(&str) -> Result<usize, String> + 'a;

pub(crate) fn compile_rule(
    place: &Place<'_>,
    spanned: &Spanned<raw::Rule>,
    calls: Option<&Calls>,
    references: &References,
    room: &mut usize,
) -> Result<Rule, Error> {
    let raw = spanned.get_ref();
    let span = raw.matches.span();
    let compiled = sources(raw.matches.get_ref())
        .into_iter()
        .map(|source| pattern::compile(source).map_err(|message| place.error(span.clone(), message)))
        .collect::<Result<Vec<_>, _>>()?;
    if compiled.is_empty() {
        return Err(place.error(span, "`match` is empty; expected a regex"));
    }
    let mut slots = Slots::new(references, &compiled, raw.recall.is_some(), across_names(raw));
    let mut slot = |name: &str| slots.slot(name);
    let mut events = vec![event_spec(place, &raw.into(), calls, &mut slot)?];
    if raw.also.len() > ALSO_MAX {
        let message = format!("the rule has {} `also`; at most {ALSO_MAX} are allowed", raw.also.len());
        return Err(place.error(span, message));
    }
    for also in &raw.also {
        events.push(event_spec(place, &also.into(), calls, &mut slot)?);
    }
    events.retain(|spec| spec.event.is_some());
    let remember = match &raw.remember {
        None => None,
        Some(remember) => Some(Remember {
            key: spanned_expression(place, &remember.key, &mut slot)?,
            values: table(place, &remember.values, &mut slot)?,
            across_logs: remember.across_logs,
        }),
    };
    let recall = recall_keys(place, raw.recall.as_ref(), &mut slot)?;
    let forget = optional(place, raw.forget.as_ref(), &mut slot)?;
    let names = slots.into_names();
    let alternatives = sources(raw.matches.get_ref())
        .into_iter()
        .zip(&compiled)
        .map(|(source, regex)| Captures::new(source, regex.clone(), &names, room));
    Ok(Rule {
        alternatives: alternatives.collect(),
        unless: raw.unless.as_ref().map(|source| place.regex(source)).transpose()?,
        remember,
        recall,
        recall_across: across_names(raw).iter().map(|name| name.as_str().into()).collect(),
        forget,
        origin_recalled: raw.origin.is_some(),
        events,
        line: Error::at(place.file, place.text, spanned.span().start, String::new()).line,
    })
}

fn event_spec(
    place: &Place<'_>,
    raw: &raw::EventSpecRef<'_>,
    calls: Option<&Calls>,
    slot: &mut Slot<'_>,
) -> Result<EventSpec, Error> {
    if raw.attributes.len() > ATTRIBUTES_MAX {
        let message = format!(
            "the event has {} attributes; at most {ATTRIBUTES_MAX} are allowed",
            raw.attributes.len()
        );
        let span = raw.event.map_or(0..0, Spanned::span);
        return Err(place.error(span, message));
    }
    if let Some(event) = raw.event {
        check_words(event, "event", |word| word == "none" || Kind::from_word(word).is_some(), &kinds())
            .map_err(|message| place.error(event.span(), message))?;
    }
    if let Some(outcome) = raw.outcome {
        check_words(outcome, "outcome", |word| Outcome::from_word(word).is_some(), &outcomes())
            .map_err(|message| place.error(outcome.span(), message))?;
    }
    let call = match raw.call {
        None => CallChoice::Filter,
        Some(spanned) => match spanned.get_ref() {
            raw::CallKeys::Never(false) => CallChoice::Never,
            raw::CallKeys::Never(true) => {
                return Err(
                    place.error(spanned.span(), "`call = true` says nothing; leave it out, or give a table")
                );
            }
            raw::CallKeys::Keys(keys) => {
                CallChoice::Own(call_keys(place, keys, calls, spanned.span(), slot)?)
            }
        },
    };
    Ok(EventSpec {
        event: optional(place, raw.event, slot)?,
        job: optional(place, raw.job, slot)?,
        user: optional(place, raw.user, slot)?,
        from: optional(place, raw.from, slot)?,
        to: optional(place, raw.to, slot)?,
        outcome: optional(place, raw.outcome, slot)?,
        time: optional(place, raw.time, slot)?,
        submitted: optional(place, raw.submitted, slot)?,
        eligible: optional(place, raw.eligible, slot)?,
        started: optional(place, raw.started, slot)?,
        ended: optional(place, raw.ended, slot)?,
        attributes: table(place, raw.attributes, slot)?,
        call,
    })
}

fn kinds() -> String {
    let words: Vec<_> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
    format!("none, {}", words.join(", "))
}

fn outcomes() -> String {
    let words: Vec<_> = Outcome::ALL.iter().map(|outcome| outcome.as_str()).collect();
    words.join(", ")
}

/// Check that every constant text that the expression can give is one of the keywords.
fn check_words(
    expression: &Spanned<raw::Expression>,
    what: &str,
    known: fn(&str) -> bool,
    expected: &str,
) -> Result<(), String> {
    fn plain<'a>(expression: &'a raw::Expression, into: &mut Vec<&'a str>) {
        match expression {
            raw::Expression::Text(text) if !text.contains('$') => into.push(text),
            raw::Expression::Text(_) => {}
            raw::Expression::Several(several) => several.iter().for_each(|one| plain(one, into)),
            raw::Expression::Map(map) => {
                map.map.iter().for_each(|(_, result)| plain(result, into));
                map.default.iter().for_each(|result| plain(result, into));
            }
        }
    }
    let mut words = Vec::new();
    plain(expression.get_ref(), &mut words);
    match words.into_iter().find(|word| !known(word)) {
        Some(word) => Err(format!("{what} `{word}`; expected one of {expected}")),
        None => Ok(()),
    }
}

pub(crate) fn call_keys(
    place: &Place<'_>,
    raw: &raw::Calls,
    base: Option<&Calls>,
    span: Range<usize>,
    slot: &mut Slot<'_>,
) -> Result<Calls, Error> {
    // The event is complete here, so expressions may refer to its fields.
    let mut slot = |name: &str| if name.starts_with('.') { Ok(0) } else { slot(name) };
    let mut one = |raw: &raw::Expression| {
        compile_expression(raw, &mut slot).map_err(|message| place.error(span.clone(), message))
    };
    let names = match (&raw.names, base) {
        (Some(names), _) => names.iter().map(&mut one).collect::<Result<_, _>>()?,
        (None, Some(base)) => base.names.clone(),
        (None, None) => {
            return Err(place.error(span, "`names` is missing; expected expressions for a call's names"));
        }
    };
    let parent = match (&raw.parent, base) {
        (Some(parent), _) => Some(one(parent)?),
        (None, base) => base.and_then(|base| base.parent.clone()),
    };
    let naming = match (raw.naming, base) {
        (Some(raw::NamingWord::Shared), _) => Naming::Shared,
        (Some(raw::NamingWord::Unique), _) => Naming::Unique,
        (Some(raw::NamingWord::Part), _) => Naming::Part,
        (None, base) => base.map_or(Naming::Unique, |base| base.naming),
    };
    Ok(Calls { names, naming, parent, implies: implies(raw, base) })
}

fn implies(raw: &raw::Calls, base: Option<&Calls>) -> Implies {
    let base = base.map(|base| base.implies).unwrap_or_default();
    Implies {
        selected_is_started: raw.selected_is_started.unwrap_or(base.selected_is_started),
        cancelled_is_ended: raw.cancelled_is_ended.unwrap_or(base.cancelled_is_ended),
        step_end_is_end: raw.step_end_is_end.unwrap_or(base.step_end_is_end),
    }
}

fn optional(
    place: &Place<'_>,
    raw: Option<&Spanned<raw::Expression>>,
    slot: &mut Slot<'_>,
) -> Result<Option<Expression>, Error> {
    raw.map(|raw| spanned_expression(place, raw, slot)).transpose()
}

/// Value names that a rule recalls from the other logs of the product.
fn across_names(raw: &raw::Rule) -> &[String] {
    match raw.recall.as_ref().map(Spanned::get_ref) {
        Some(raw::Recall::Several(keys)) => &keys.across_logs,
        Some(raw::Recall::One(_)) | None => &[],
    }
}

/// Keys that a rule recalls, in order.
fn recall_keys(
    place: &Place<'_>,
    raw: Option<&Spanned<raw::Recall>>,
    slot: &mut Slot<'_>,
) -> Result<Vec<Expression>, Error> {
    let Some(spanned) = raw else { return Ok(Vec::new()) };
    let keys = match spanned.get_ref() {
        raw::Recall::One(key) => std::slice::from_ref(key),
        raw::Recall::Several(raw::RecallKeys { keys, .. }) => keys,
    };
    if let raw::Recall::Several(raw::RecallKeys { across_logs, .. }) = spanned.get_ref()
        && across_logs.len() > ACROSS_NAMES_MAX
    {
        let message =
            format!("`across_logs` has {} names; at most {ACROSS_NAMES_MAX} are allowed", across_logs.len());
        return Err(place.error(spanned.span(), message));
    }
    if !(1..=RECALL_KEYS_MAX).contains(&keys.len()) {
        let message = format!("`recall` has {} keys; 1 to {RECALL_KEYS_MAX} are allowed", keys.len());
        return Err(place.error(spanned.span(), message));
    }
    let compile = |key| compile_expression(key, slot).map_err(|message| place.error(spanned.span(), message));
    keys.iter().map(compile).collect()
}

fn spanned_expression(
    place: &Place<'_>,
    raw: &Spanned<raw::Expression>,
    slot: &mut Slot<'_>,
) -> Result<Expression, Error> {
    compile_expression(raw.get_ref(), slot).map_err(|message| place.error(raw.span(), message))
}

fn table(
    place: &Place<'_>,
    raw: &raw::Table,
    slot: &mut Slot<'_>,
) -> Result<Vec<(compact_str::CompactString, Expression)>, Error> {
    raw.iter()
        .map(|(name, value)| Ok((name.as_str().into(), spanned_expression(place, value, slot)?)))
        .collect()
}

fn compile_expression(raw: &raw::Expression, slot: &mut Slot<'_>) -> Result<Expression, String> {
    nested_expression(raw, slot, 1)
}

fn nested_expression(raw: &raw::Expression, slot: &mut Slot<'_>, depth: usize) -> Result<Expression, String> {
    if depth > EXPRESSION_DEPTH_MAX {
        return Err(format!(
            "the expression is nested more than {EXPRESSION_DEPTH_MAX} deep; name a part of it as a value that is remembered, or make two rules"
        ));
    }
    let mut within = |raw: &raw::Expression| nested_expression(raw, slot, depth + 1);
    match raw {
        raw::Expression::Text(text) => {
            let pieces: Vec<Piece> = expression::parse(text, slot)?;
            Ok(Expression::Template(pieces))
        }
        raw::Expression::Several(several) => {
            let compiled = several.iter().map(within).collect::<Result<_, _>>()?;
            Ok(Expression::First(compiled))
        }
        raw::Expression::Map(map) => {
            let mut arms = map
                .map
                .iter()
                .map(|(key, result)| Ok((Key::parse(key), within(result)?)))
                .collect::<Result<Vec<_>, String>>()?;
            // Exact keys first; the rest in the order of the file.
            arms.sort_by_key(|(key, _)| !matches!(key, Key::Exact(_)));
            let default = map.default.as_ref().map(|default| within(default)).transpose()?;
            Ok(Expression::Map { value: Box::new(within(&map.value)?), arms, default: default.map(Box::new) })
        }
    }
}
