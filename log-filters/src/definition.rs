//! Serde types of a filter's file: its tables and keys.
//!
//! Pure. The types mirror the file and nothing more; `compile` converts them to a [`crate::filter::Filter`].
//! Unknown keys are errors. Values that an error may point at have their position in the text.

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Definition {
    pub(crate) filter: Head,
    #[serde(default)]
    pub(crate) files: Files,
    #[serde(default)]
    pub(crate) time: TimeKeys,
    #[serde(default)]
    pub(crate) fields: FieldKeys,
    #[serde(default)]
    pub(crate) record: Vec<Record>,
    #[serde(default)]
    pub(crate) calls: Option<Spanned<Calls>>,
    #[serde(default)]
    pub(crate) rule: Vec<Spanned<Rule>>,
    #[serde(default)]
    pub(crate) test: Vec<Spanned<Test>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    pub(crate) name: Spanned<String>,
    #[serde(default)]
    pub(crate) product: String,
    pub(crate) scope: Option<String>,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) versions: String,
    #[serde(default)]
    pub(crate) authority: AuthorityWord,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuthorityWord {
    #[default]
    Message,
    Scheduler,
    Accounting,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Files {
    #[serde(default)]
    pub(crate) names: Vec<Spanned<String>>,
    #[serde(default)]
    pub(crate) paths: Vec<Spanned<String>>,
    pub(crate) parts: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) first_lines: Vec<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimeKeys {
    #[serde(default)]
    pub(crate) prefix: Vec<Spanned<String>>,
    #[serde(default)]
    pub(crate) formats: Vec<Spanned<String>>,
    pub(crate) zone: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FieldKeys {
    pub(crate) separator: Option<Spanned<String>>,
    pub(crate) quote: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) counted: Vec<usize>,
    #[serde(default)]
    pub(crate) pairs: bool,
    pub(crate) header: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    pub(crate) start: Spanned<String>,
    #[serde(rename = "continue")]
    pub(crate) goes_on: Option<Spanned<String>>,
    pub(crate) end: Option<Spanned<String>>,
    pub(crate) max_lines: Option<Spanned<usize>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Calls {
    pub(crate) names: Option<Vec<Expression>>,
    pub(crate) naming: Option<NamingWord>,
    pub(crate) parent: Option<Expression>,
    pub(crate) selected_is_started: Option<bool>,
    pub(crate) cancelled_is_ended: Option<bool>,
    pub(crate) step_end_is_end: Option<bool>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NamingWord {
    Unique,
    Shared,
    Part,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected `false`, or a table of `names`, `naming` and `parent`")]
pub(crate) enum CallKeys {
    Never(bool),
    Keys(Calls),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    #[serde(rename = "match")]
    pub(crate) matches: Spanned<Patterns>,
    pub(crate) unless: Option<Spanned<String>>,
    pub(crate) remember: Option<Remember>,
    pub(crate) recall: Option<Spanned<Recall>>,
    pub(crate) forget: Option<Spanned<Expression>>,
    pub(crate) origin: Option<OriginWord>,
    #[serde(default)]
    pub(crate) also: Vec<EventSpec>,
    pub(crate) event: Option<Spanned<Expression>>,
    pub(crate) job: Option<Spanned<Expression>>,
    pub(crate) user: Option<Spanned<Expression>>,
    pub(crate) from: Option<Spanned<Expression>>,
    pub(crate) to: Option<Spanned<Expression>>,
    pub(crate) outcome: Option<Spanned<Expression>>,
    pub(crate) time: Option<Spanned<Expression>>,
    pub(crate) submitted: Option<Spanned<Expression>>,
    pub(crate) eligible: Option<Spanned<Expression>>,
    pub(crate) started: Option<Spanned<Expression>>,
    pub(crate) ended: Option<Spanned<Expression>>,
    #[serde(default)]
    pub(crate) attributes: Table,
    pub(crate) call: Option<Spanned<CallKeys>>,
}

/// Keys of a rule that describe an event. serde cannot both flatten and refuse unknown keys, so [`Rule`]
/// repeats them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventSpec {
    pub(crate) event: Option<Spanned<Expression>>,
    pub(crate) job: Option<Spanned<Expression>>,
    pub(crate) user: Option<Spanned<Expression>>,
    pub(crate) from: Option<Spanned<Expression>>,
    pub(crate) to: Option<Spanned<Expression>>,
    pub(crate) outcome: Option<Spanned<Expression>>,
    pub(crate) time: Option<Spanned<Expression>>,
    pub(crate) submitted: Option<Spanned<Expression>>,
    pub(crate) eligible: Option<Spanned<Expression>>,
    pub(crate) started: Option<Spanned<Expression>>,
    pub(crate) ended: Option<Spanned<Expression>>,
    #[serde(default)]
    pub(crate) attributes: Table,
    pub(crate) call: Option<Spanned<CallKeys>>,
}

/// The keys of [`EventSpec`], borrowed from either type.
pub(crate) struct EventSpecRef<'a> {
    pub(crate) event: Option<&'a Spanned<Expression>>,
    pub(crate) job: Option<&'a Spanned<Expression>>,
    pub(crate) user: Option<&'a Spanned<Expression>>,
    pub(crate) from: Option<&'a Spanned<Expression>>,
    pub(crate) to: Option<&'a Spanned<Expression>>,
    pub(crate) outcome: Option<&'a Spanned<Expression>>,
    pub(crate) time: Option<&'a Spanned<Expression>>,
    pub(crate) submitted: Option<&'a Spanned<Expression>>,
    pub(crate) eligible: Option<&'a Spanned<Expression>>,
    pub(crate) started: Option<&'a Spanned<Expression>>,
    pub(crate) ended: Option<&'a Spanned<Expression>>,
    pub(crate) attributes: &'a Table,
    pub(crate) call: Option<&'a Spanned<CallKeys>>,
}

macro_rules! event_spec_of {
    ($type:ident) => {
        impl<'a> From<&'a $type> for EventSpecRef<'a> {
            fn from(raw: &'a $type) -> EventSpecRef<'a> {
                EventSpecRef {
                    event: raw.event.as_ref(),
                    job: raw.job.as_ref(),
                    user: raw.user.as_ref(),
                    from: raw.from.as_ref(),
                    to: raw.to.as_ref(),
                    outcome: raw.outcome.as_ref(),
                    time: raw.time.as_ref(),
                    submitted: raw.submitted.as_ref(),
                    eligible: raw.eligible.as_ref(),
                    started: raw.started.as_ref(),
                    ended: raw.ended.as_ref(),
                    attributes: &raw.attributes,
                    call: raw.call.as_ref(),
                }
            }
        }
    };
}
event_spec_of!(Rule);
event_spec_of!(EventSpec);

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OriginWord {
    Recalled,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected an expression, or `{ keys = [EXPR, EXPR] }`")]
pub(crate) enum Recall {
    Several(RecallKeys),
    One(Expression),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecallKeys {
    pub(crate) keys: Vec<Expression>,
    #[serde(default)]
    pub(crate) across_logs: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remember {
    pub(crate) key: Spanned<Expression>,
    #[serde(default)]
    pub(crate) values: Table,
    #[serde(default)]
    pub(crate) across_logs: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a regex, or an array of regexes")]
pub(crate) enum Patterns {
    One(String),
    Several(Vec<String>),
}

/// Expressions by name, sorted by name.
pub(crate) type Table = BTreeMap<String, Spanned<Expression>>;

#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected an expression: a text, an array of expressions, or `{ value = EXPR, map = { TEXT = EXPR }, default = EXPR }`"
)]
pub(crate) enum Expression {
    Text(String),
    Several(Vec<Expression>),
    Map(Map),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Map {
    pub(crate) value: Box<Expression>,
    #[serde(deserialize_with = "in_order")]
    pub(crate) map: Vec<(String, Expression)>,
    pub(crate) default: Option<Box<Expression>>,
}

fn in_order<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<(String, Expression)>, D::Error> {
    struct Arms;
    impl<'de> serde::de::Visitor<'de> for Arms {
        type Value = Vec<(String, Expression)>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a table of results by value")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut arms = Vec::new();
            while let Some(arm) = map.next_entry()? {
                arms.push(arm);
            }
            Ok(arms)
        }
    }
    from.deserialize_map(Arms)
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) file: Option<String>,
    pub(crate) zone: Option<String>,
    pub(crate) lines: String,
    #[serde(default)]
    pub(crate) events: Vec<toml::Table>,
    #[serde(default)]
    pub(crate) unknown: u64,
}
