//! Reference of the methods as Markdown, generated from the OpenAPI document.
//!
//! Pure. A page has, for each method, a part between `<!-- method NAME -->` and `<!-- end -->`, and one with
//! all types between `<!-- types -->` and `<!-- end -->`; the rest is written by hand.

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const END: &str = "<!-- end -->";
const TYPES: &str = "#/components/schemas/";
/// Parameters of many methods, which the page describes once: the start of their descriptions.
const OF_MANY: [&str; 3] =
    ["of this domain; the daemon's own", "of this host; the daemon's own", "How integers are sent"];

/// The page with its marked parts replaced from the document.
///
/// # Errors
/// If a method has no part, or a part has no method.
pub(crate) fn rewritten(page: &str, openapi: &Value) -> Result<String, String> {
    let methods = openapi["paths"].as_object().ok_or("no paths")?;
    let mut missing: BTreeSet<&str> =
        methods.keys().filter_map(|path| path.strip_prefix("/api/v1/")).collect();
    let (mut out, mut rest, mut has_types) = (String::new(), page, false);
    while let Some((before, marked)) = rest.split_once("<!-- ") {
        let (mark, behind) = marked.split_once(" -->\n").ok_or("a mark without an end")?;
        let (_, after) = behind.split_once(END).ok_or_else(|| format!("{mark}: expected {END} behind it"))?;
        let part = match mark.strip_prefix("method ") {
            Some(name) => {
                missing.remove(name);
                let path = methods.get(&format!("/api/v1/{name}"));
                method(
                    path.ok_or_else(|| format!("{name}: no such method"))?,
                    &openapi["components"]["schemas"],
                )
            }
            None if mark == "types" && !has_types => all_types(&openapi["components"]["schemas"]),
            None => return Err(format!("{mark}: expected a method, or types once")),
        };
        has_types |= mark == "types";
        let _ = write!(out, "{before}<!-- {mark} -->\n{part}{END}");
        rest = after;
    }
    match missing.iter().next() {
        Some(name) => Err(format!("{name}: expected a part <!-- method {name} --> in docs/methods.md")),
        None if !has_types => Err("expected a part <!-- types --> in docs/methods.md".to_owned()),
        None => Ok(out + rest),
    }
}

fn method(path: &Value, types: &Value) -> String {
    let operation = &path["post"];
    let mut out = format!("{}.\n\n", text(operation, "summary"));
    let details = text(operation, "description");
    if !details.is_empty() {
        let _ = writeln!(out, "{}\n", details.replace('\n', "\n\n"));
    }
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let own = |(_, field): &(&String, &Value)| {
        OF_MANY.iter().all(|prefix| !text(field, "description").starts_with(prefix))
    };
    let parameters: Vec<_> = fields(schema).filter(own).collect();
    if !parameters.is_empty() {
        out.push_str("| parameter | type | meaning |\n| --- | --- | --- |\n");
        for (name, field) in parameters {
            add_parameter(name, (field, types), is_required(schema, name), &mut out);
        }
        out.push('\n');
    }
    let common: Vec<String> =
        fields(schema).filter(|field| !own(field)).map(|(name, _)| format!("`{name}`")).collect();
    let _ = writeln!(out, "It also takes {}.\n", common.join(", "));
    let answer = &operation["responses"]["200"]["content"]["application/json"]["schema"];
    let description = text(answer, "description");
    let description = if description.is_empty() { String::new() } else { format!(": {description}") };
    let _ = writeln!(out, "The answer is {}{description}.", article(&kind(answer, types)));
    if path.get("get").is_none() {
        out.push_str("\nIt is not answered by GET.\n");
    }
    out
}

fn article(kind: &str) -> String {
    match kind.starts_with('[') || kind.starts_with("one of") {
        true => kind.to_owned(),
        false => format!("a {kind}"),
    }
}

fn add_parameter(name: &str, (field, types): (&Value, &Value), is_required: bool, out: &mut String) {
    let required = if is_required { "; required" } else { "" };
    let default = match &field["default"] {
        Value::Null => String::new(),
        Value::Array(items) if items.is_empty() => String::new(),
        Value::Object(_) => String::new(),
        Value::String(text) if text.is_empty() => String::new(),
        Value::String(text) => format!(" `{text}` unless given."),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            format!(" {} unless given.", other.to_string().trim_end_matches(".0"))
        }
    };
    let (kind, help) = (kind(field, types), cell(text(field, "description")));
    let _ = writeln!(out, "| `{name}` | {kind}{required} | {help}{default} |");
    for (inner, one) in fields(present(field)) {
        add_parameter(&format!("{name}.{inner}"), (one, types), false, out);
    }
}

fn all_types(types: &Value) -> String {
    let mut out = String::new();
    for (name, schema) in types.as_object().into_iter().flatten() {
        let _ = writeln!(out, "### Type `{name}`\n\n{}\n", text(schema, "description"));
        let words = words(schema);
        if !words.is_empty() {
            out.push_str("| value | meaning |\n| --- | --- |\n");
        } else if schema["properties"].is_object() {
            out.push_str("| field | type | always | meaning |\n| --- | --- | --- | --- |\n");
        } else {
            let _ = writeln!(out, "It is {}.", kind(schema, types));
        }
        for (word, help) in words {
            let _ = writeln!(out, "| `{word}` | {} |", cell(help));
        }
        for (field, one) in fields(schema) {
            let always = if is_required(schema, field) { "yes" } else { "" };
            let _ = writeln!(
                out,
                "| `{field}` | {} | {always} | {} |",
                kind(one, types),
                cell(text(one, "description"))
            );
        }
        out.push('\n');
    }
    out
}

/// Short description of a value's type.
fn kind(schema: &Value, types: &Value) -> String {
    let variants: Vec<String> =
        schema["anyOf"].as_array().into_iter().flatten().map(|one| kind(one, types)).collect();
    if !variants.is_empty() {
        let present: Vec<String> = variants.into_iter().filter(|kind| kind != "null").collect();
        return present.join(", or ");
    }
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix(TYPES)) {
        return link(name);
    }
    let words = words(schema);
    let mut known = types.as_object().into_iter().flatten();
    if let Some((name, _)) = known.find(|(_, known)| !words.is_empty() && known["enum"] == schema["enum"]) {
        return link(name);
    }
    if !words.is_empty() {
        let words: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        return format!("one of {}", words.join(", "));
    }
    match (first_type(schema), text(schema, "format"), text(schema, "contentEncoding")) {
        (_, "unix-time", _) => "time".to_owned(),
        (_, "span-seconds", _) => "length of time".to_owned(),
        (_, _, "base64") => "bytes".to_owned(),
        ("string", ..) => "text".to_owned(),
        ("boolean", ..) => "true or false".to_owned(),
        ("integer", ..) => whole(schema),
        ("array", ..) => match kind(&schema["items"], types) {
            one if one.starts_with("one of") => format!("list, each {one}"),
            items => format!("list of {items}"),
        },
        ("object", ..) if schema["additionalProperties"].is_object() => {
            format!("structure of {} by name", kind(&schema["additionalProperties"], types))
        }
        ("object", ..) => "structure".to_owned(),
        ("", ..) => "anything".to_owned(),
        (other, ..) => other.to_owned(),
    }
}

/// Link to the heading of a type, which never equals a method's heading.
fn link(name: &str) -> String {
    format!("[{name}](#type-{})", name.to_lowercase())
}

fn whole(schema: &Value) -> String {
    match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
        (Some(min), Some(max)) => format!("whole number, {min} to {max}"),
        _ => "whole number".to_owned(),
    }
}

/// The schema of an optional value: the first variant that is not null.
fn present(schema: &Value) -> &Value {
    let variants = schema["anyOf"].as_array().into_iter().flatten();
    let mut present = variants.filter(|variant| variant["type"] != "null");
    present.next().unwrap_or(schema)
}

fn first_type(schema: &Value) -> &str {
    let several = schema["type"].as_array().into_iter().flatten().filter_map(Value::as_str);
    schema["type"].as_str().or_else(|| several.into_iter().find(|one| *one != "null")).unwrap_or_default()
}

/// The words of an enumeration, each with its meaning.
fn words(schema: &Value) -> Vec<(&str, &str)> {
    let words = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let meanings = schema["x-enum-descriptions"].as_array().into_iter().flatten();
    let meanings = meanings.filter_map(Value::as_str).chain(std::iter::repeat(""));
    words.zip(meanings).collect()
}

fn fields(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flat_map(Map::iter)
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
}

fn text<'a>(schema: &'a Value, name: &str) -> &'a str {
    schema[name].as_str().unwrap_or_default()
}

/// Text escaped for a table cell.
fn cell(text: &str) -> String {
    text.replace("\n\n", " ").replace('|', "\\|")
}
