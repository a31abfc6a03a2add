//! Reads the `request` of a route.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::BodyRules;
use super::set::SetRule;
use super::unknown::Unknown;
use crate::catalogue::json_text::JsonText;
use crate::catalogue::object::{Object, UnknownKeys, choice, documentation};
use crate::catalogue::pointer::Pointer;
use crate::catalogue::problem::Problems;
use crate::catalogue::schema;

const REQUEST_KEYS: [&str; 4] = ["schema", "example", "unknown", "set"];
const UNKNOWN: [(&str, Unknown); 3] =
    [("remove", Unknown::Remove), ("refuse", Unknown::Refuse), ("pass", Unknown::Pass)];

/// Reads the rules of a route, if it has any.
///
/// # Errors
/// The location and text of each problem.
pub(in crate::catalogue) fn read_rules(
    endpoint: &Object<'_>,
    unknown: UnknownKeys,
) -> Result<Option<BodyRules>, Problems> {
    let Some(request) = endpoint.object("request")? else { return Ok(None) };
    let mut problems = Problems::default();
    problems.keep(request.only(&REQUEST_KEYS, unknown));
    if let Ok("GET" | "HEAD") = endpoint.require::<String>("method").as_deref() {
        problems.add("request does not apply to a route without a body");
    }
    let schema = problems.keep(read_schema(&request));
    let members = problems.keep(choice(&request, "unknown", &UNKNOWN));
    let set = problems.keep(read_set(&request));
    let example = problems.keep(documentation(request.get::<JsonText>("example"), unknown));
    let rules = problems.or(|| {
        let (schema, validator) = schema?;
        let mut names = Vec::new();
        collect_names(&mut schema.value().clone(), &mut names);
        Some(BodyRules {
            schema,
            example: example?,
            validator: Arc::new(validator),
            unknown: members?.unwrap_or_default(),
            names,
            set: set?,
        })
    })?;
    if unknown == UnknownKeys::Refuse {
        check_example(&rules, &request.location_of("example"))?;
    }
    Ok(Some(rules))
}

/// Checks that requests with the example would be served.
fn check_example(rules: &BodyRules, location: &str) -> Result<(), Problems> {
    let Some(Err(found)) = rules.example().map(|example| rules.check(example.text().as_bytes())) else {
        return Ok(());
    };
    let mut problems = Problems::default();
    for (pointer, problem) in found {
        problems.add(format!("{location} does not fit the request: {pointer}: {problem}"));
    }
    Err(problems)
}

fn read_schema(request: &Object<'_>) -> Result<(JsonText, jsonschema::Validator), Problems> {
    // Read as a value first, which limits its depth: the checks are recursive.
    let schema: JsonText = request.require("schema")?;
    let object = request.object("schema")?.ok_or_else(|| format!("{} is missing", request.location_of("schema")))?;
    schema::check(&object)?;
    let mut compiled = schema.value().clone();
    spell_out(&mut compiled);
    // Not the builder, which is generic: the whole of jsonschema would be compiled again in this crate.
    let validator = jsonschema::draft202012::new(&compiled);
    let validator = validator.map_err(|error| format!("{}: {error}", request.location_of("schema")))?;
    Ok((schema, validator))
}

/// Rewrites a schema so that the validator annotates all known members: it does not annotate
/// `additionalProperties: true`, nor `properties` next to `additionalProperties`.
fn spell_out(schema: &mut Value) {
    schema::each_nested(schema, &mut spell_out);
    let Value::Object(members) = schema else { return };
    let Some(additional) = members.get_mut("additionalProperties") else { return };
    if *additional == Value::Bool(true) {
        *additional = json!({"not": false});
    }
    let named = ["properties", "patternProperties"].into_iter().filter_map(|keyword| {
        let names = members.get(keyword)?.as_object()?.keys();
        let anything = names.map(|name| (name.clone(), Value::Bool(true))).collect();
        Some(json!({keyword: Value::Object(anything)}))
    });
    let named: Vec<Value> = named.collect();
    if let Value::Array(all) = members.entry("allOf").or_insert_with(|| json!([])) {
        all.extend(named);
    }
    if members["allOf"] == json!([]) {
        members.remove("allOf");
    }
}

/// The names of all properties, at any depth.
fn collect_names(schema: &mut Value, names: &mut Vec<String>) {
    names.extend(
        schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|named| named.keys().cloned()),
    );
    schema::each_nested(schema, &mut |nested| collect_names(nested, names));
}

/// A rule, or a list of rules.
fn read_set(request: &Object<'_>) -> Result<Vec<SetRule>, Problems> {
    let Some(value) = request.get::<&RawValue>("set")?.filter(|value| value.get() != "null") else {
        return Ok(Vec::new());
    };
    if value.get().starts_with('[') {
        let mut problems = Problems::default();
        let rules = problems.all(request.list("set")?.iter().map(read_rule));
        return problems.or(|| rules);
    }
    let rule = request.object("set")?.ok_or_else(|| format!("{} is missing", request.location_of("set")))?;
    Ok(vec![read_rule(&rule)?])
}

fn read_rule(rule: &Object<'_>) -> Result<SetRule, Problems> {
    let mut problems = Problems::default();
    let own: Vec<_> = rule.members().map(|(name, _)| name).filter(|name| name.starts_with('/')).collect();
    problems.keep(rule.only(&[&own[..], &["when", "hide"]].concat(), UnknownKeys::Refuse));
    if own.is_empty() {
        let location = rule.location_of("");
        problems.add(format!("{location} must have at least one JSON pointer, such as \"/store\": false"));
    }
    let values = problems.all(own.into_iter().map(|name| value_at(rule, name)));
    let mut pairs = |key: &str| {
        let object = problems.keep(rule.object(key)).flatten()?;
        problems.all(object.members().map(|(name, _)| value_at(&object, name)))
    };
    let (when, hide) = (pairs("when"), pairs("hide"));
    problems.or(|| Some(SetRule { values: values?, when: when.unwrap_or_default(), hide: hide.unwrap_or_default() }))
}

fn value_at(object: &Object<'_>, name: &str) -> Result<(Pointer, Value), String> {
    let pointer = Pointer::parse(name).map_err(|problem| format!("{}: {problem}", object.location_of(name)))?;
    // A `null` is a value here.
    let (_, value) = object.members().find(|(known, _)| *known == name).ok_or_else(|| object.location_of(name))?;
    let value = serde_json::from_str(value.get()).map_err(|error| format!("{}: {error}", object.location_of(name)))?;
    Ok((pointer, value))
}
