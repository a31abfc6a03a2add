//! The extension `bazaar`: how a route or a tool is called, for catalogues of paid services
//! (`specs/extensions/bazaar.md`).

use metering_core::catalogue::{Param, ParamLocation, ParamType, Route, TemplateSegment};
use serde_json::{Map, Value, json};

/// The key of the extension.
pub const BAZAAR_EXTENSION: &str = "bazaar";

/// The longest example of a response to include, in bytes of JSON. A long one would push the whole extension out of the
/// header.
const MAX_EXAMPLE_BYTES: usize = 1_024;

/// Describes a route: method, parameters with their types and examples, and an example of a response.
///
/// A route whose method has a body takes any JSON, because the catalogue does not describe bodies.
///
/// ```
/// use metering_core::Catalogue;
/// use metering_pay::wire::x402::bazaar_extension;
///
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [
///         {"path": "/weather/{city}", "method": "GET", "metered": true, "credit_weight": 72,
///          "params": [{"name": "city", "in": "path", "type": "string", "required": true, "example": "Paris"}]}]}"#,
/// )?;
/// let extension = bazaar_extension(&catalogue.routes()[0]);
/// assert_eq!(extension["routeTemplate"], "/weather/:city");
/// assert_eq!(extension["info"]["input"]["pathParams"]["city"], "Paris");
/// # Ok::<(), metering_core::catalogue::CatalogueError>(())
/// ```
#[must_use]
pub fn bazaar_extension(route: &Route) -> Value {
    let mut input = Map::from_iter([("type".to_owned(), json!("http")), ("method".to_owned(), json!(&*route.method))]);
    let mut properties = Map::from_iter([
        ("type".to_owned(), json!({"type": "string", "const": "http"})),
        ("method".to_owned(), json!({"type": "string", "enum": [&*route.method]})),
    ]);
    let mut required = vec!["type", "method"];
    if has_body(&route.method) {
        input.extend([("bodyType".to_owned(), json!("json")), ("body".to_owned(), json!({}))]);
        properties.insert("bodyType".to_owned(), json!({"type": "string", "enum": ["json"]}));
        properties.insert("body".to_owned(), json!({"type": "object"}));
        required.extend(["bodyType", "body"]);
    }
    for (name, location) in [("queryParams", ParamLocation::Query), ("pathParams", ParamLocation::Path)] {
        let params: Vec<_> = route.params.iter().filter(|param| param.location == location).collect();
        if !params.is_empty() {
            input.insert(name.to_owned(), examples(&params));
            // The schema is one of the examples.
            properties.insert(name.to_owned(), schema(&params, |param| is_required(param) && param.example.is_some()));
        }
    }
    let mut info = Map::from_iter([("input".to_owned(), Value::Object(input))]);
    if let Some(example) = route.example.as_ref().filter(|example| example.text().len() <= MAX_EXAMPLE_BYTES) {
        info.insert("output".to_owned(), json!({"type": "json", "example": example.value()}));
    }
    let input = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"input": input},
        "required": ["input"],
    });
    let mut extension = Map::from_iter([("info".to_owned(), Value::Object(info)), ("schema".to_owned(), schema)]);
    if route.template.contains('{') {
        extension.insert("routeTemplate".to_owned(), json!(template(route)));
    }
    Value::Object(extension)
}

/// An MCP tool that calls a metered route.
#[derive(Debug, Clone, Copy)]
pub struct PricedTool<'t> {
    /// Its route.
    pub route: &'t Route,
    /// The name that `tools/list` has.
    pub name: &'t str,
    /// Its description.
    pub description: &'t str,
    /// The schema of its arguments.
    pub input_schema: &'t Map<String, Value>,
}

/// Describes an MCP tool, as `tools/list` does.
#[must_use]
pub fn bazaar_tool_extension(tool: &PricedTool<'_>) -> Value {
    let text = || json!({"type": "string"});
    let properties = json!({
        "type": {"type": "string", "const": "mcp"},
        "toolName": text(),
        "description": text(),
        "transport": {"type": "string", "enum": ["streamable-http", "sse"]},
        "inputSchema": {"type": "object"},
    });
    let input = json!({
        "type": "object", "properties": properties, "required": ["type", "toolName", "inputSchema"],
        "additionalProperties": false,
    });
    json!({
        "info": {"input": {
            "type": "mcp", "toolName": tool.name, "description": tool.description, "transport": "streamable-http",
            "inputSchema": tool.input_schema,
        }},
        "schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"input": input},
            "required": ["input"],
        },
    })
}

/// `/weather/{city}` as `/weather/:city`.
pub(super) fn template(route: &Route) -> String {
    let segment = |segment: TemplateSegment<'_>| match segment {
        TemplateSegment::Literal(text) => format!("/{text}"),
        TemplateSegment::Param { name, verb: None } => format!("/:{name}"),
        TemplateSegment::Param { name, verb: Some(verb) } => format!("/:{name}:{verb}"),
    };
    route.segments().map(segment).collect()
}

/// Whether requests with this method have a body.
pub(super) fn has_body(method: &str) -> bool {
    !matches!(method, "GET" | "HEAD" | "DELETE")
}

pub(super) fn is_required(param: &Param) -> bool {
    param.required || param.location == ParamLocation::Path
}

fn examples(params: &[&Param]) -> Value {
    let example = |param: &&Param| (param.name.clone(), json!(param.example.as_deref()));
    params.iter().filter(|param| param.example.is_some()).map(example).collect::<Map<_, _>>().into()
}

/// The schema of parameters.
pub(super) fn schema(params: &[&Param], is_required: impl Fn(&Param) -> bool) -> Value {
    let property = |param: &&Param| {
        let kind = match param.kind {
            ParamType::String => "string",
            ParamType::Integer => "integer",
            ParamType::Number => "number",
            ParamType::Boolean => "boolean",
        };
        // Examples of numbers are the text of a URL, so only text can be checked against its type.
        let mut property = Map::from_iter([("type".to_owned(), json!(["string", kind]))]);
        if kind == "string" {
            property.insert("type".to_owned(), json!(kind));
        }
        if param.array {
            property =
                Map::from_iter([("type".to_owned(), json!("array")), ("items".to_owned(), Value::Object(property))]);
        }
        if !param.description.is_empty() {
            property.insert("description".to_owned(), json!(param.description));
        }
        (param.name.clone(), Value::Object(property))
    };
    let required: Vec<_> = params.iter().filter(|param| is_required(param)).map(|param| &param.name).collect();
    json!({"type": "object", "properties": params.iter().map(property).collect::<Map<_, _>>(), "required": required})
}

#[cfg(test)]
mod tests {
    use metering_core::Catalogue;

    use super::*;

    fn extension(method: &str, fields: &str) -> Value {
        let route =
            format!(r#"{{"path":"/a/{{n}}/b","method":"{method}","metered":true,"credit_weight":72,{fields}}}"#);
        let text = format!(r#"{{"market":"M","version":1,"endpoints":[{route}]}}"#);
        bazaar_extension(&Catalogue::from_json(&text).unwrap().routes()[0])
    }

    const PARAMS: &str = r#""params": [
        {"name": "n", "in": "path", "type": "integer", "required": true, "example": "7"},
        {"name": "q", "in": "query", "type": "string", "required": true, "description": "What", "example": "x"},
        {"name": "opt", "in": "query", "type": "boolean"}]"#;

    #[test]
    fn a_route_is_described_with_parameters_and_an_example() {
        let found = extension("GET", &format!(r#"{PARAMS}, "example": {{"price": "1.5"}}"#));
        let expected_info = json!({
            "input": {"type": "http", "method": "GET", "queryParams": {"q": "x"}, "pathParams": {"n": "7"}},
            "output": {"type": "json", "example": {"price": "1.5"}},
        });
        assert_eq!(found["info"], expected_info);
        assert_eq!(found["routeTemplate"], "/a/:n/b");
        let input = &found["schema"]["properties"]["input"];
        assert_eq!(input["required"], json!(["type", "method"]));
        assert_eq!(input["properties"]["method"]["enum"], json!(["GET"]));
        assert_eq!(input["properties"]["pathParams"]["properties"]["n"], json!({"type": ["string", "integer"]}));
        let query = json!({"type": "object", "required": ["q"], "properties": {
            "q": {"type": "string", "description": "What"}, "opt": {"type": ["string", "boolean"]}}});
        assert_eq!(input["properties"]["queryParams"], query);
    }

    #[test]
    fn a_tool_is_described_as_in_its_list() {
        let text = r#"{"market":"M","version":1,"endpoints":[{"path":"/a","method":"GET","metered":true}]}"#;
        let catalogue = Catalogue::from_json(text).unwrap();
        let input_schema = Map::from_iter([("type".to_owned(), json!("object"))]);
        let tool =
            PricedTool { route: &catalogue.routes()[0], name: "bds_a", description: "A", input_schema: &input_schema };
        let found = bazaar_tool_extension(&tool);
        let expected = json!({"type": "mcp", "toolName": "bds_a", "description": "A", "transport": "streamable-http",
            "inputSchema": {"type": "object"}});
        assert_eq!(found["info"], json!({ "input": expected }));
        let schema = &found["schema"]["properties"]["input"];
        for name in expected.as_object().unwrap().keys() {
            assert!(schema["properties"][name].is_object(), "{name}");
        }
    }

    #[test]
    fn bodies_are_json_and_long_examples_are_left_out() {
        let long = "x".repeat(MAX_EXAMPLE_BYTES);
        let found = extension("POST", &format!(r#"{PARAMS}, "example": {{"price": "{long}"}}"#));
        assert_eq!(found["info"].get("output"), None);
        assert_eq!(
            (&found["info"]["input"]["bodyType"], &found["info"]["input"]["body"]),
            (&json!("json"), &json!({}))
        );
        let input = &found["schema"]["properties"]["input"];
        assert_eq!(input["required"], json!(["type", "method", "bodyType", "body"]));
        for required in input["required"].as_array().unwrap() {
            assert!(found["info"]["input"].get(required.as_str().unwrap()).is_some(), "{required}");
        }
    }
}
