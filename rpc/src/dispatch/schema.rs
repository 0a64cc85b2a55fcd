//! Descriptions of types for clients: parameters with their bounds and help, the outline of an answer.
//!
//! Pure. It reads the JSON schemas (draft 2020-12) that `schemars` derives, with every type inlined.

use crate::codec::value::{Name, Value};
use crate::dispatch::params::{Parameter, Type};
use schemars::generate::{Contract, SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value as Json};
use wire::api::{Bytes, Request, Span, UnixTime};

/// Schema of parameters.
pub(crate) fn of_params<T: JsonSchema>() -> Json {
    of::<T>(Contract::Deserialize)
}

/// Schema of an answer.
pub(crate) fn of_answer<T: JsonSchema>() -> Json {
    of::<T>(Contract::Serialize)
}

fn of<T: JsonSchema>(contract: Contract) -> Json {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.contract = contract;
        settings.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Location of the types of answers in a document.
pub(crate) const COMPONENTS: &str = "#/components/schemas/";

/// Types of a method.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Typed {
    pub(crate) params: fn() -> Json,
    answer: fn(&mut SchemaGenerator) -> Schema,
}

impl Typed {
    pub(crate) fn of<R: Request>() -> Typed {
        Typed { params: of_params::<R>, answer: |generator| generator.subschema_for::<R::Answer>() }
    }
}

/// Generator for the types of several answers, each type once.
#[derive(Debug)]
pub(crate) struct Answers(SchemaGenerator);

impl Default for Answers {
    fn default() -> Answers {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = COMPONENTS.into();
            settings.contract = Contract::Serialize;
            settings.meta_schema = None;
        });
        Answers(settings.into_generator())
    }
}

impl Answers {
    /// Schema of a method's answer, which refers to its types.
    pub(crate) fn of(&mut self, typed: &Typed) -> Json {
        (typed.answer)(&mut self.0).to_value()
    }

    /// The types, by their names.
    pub(crate) fn schemas(mut self) -> Map<String, Json> {
        let types = self.0.take_definitions(false);
        types
            .into_iter()
            .map(|(name, schema)| (name, without_defaults(present_fields(tidy(schema)))))
            .collect()
    }
}

/// Simplify a schema for client generators: a choice of texts becomes an `enum`, and each paragraph of a
/// description is one line.
pub(crate) fn tidy(mut schema: Json) -> Json {
    if let Some(words) = choices(&schema) {
        let meanings = schema.get("oneOf").and_then(Json::as_array).into_iter().flatten();
        let meanings: Vec<String> = meanings.map(|one| one_line(text_of(one, "description"))).collect();
        if let Some(members) = schema.as_object_mut().filter(|_| meanings.len() == words.len()) {
            members.remove("oneOf");
            members.insert("type".to_owned(), "string".into());
            members.insert("enum".to_owned(), words.into_iter().map(String::from).collect());
            members.insert("x-enum-descriptions".to_owned(), meanings.into());
        }
    }
    match &mut schema {
        Json::Array(items) => items.iter_mut().for_each(|item| *item = tidy(item.take())),
        Json::Object(members) => {
            for (name, member) in members {
                if let Json::String(text) = member
                    && name == "description"
                {
                    *text = text.split("\n\n").map(one_line).collect::<Vec<_>>().join("\n\n");
                } else {
                    *member = tidy(member.take());
                }
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
    schema
}

/// Change a structure's schema so that an absent field is omitted, never `null`.
pub(crate) fn present_fields(mut schema: Json) -> Json {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
    if let Some(fields) = schema.get_mut("properties").and_then(Json::as_object_mut) {
        for (name, field) in fields {
            if !is_required(name) {
                take_null(field);
            }
            *field = present_fields(field.take());
        }
    }
    schema
}

/// Change an answer's schema so that it has no defaults.
fn without_defaults(mut schema: Json) -> Json {
    let fields = schema.get_mut("properties").and_then(Json::as_object_mut);
    for field in fields.into_iter().flat_map(Map::values_mut).filter_map(Json::as_object_mut) {
        field.remove("default");
    }
    schema
}

fn take_null(field: &mut Json) {
    let Some(members) = field.as_object_mut() else { return };
    for list in ["type", "enum"] {
        if let Some(Json::Array(words)) = members.get_mut(list) {
            words.retain(|word| !word.is_null() && word != "null");
        }
    }
    if let Some(Json::Array(types)) = members.get("type")
        && let [one] = types.as_slice()
    {
        let one = one.clone();
        members.insert("type".to_owned(), one);
    }
    if let Some(Json::Array(variants)) = members.get("anyOf") {
        let mut present = variants.iter().filter(|variant| type_of(variant) != "null");
        if let (Some(Json::Object(one)), None) = (present.next().cloned(), present.next()) {
            members.remove("anyOf");
            for (name, member) in one {
                members.entry(name).or_insert(member);
            }
        }
    }
}

/// Split the description of the type into its first paragraph, on one line and without its full stop, and the
/// others.
pub(crate) fn summary_and_details(schema: &Json) -> (String, String) {
    let description = text_of(schema, "description");
    let (summary, details) = description.split_once("\n\n").unwrap_or((description, ""));
    (
        one_line(summary).trim_end_matches('.').to_owned(),
        details.split("\n\n").map(one_line).collect::<Vec<_>>().join("\n"),
    )
}

/// The XML-RPC type of a schema.
pub(crate) fn xml_type(schema: &Json) -> &'static str {
    match kind(schema) {
        Type::Text | Type::Choice(_) => "string",
        Type::Whole { .. } => "int",
        Type::Number | Type::Time | Type::Span => "double",
        Type::Flag => "boolean",
        Type::Choices(_) | Type::Texts | Type::Array => "array",
        Type::Struct | Type::Fields(_) | Type::Any => "struct",
    }
}

/// Parameters of a structure.
pub(crate) fn parameters(schema: &Json) -> Vec<Parameter> {
    let required = |name: &str| is_listed(schema, "required", name);
    let parameter = |(name, field): (&String, &Json)| {
        let help = one_line(text_of(field, "description"));
        let mut parameter = Parameter::new(name.clone(), kind(field), help.trim_end_matches('.').to_owned());
        parameter.required = required(name);
        parameter.default = field.get("default").and_then(plain);
        parameter
    };
    members(schema).map(parameter).collect()
}

/// Outline of an answer: one line per member, those of structures indented.
pub(crate) fn outline(schema: &Json) -> String {
    let mut out = one_line(text_of(schema, "description"));
    add_members(schema, 1, &mut out);
    out
}

fn add_members(schema: &Json, depth: usize, out: &mut String) {
    for (name, field) in members(schema) {
        let help = one_line(text_of(field, "description"));
        let kind = word(field);
        out.push_str(&format!("\n{}{name}: {kind}; {help}", "  ".repeat(depth)));
        let inner = present(field);
        add_members(inner.get("items").unwrap_or(inner), depth + 1, out);
    }
}

/// Short description of a member's type.
fn word(schema: &Json) -> String {
    if text_of(present(schema), "contentEncoding") == Bytes::ENCODING {
        return "bytes".to_owned();
    }
    match kind(schema) {
        Type::Choice(choices) => format!("one of {}", choices.join(", ")),
        Type::Choices(choices) => format!("an array of {}", choices.join(", ")),
        Type::Time => "a time, seconds since 1970".to_owned(),
        Type::Whole { .. } => "a whole number".to_owned(),
        Type::Array => match present(schema).get("items") {
            Some(items) => format!("an array of {}", word(items)),
            None => "an array".to_owned(),
        },
        other @ (Type::Text
        | Type::Number
        | Type::Span
        | Type::Flag
        | Type::Texts
        | Type::Struct
        | Type::Any) => other.describe(),
        Type::Fields(_) => Type::Struct.describe(),
    }
}

fn members(schema: &Json) -> impl Iterator<Item = (&String, &Json)> {
    schema.get("properties").and_then(Json::as_object).into_iter().flatten()
}

/// Parameter type of a member.
fn kind(schema: &Json) -> Type {
    let schema = present(schema);
    if let Some(choices) = choices(schema) {
        return Type::Choice(choices);
    }
    match text_of(schema, "format") {
        UnixTime::FORMAT => return Type::Time,
        Span::FORMAT => return Type::Span,
        _ => {}
    }
    match type_of(schema) {
        "string" => Type::Text,
        "integer" => Type::Whole {
            min: schema.get("minimum").and_then(Json::as_i64).unwrap_or(i64::MIN),
            max: schema.get("maximum").and_then(Json::as_i64).unwrap_or_else(|| most_of(schema)),
        },
        "number" => Type::Number,
        "boolean" => Type::Flag,
        "array" => match schema.get("items").map(kind) {
            Some(Type::Text) => Type::Texts,
            Some(Type::Choice(choices)) => Type::Choices(choices),
            Some(_) | None => Type::Array,
        },
        "object" if members(schema).next().is_some() => Type::Fields(parameters(schema)),
        "object" => Type::Struct,
        _ => Type::Any,
    }
}

/// Largest integer of a type without a bound of its own.
fn most_of(schema: &Json) -> i64 {
    match text_of(schema, "format") {
        "uint32" => u32::MAX.into(),
        "int32" => i32::MAX.into(),
        _ => i64::MAX,
    }
}

/// Schema of an optional value, without its `null`.
fn present(schema: &Json) -> &Json {
    let variants = schema.get("anyOf").and_then(Json::as_array);
    variants.into_iter().flatten().find(|variant| type_of(variant) != "null").unwrap_or(schema)
}

/// The first of its types that is not `null`.
fn type_of(schema: &Json) -> &str {
    match schema.get("type") {
        Some(Json::Array(types)) => {
            types.iter().filter_map(Json::as_str).find(|one| *one != "null").unwrap_or("null")
        }
        Some(one) => one.as_str().unwrap_or_default(),
        None => "",
    }
}

/// The texts of a choice, if it is one.
fn choices(schema: &Json) -> Option<Vec<Name>> {
    if let Some(words) = schema.get("enum").and_then(Json::as_array) {
        let words = words.iter().filter(|word| !word.is_null());
        return words.map(|word| word.as_str().map(|word| Name::Owned(word.to_owned()))).collect();
    }
    let variants = schema.get("oneOf")?.as_array()?;
    let word = |variant: &Json| match variant.get("const") {
        Some(word) => word.as_str().map(|word| vec![Name::Owned(word.to_owned())]),
        None => choices(variant),
    };
    variants.iter().map(word).collect::<Option<Vec<_>>>().map(|words| words.concat())
}

fn plain(value: &Json) -> Option<Value> {
    match value {
        Json::Null | Json::Object(_) => None,
        Json::Bool(flag) => Some(Value::Bool(*flag)),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Some(Value::Int(whole)),
            None => number.as_f64().map(Value::Double),
        },
        Json::String(text) => Some(Value::from(text.as_str())),
        Json::Array(items) if items.is_empty() => None,
        Json::Array(items) => items.iter().map(plain).collect::<Option<Vec<_>>>().map(Value::Array),
    }
}

fn is_listed(schema: &Json, list: &str, name: &str) -> bool {
    schema.get(list).and_then(Json::as_array).into_iter().flatten().any(|one| one.as_str() == Some(name))
}

fn text_of<'a>(schema: &'a Json, name: &str) -> &'a str {
    schema.get(name).and_then(Json::as_str).unwrap_or_default()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};

    /// What is asked.
    ///
    /// More of
    /// it.
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct CallTarget {
        /// At most so many.
        #[serde(default = "most")]
        #[schemars(range(min = 1, max = 1000))]
        limit: u64,
        /// Of this host.
        host: String,
        /// From this moment on.
        since: Option<UnixTime>,
        /// In this order.
        #[serde(default)]
        order: Order,
        /// Of these kinds.
        #[serde(default)]
        kinds: Vec<String>,
        #[serde(default)]
        whole: bool,
        ratio: Option<f64>,
        only: Option<Order>,
        mode: Option<Mode>,
        pid: Option<u32>,
        rows: Vec<Row>,
    }

    fn most() -> u64 {
        100
    }

    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Order {
        /// The newest first.
        #[default]
        NewestFirst,
        /// The oldest first.
        Oldest,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    enum Mode {
        Fast,
        Slow,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Row {
        /// Its name.
        name: String,
    }

    #[test]
    fn the_first_paragraph_is_the_summary() {
        let parts = summary_and_details(&of_params::<CallTarget>());
        assert_eq!(parts, ("What is asked".to_owned(), "More of it.".to_owned()));
    }

    #[test]
    fn parameters_have_the_type_bounds_default_and_help_of_their_field() {
        let all = parameters(&of_params::<CallTarget>());
        let shown = |name: &str| {
            let one = all.iter().find(|one| one.name == name).expect("it is a field");
            (one.kind.clone(), one.help.to_string(), one.required, one.default.clone())
        };
        let order = || Type::choice(&["newest_first", "oldest"]);
        let default = Some(Value::Int(100));
        assert_eq!(
            shown("limit"),
            (Type::Whole { min: 1, max: 1000 }, "At most so many".into(), false, default)
        );
        assert_eq!(shown("host"), (Type::Text, "Of this host".into(), true, None));
        assert_eq!((shown("since").0, shown("since").2), (Type::Time, false));
        assert_eq!((shown("order").0, shown("order").3), (order(), Some("newest_first".into())));
        assert_eq!((shown("only").0, shown("only").3), (order(), None));
        assert_eq!(shown("mode").0, Type::choice(&["Fast", "Slow"]), "without comments");
        assert_eq!(shown("pid").0, Type::Whole { min: 0, max: u32::MAX.into() });
        assert_eq!(shown("kinds").0, Type::Texts);
        assert_eq!((shown("whole").0, shown("whole").3), (Type::Flag, Some(Value::Bool(false))));
        assert_eq!((shown("ratio").0, shown("ratio").2), (Type::Number, false));
    }

    #[test]
    fn an_answer_is_outlined_with_what_is_in_its_structures() {
        let lines = outline(&of_answer::<CallTarget>());
        for line in [
            "\n  limit: a whole number; At most so many.",
            "\n  since: a time, seconds since 1970; From this moment on.",
            "\n  order: one of newest_first, oldest; In this order.",
            "\n  rows: an array of a structure; ",
            "\n    name: text; Its name.",
        ] {
            assert!(lines.contains(line), "{line} in {lines}");
        }
    }
}
