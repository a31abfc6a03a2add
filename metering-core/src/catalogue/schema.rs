//! Checks the schema of a route's response, and its example.
//!
//! JSON Schema ignores unknown keywords, so a misspelt one would silently check nothing. Here it is an error at
//! startup, like any other misspelt key of the file.

use serde_json::Value;
use serde_json::value::RawValue;

use super::object::{Object, UnknownKeys};
use super::problem::Problems;

/// The keywords of JSON Schema 2020-12 that describe a value. `$...` and `x-...` are accepted too, except `$ref`.
const KEYWORDS: [&str; 51] = [
    "type",
    "enum",
    "const",
    "title",
    "description",
    "default",
    "example",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "items",
    "prefixItems",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "pattern",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "discriminator",
    "externalDocs",
];
/// Keywords whose value is a schema, a list of schemas, or schemas by name.
const ONE_SCHEMA: [&str; 11] = [
    "items",
    "additionalProperties",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "contentSchema",
    "not",
    "if",
    "then",
    "else",
];
const SCHEMA_LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const NAMED_SCHEMAS: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];
const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

/// Checks that a schema has only known keywords, and that those with a structure have the right one.
///
/// Recursive: the caller has limited the depth.
///
/// # Errors
/// The location and text of each problem.
pub(super) fn check(schema: &Object<'_>) -> Result<(), Problems> {
    let mut problems = Problems::default();
    problems.keep(schema.only(&KEYWORDS, UnknownKeys::Refuse));
    if schema.has("$ref") {
        let location = schema.location_of("$ref");
        problems.add(format!("{location}: write the schema out; references are not supported"));
    }
    problems.keep(check_type(schema));
    problems.keep(schema.get::<Vec<String>>("required"));
    if let Some(dependent) = problems.keep(schema.object("dependentRequired")).flatten() {
        for (name, _) in dependent.members() {
            problems.keep(dependent.get::<Vec<String>>(name));
        }
    }
    for keyword in NAMED_SCHEMAS {
        let Some(members) = problems.keep(schema.object(keyword)).flatten() else { continue };
        for (name, member) in members.members() {
            problems.keep(check_nested(member, &members.location_of(name)));
        }
    }
    for keyword in ONE_SCHEMA {
        if let Some(nested) = problems.keep(schema.get::<&RawValue>(keyword)).flatten() {
            problems.keep(check_nested(nested, &schema.location_of(keyword)));
        }
    }
    for keyword in SCHEMA_LISTS {
        let nested = problems.keep(schema.get::<Vec<&RawValue>>(keyword)).flatten().unwrap_or_default();
        for (index, nested) in nested.into_iter().enumerate() {
            problems.keep(check_nested(nested, &format!("{}[{index}]", schema.location_of(keyword))));
        }
    }
    problems.or(|| Some(()))
}

/// A schema within another: an object, or `true` or `false`.
fn check_nested(schema: &RawValue, location: &str) -> Result<(), Problems> {
    match schema.get() {
        "true" | "false" => Ok(()),
        text => check(&Object::read(text, format!("{location}."))?),
    }
}

/// Visits the schemas directly within a schema.
pub(super) fn each_nested(schema: &mut Value, visit: &mut impl FnMut(&mut Value)) {
    let Value::Object(members) = schema else { return };
    for (keyword, value) in members {
        match value {
            Value::Object(named) if NAMED_SCHEMAS.contains(&keyword.as_str()) => {
                named.values_mut().for_each(&mut *visit)
            }
            Value::Array(list) if SCHEMA_LISTS.contains(&keyword.as_str()) => list.iter_mut().for_each(&mut *visit),
            nested if ONE_SCHEMA.contains(&keyword.as_str()) => visit(nested),
            _ => {}
        }
    }
}

fn check_type(schema: &Object<'_>) -> Result<(), String> {
    let Some(value) = schema.get::<Value>("type")? else { return Ok(()) };
    let known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    match &value {
        Value::Array(names) if !names.is_empty() && names.iter().all(known) => Ok(()),
        name if known(name) => Ok(()),
        _ => Err(format!("{}: must be one or a list of {}", schema.location_of("type"), TYPES.join(", "))),
    }
}

/// Checks the types and required members of an example, and records each value that does not fit. It is not a full
/// validation: it finds examples that were left behind when their schema changed.
pub(super) fn check_example(schema: &Value, example: &Value, location: &str, problems: &mut Problems) {
    let types: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !types.is_empty() && !types.iter().any(|name| is_of_type(name, example)) {
        return problems.add(format!("{location} does not fit response: must be {}", types.join(" or ")));
    }
    if let Some(members) = example.as_object() {
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for missing in required.into_iter().filter(|name| !members.contains_key(*name)) {
            problems.add(format!("{location} does not fit response: {missing} is missing"));
        }
        for (name, value) in members {
            check_example(&schema["properties"][name], value, &format!("{location}.{name}"), problems);
        }
    }
    let prefix = schema["prefixItems"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, item) in example.as_array().into_iter().flatten().enumerate() {
        let item_schema = prefix.get(index).unwrap_or(&schema["items"]);
        check_example(item_schema, item, &format!("{location}[{index}]"), problems);
    }
}

fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        // JSON Schema counts 1.0 and 1e30 as integers.
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::Catalogue;

    fn catalogue(fields: &str) -> String {
        format!(r#"{{"market":"M","version":1,"endpoints":[{{"path":"/x","method":"GET","metered":true,{fields}}}]}}"#)
    }

    fn read(fields: &str) -> Result<Catalogue, String> {
        Catalogue::from_json(&catalogue(fields)).map_err(|error| error.to_string())
    }

    #[test]
    fn response_and_example_are_kept() {
        let fields = r#""group": "Prices", "response": {"type": "object", "required": ["price"], "properties": {
            "price": {"type": ["string", "null"]}, "list": {"type": "array", "items": {"type": "integer"}}}},
            "example": {"price": "1.5", "list": [1, 2], "more": true},
            "params": [{"name": "q", "in": "query", "type": "integer", "description": "How many", "example": 7.5}]"#;
        assert!(read(fields).unwrap_err().contains("params[0].example: must be an integer"));
        let catalogue = read(&fields.replace("7.5", "7")).unwrap();
        let route = &catalogue.routes()[0];
        assert_eq!(route.group.as_deref(), Some("Prices"));
        assert_eq!(route.example.as_ref().unwrap().value()["list"][1], 2);
        assert_eq!(route.response.as_ref().unwrap().value()["required"][0], "price");
        assert_eq!((route.params[0].description.as_str(), route.params[0].example.as_deref()), ("How many", Some("7")));
    }

    #[test]
    fn mistakes_in_schema_and_example_are_named() {
        // fields, a part of the message
        let table = [
            (r#""response": 5"#, "response.invalid type"),
            (r#""response": {"minItem": 1}"#, "unknown key response.minItem; did you mean minItems?"),
            (r#""response": {"properties": {"a": {"typ": "string"}}}"#, "response.properties.a.typ"),
            (r#""response": {"items": {"anyOf": [true, {"typ": "null"}]}}"#, "response.items.anyOf[1].typ"),
            (r#""response": {"type": "text"}"#, "response.type: must be one or a list of object"),
            (r#""response": {"type": []}"#, "response.type: must be one or a list of object"),
            (r##""response": {"$ref": "#/x"}"##, "references are not supported"),
            (r#""response": {"required": "a"}"#, "response.required"),
            (r#""response": {"type": "object"}, "example": []"#, "example does not fit response: must be object"),
            (r#""response": {"required": ["a"]}, "example": {}"#, "example does not fit response: a is missing"),
            (
                r#""response": {"items": {"properties": {"a": {"type": "integer"}}}}, "example": [{"a": 1.5}]"#,
                "example[0].a does not fit response: must be integer",
            ),
            (
                r#""response": {"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, "example": [1]"#,
                "example[0] does not fit response: must be string",
            ),
            (r#""response": {"if": {"typ": "null"}}"#, "response.if.typ"),
            (r#""response": {"dependentSchemas": {"a": {"typ": "null"}}}"#, "response.dependentSchemas.a.typ"),
            (r#""response": {"dependentRequired": {"a": "b"}}"#, "response.dependentRequired.a"),
            (r#""respond": {}"#, "unknown key respond; did you mean response?"),
            (
                r#""params": [{"name": "q", "in": "query", "type": "integer", "example": "x"}]"#,
                "params[0].example: must be an integer",
            ),
        ];
        for (fields, part) in table {
            let error = read(fields).unwrap_err();
            assert!(error.contains(part) && error.contains("route GET /x"), "{fields}: {error}");
        }
    }

    #[test]
    fn keywords_and_integers_of_json_schema_are_known() {
        let fields = [
            r#""response": {"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, "example": ["a", 1]"#,
            r#""response": {"items": {"type": "integer"}}, "example": [1.0, 1e30, 123456789012345678901234567890]"#,
            r#""response": {"if": {"required": ["a"]}, "then": true, "else": {}, "unevaluatedProperties": false,
                "unevaluatedItems": {"type": "null"}, "dependentSchemas": {"a": {}}, "dependentRequired": {"a": ["b"]},
                "contains": {}, "minContains": 1, "maxContains": 2, "contentEncoding": "base64",
                "contentMediaType": "application/json", "contentSchema": {"type": "object"}}"#,
        ];
        for fields in fields {
            assert_eq!(read(fields).err(), None, "{fields}");
        }
    }

    #[test]
    fn deep_schema_is_an_error() {
        let error = read(&format!(r#""response": {}"#, deep())).unwrap_err();
        assert!(error.contains("response: recursion limit exceeded"), "{error}");
    }

    fn deep() -> String {
        format!("{}true{}", r#"{"not":"#.repeat(100_000), "}".repeat(100_000))
    }

    #[test]
    fn newer_schemas_of_other_servers_are_accepted() {
        let deep = format!(r#""response": {}"#, deep());
        let fields = [
            r#""response": {"notInventedYet": 1}, "example": 1"#,
            r#""response": "a schema""#,
            r#""response": true"#,
            r#""response": {"properties": 1, "type": 7}"#,
            r#""response": {"type": "object", "type": "array"}"#,
            &deep,
            &deep.replace("response", "example"),
            r#""group": ["Prices"]"#,
            r#""description": {"en": "Price"}"#,
            r#""params": [{"name": "q", "in": "query", "type": "integer", "example": "x"}]"#,
            r#""params": [{"name": "q", "in": "query", "type": "integer", "description": {"en": "How many"}}]"#,
        ];
        for fields in fields {
            let text = catalogue(fields);
            let published = Catalogue::from_published_json(&text);
            assert!(published.is_ok_and(|catalogue| catalogue.routes().len() == 1), "{fields:.80}");
            assert!(Catalogue::from_json(&text).is_err(), "{fields:.80}");
        }
    }
}
