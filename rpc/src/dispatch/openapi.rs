//! OpenAPI 3.1 document of the methods (<https://spec.openapis.org/oas/v3.1.0>): `GET /api/v1/openapi.json`.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! Rule: everything about a method comes from its declaration, and so from the types of its parameters and
//! answer.
//! Not here: the schemas of types (`schema`).

use crate::dispatch::method::{Declaration, Reading};
use crate::dispatch::method::{EVENT_STREAM, FOLLOW};
use crate::dispatch::params::{BIG_INTEGERS, BIG_INTEGERS_CHOICES, Parameter, Type};
use crate::dispatch::schema::{self, Answers};
use serde_json::{Map, Value as Json, json};
use wire::fault;

/// Location of components in the document.
const RESPONSES: &str = "#/components/responses/";
const DESCRIPTION: &str = "Every method is called by POST with its parameters as a JSON object, one that only reads by GET as well. The same \
    methods are called by XML-RPC at /RPC2. A field without a value is left out. Times are seconds since 1970-01-01T00:00:00Z, lengths of time are \
    seconds; as parameters they may also be text (RFC 3339, `1h`). Numbers that JSON has not are the texts NaN, Infinity and -Infinity. Fields that \
    are not listed are those of a later version, or former names of fields that are.";

/// Build the document of these methods.
#[must_use]
pub fn document<'a>(version: &str, declarations: impl IntoIterator<Item = &'a Declaration>) -> Json {
    let mut answers = Answers::default();
    let mut paths = Map::new();
    let mut declarations: Vec<&Declaration> = declarations.into_iter().collect();
    declarations.sort_by_key(|declaration| declaration.name);
    for declaration in declarations {
        let answer = match &declaration.typed {
            Some(typed) => answers.of(typed),
            None => untyped(declaration),
        };
        let mut path = Map::new();
        if declaration.reading == Reading::Only {
            path.insert("get".to_owned(), get(declaration, &answer));
        }
        path.insert("post".to_owned(), post(declaration, &answer));
        paths.insert(format!("/api/v1/{}", declaration.name), Json::Object(path));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "visperf",
            "version": version,
            "description": DESCRIPTION,
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "The daemon that gave this document" }],
        "security": [{}, { "digest": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas(answers),
            "responses": { "Fault": {
                "description": "The call was not answered",
                "content": { "application/json": { "schema": { "$ref": format!("{}Failed", schema::COMPONENTS) } } },
            } },
            "securitySchemes": { "digest": {
                "type": "http", "scheme": "digest", "description": "Of a proxy: the name and password of an account (RFC 7616)",
            } },
        },
    })
}

fn schemas(answers: Answers) -> Map<String, Json> {
    let codes: Vec<String> =
        fault::CODES.iter().map(|(code, name, status, _)| format!("{code} {name} (HTTP {status})")).collect();
    let mut schemas = answers.schemas();
    schemas.insert(
        "Failed".to_owned(),
        json!({
            "type": "object",
            "description": "Why a call was not answered.",
            "required": ["error"],
            "properties": { "error": { "$ref": format!("{}Fault", schema::COMPONENTS) } },
        }),
    );
    schemas.insert(
        "Fault".to_owned(),
        json!({
            "type": "object",
            "description": "A fault: its code never changes its meaning.",
            "required": ["code", "message"],
            "properties": {
                "code": { "type": "integer", "format": "int32", "description": format!("One of {}.", codes.join(", ")) },
                "message": { "type": "string", "description": "What was expected, what was found, and what to do." },
            },
        }),
    );
    schemas.sort_keys();
    schemas
}

fn get(declaration: &Declaration, answer: &Json) -> Json {
    let in_query = |parameter: &&Parameter| !matches!(parameter.kind, Type::Struct | Type::Fields(_));
    let properties = properties(declaration);
    let mut parameters: Vec<Json> = declaration
        .parameters
        .iter()
        .filter(in_query)
        .map(|parameter| query(&parameter.name, parameter.required, properties[&*parameter.name].clone()))
        .collect();
    parameters.push(query(BIG_INTEGERS, false, big_integers()));
    parameters.push(query(
        FOLLOW,
        false,
        json!({
            "type": ["number", "string"],
            "format": "span-seconds",
            "description": "Answer again and again, as server-sent events: seconds from one answer to the next, 0.1 to 60.",
        }),
    ));
    let mut operation = operation("get_", declaration, answer);
    operation["responses"]["200"]["content"][EVENT_STREAM] = json!({ "schema": { "type": "string" } });
    operation["parameters"] = parameters.into();
    operation
}

/// A parameter in the query of a URL.
fn query(name: &str, required: bool, mut schema: Json) -> Json {
    let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
    json!({ "name": name, "in": "query", "required": required, "description": description, "schema": schema })
}

fn post(declaration: &Declaration, answer: &Json) -> Json {
    let mut properties = properties(declaration);
    properties.insert(BIG_INTEGERS.to_owned(), big_integers());
    let required: Vec<&str> =
        declaration.parameters.iter().filter(|one| one.required).map(|one| &*one.name).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let mut operation = operation("", declaration, answer);
    operation["requestBody"] =
        json!({ "required": !required.is_empty(), "content": { "application/json": { "schema": schema } } });
    operation
}

fn operation(verb: &str, declaration: &Declaration, answer: &Json) -> Json {
    let (group, _) = declaration.name.split_once('.').unwrap_or((declaration.name, ""));
    json!({
        "operationId": format!("{verb}{}", declaration.name.replace('.', "_")),
        "tags": [group],
        "summary": declaration.summary,
        "description": declaration.details,
        "responses": {
            "200": { "description": "The answer", "content": { "application/json": { "schema": answer } } },
            "default": { "$ref": format!("{RESPONSES}Fault") },
        },
    })
}

/// Schemas of its parameters, by name.
fn properties(declaration: &Declaration) -> Map<String, Json> {
    let typed =
        declaration.typed.as_ref().map(|typed| schema::present_fields(schema::tidy((typed.params)())));
    let typed = typed.as_ref().and_then(|params| params.get("properties")?.as_object());
    let schema = |parameter: &Parameter| {
        let known = typed.and_then(|properties| properties.get(&*parameter.name));
        let mut schema = known.cloned().unwrap_or_else(|| of_kind(&parameter.kind));
        schema["description"] = format!("{}.", parameter.help).into();
        (parameter.name.to_string(), schema)
    };
    declaration.parameters.iter().map(schema).collect()
}

/// Schema of a parameter without a Rust type.
fn of_kind(kind: &Type) -> Json {
    match kind {
        Type::Text => json!({ "type": "string" }),
        Type::Choice(choices) => json!({ "type": "string", "enum": choices }),
        Type::Whole { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Type::Number | Type::Time | Type::Span => json!({ "type": "number" }),
        Type::Flag => json!({ "type": "boolean" }),
        Type::Choices(choices) => json!({ "type": "array", "items": { "type": "string", "enum": choices } }),
        Type::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Type::Array => json!({ "type": "array", "items": {} }),
        Type::Struct | Type::Fields(_) => json!({ "type": "object" }),
        Type::Any => json!({}),
    }
}

fn big_integers() -> Json {
    json!({
        "type": "string",
        "enum": BIG_INTEGERS_CHOICES,
        "default": "number",
        "description": "How integers are sent that need more than 53 bits.",
    })
}

/// Schema of an answer without a Rust type: those of `system.*`.
fn untyped(declaration: &Declaration) -> Json {
    let mut schema = match declaration.result_type {
        "array" => json!({ "type": "array", "items": {} }),
        "struct" => json!({ "type": "object" }),
        other => json!({ "type": other }),
    };
    schema["description"] = (&*declaration.result_help).into();
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::channels::SubscribeParams;
    use wire::api::domain::HostsParams;

    fn shown() -> Json {
        let declared = [Declaration::of::<HostsParams>(), Declaration::of::<SubscribeParams>()];
        let system = crate::dispatch::method::Registry::new();
        document("1.2.3", declared.iter().chain(system.declarations()))
    }

    #[test]
    fn a_method_that_reads_has_get_and_post_and_one_that_does_not_has_post() {
        let document = shown();
        let methods = |name: &str| {
            let path = document["paths"][format!("/api/v1/{name}")].as_object().expect("it is there");
            path.keys().map(String::as_str).collect::<Vec<_>>()
        };
        assert_eq!(methods("domain.hosts"), ["get", "post"]);
        assert_eq!(methods("sensor.subscribe"), ["post"]);
        assert_eq!(methods("system.listMethods"), ["get", "post"]);
        let hosts = &document["paths"]["/api/v1/domain.hosts"]["get"];
        assert_eq!(hosts["operationId"], "get_domain_hosts");
        let names: Vec<&Json> =
            hosts["parameters"].as_array().expect("some").iter().map(|one| &one["name"]).collect();
        assert_eq!(names, ["domain", "big_integers", "follow"]);
        assert_eq!(document["info"]["version"], "1.2.3");
    }

    #[test]
    fn every_reference_is_to_something_that_is_there() {
        fn references<'a>(value: &'a Json, found: &mut Vec<&'a str>) {
            match value {
                Json::Array(items) => items.iter().for_each(|item| references(item, found)),
                Json::Object(members) => {
                    found.extend(members.get("$ref").and_then(Json::as_str));
                    members.values().for_each(|member| references(member, found));
                }
                Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
            }
        }
        let document = shown();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 10, "{found:?}");
        for reference in found {
            let pointer = reference.trim_start_matches('#');
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    #[test]
    fn types_say_what_is_always_there_and_what_within_which_bounds() {
        let document = shown();
        let body = &document["paths"]["/api/v1/sensor.subscribe"]["post"]["requestBody"];
        let schema = &body["content"]["application/json"]["schema"];
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["properties"]["budget"]["properties"]["cpu_ms"]["maximum"], 500);
        assert_eq!(schema["properties"]["kind"]["default"], "process");
        let host = &document["components"]["schemas"]["Host"];
        let required = host["required"].as_array().expect("some are always there");
        assert!(required.contains(&json!("host")) && !required.contains(&json!("load1")), "{host}");
        assert_eq!(
            host["properties"]["load1"]["type"], "number",
            "left out where it has no value, and never null"
        );
    }
}
