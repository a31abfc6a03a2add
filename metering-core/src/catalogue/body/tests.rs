use super::*;
use crate::Catalogue;

/// A chat request, as LLM services define it.
const SCHEMA: &str = r#"{"type": "object", "required": ["model", "messages"], "properties": {
    "model": {"enum": ["small", "medium"]},
    "messages": {"type": "array", "items": {"type": "object", "required": ["role", "content"], "properties": {
        "role": {"type": "string"},
        "content": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"oneOf": [
            {"type": "object", "required": ["type"], "properties": {"type": {"const": "text"}, "text": {"type": "string"}}},
            {"type": "object", "required": ["type"], "properties": {"type": {"const": "image"}, "url": {"type": "string"}}}
        ]}}]}}}},
    "max_tokens": {"type": "integer", "minimum": 1, "maximum": 4096},
    "stream": {"type": "boolean"},
    "stream_options": {"type": ["object", "null"], "properties": {"include_usage": {"type": "boolean"}}},
    "metadata": {"type": "object"},
    "labels": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true},
    "schema": {"type": "object", "patternProperties": {"^x-": {"type": "string"}}},
    "mixed": {"properties": {"p": {}}, "patternProperties": {"^q": {}}, "additionalProperties": {"properties": {"s": {}}}},
    "temperature": {"type": "number"}}}"#;

fn rules(unknown: &str, set: &str) -> Arc<BodyRules> {
    read(&format!(r#"{{"schema": {SCHEMA}, "unknown": "{unknown}", "set": {set}}}"#)).unwrap()
}

fn read(request: &str) -> Result<Arc<BodyRules>, String> {
    let json = format!(
        r#"{{"market": "M", "version": 1, "endpoints": [
            {{"path": "/chat", "method": "POST", "metered": true, "request": {request}}}]}}"#
    );
    let catalogue = Catalogue::from_json(&json).map_err(|error| error.to_string())?;
    Ok(catalogue.routes()[0].body.clone().unwrap())
}

/// A body with a model and a message.
fn chat(more: &str) -> String {
    format!(r#"{{"model":"small","messages":[{{"role":"user","content":"Hi"}}]{more}}}"#)
}

fn checked(rules: &BodyRules, body: &[u8]) -> Result<String, Vec<String>> {
    match rules.check(body) {
        Ok(checked) => Ok(String::from_utf8(checked.as_ref().to_vec()).unwrap()),
        Err(problems) => Err(problems.into_keys().collect()),
    }
}

#[test]
fn unknown_members_are_removed_refused_or_passed() {
    let part = |more: &str| {
        format!(r#"{{"model":"small","messages":[{{"role":"user","content":[{{"type":"text","text":"x"{more}}}]}}]}}"#)
    };
    // body, forwarded body without unknown members, rejected pointers
    let table: Vec<(String, String, &[&str])> = vec![
        (chat(""), chat(""), &[]),
        (chat(r#","extra_body":{"model":"large"}"#), chat(""), &["/extra_body"]),
        (chat(r#","MODEL":"large""#), chat(""), &["/MODEL"]),
        (chat(r#","fallbacks":["large"],"num_retries":9"#), chat(""), &["/fallbacks", "/num_retries"]),
        (
            chat(r#","stream_options":{"include_usage":true,"x":1}"#),
            chat(r#","stream_options":{"include_usage":true}"#),
            &["/stream_options/x"],
        ),
        // Neither alternative lists the other's members.
        (part(r#","url":"u""#), part(""), &["/messages/0/content/0/url"]),
        (part(r#","a/b~":1"#), part(""), &["/messages/0/content/0/a~1b~0"]),
        // Objects that no schema describes, or that accept everything.
        (chat(r#","metadata":{"any":{"thing":1}}"#), chat(r#","metadata":{"any":{"thing":1}}"#), &[]),
        (chat(r#","labels":{"a":"x","b":{"c":1}}"#), chat(r#","labels":{"a":"x","b":{"c":1}}"#), &[]),
        (chat(r#","schema":{"x-a":"1","b":2}"#), chat(r#","schema":{"x-a":"1"}"#), &["/schema/b"]),
        (
            chat(r#","mixed":{"p":1,"q1":2,"r":{"s":1,"t":2}}"#),
            chat(r#","mixed":{"p":1,"q1":2,"r":{"s":1}}"#),
            &["/mixed/r/t"],
        ),
    ];
    for (sent, forwarded, refused) in table {
        assert_eq!(checked(&rules("remove", "null"), sent.as_bytes()), Ok(forwarded), "{sent}");
        let expected = if refused.is_empty() {
            Ok(sent.clone())
        } else {
            Err(refused.iter().map(|pointer| (*pointer).to_owned()).collect())
        };
        assert_eq!(checked(&rules("refuse", "null"), sent.as_bytes()), expected, "{sent}");
    }
    let pass = rules("pass", "null");
    let sent = chat(r#","extra_body":{"model":"large"}"#);
    assert_eq!(checked(&pass, sent.as_bytes()), Ok(sent.clone()));
    for name in ["MODEL", "Max_Tokens", "\u{17f}tream"] {
        let sent = chat(&format!(r#","{name}":1"#));
        assert_eq!(checked(&pass, sent.as_bytes()), Err(vec![format!("/{name}")]));
    }
}

#[test]
fn body_that_parsers_read_differently_is_refused() {
    let rules = rules("remove", "null");
    let deep = chat(&format!(r#","metadata":{{"a":{}{}}}"#, "[".repeat(200), "]".repeat(200)));
    let invalid_utf8 = [chat("").as_bytes(), b"\xff"].concat();
    let inner_utf8 =
        chat(r#","metadata":{"a":"#).into_bytes().into_iter().chain(*b"\"\xc0\xae\"}}").collect::<Vec<_>>();
    let bodies: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"[]x".to_vec(),
        chat(r#","model":"medium""#).into(),
        chat(r#","\u006dodel":"medium""#).into(),
        chat(r#","metadata":{"a":1,"a":1}"#).into(),
        chat(r#","temperature":1e400"#).into(),
        chat(r#","metadata":{"a":"\ud800"}"#).into(),
        chat(r#","max_tokens":NaN"#).into(),
        chat(",").into(),
        deep.into(),
        invalid_utf8,
        inner_utf8,
        [b"\xef\xbb\xbf", chat("").as_bytes()].concat(),
        [chat("").as_bytes(), b"{}"].concat(),
        b"model=small".to_vec(),
    ];
    for body in bodies {
        let text = String::from_utf8_lossy(&body).into_owned();
        assert_eq!(checked(&rules, &body), Err(vec!["body".to_owned()]), "{text:.90}");
    }
}

#[test]
fn schema_refuses_with_the_pointer_and_without_the_value() {
    let rules = rules("remove", "null");
    // more members, the pointer that is refused
    let table = [
        (r#","max_tokens":0"#, "/max_tokens"),
        (r#","max_tokens":1e-9"#, "/max_tokens"),
        (r#","max_tokens":99999"#, "/max_tokens"),
        (r#","max_tokens":"7""#, "/max_tokens"),
        (r#","stream":1"#, "/stream"),
        (r#","stream":"yes""#, "/stream"),
    ];
    for (more, pointer) in table {
        assert_eq!(checked(&rules, chat(more).as_bytes()), Err(vec![pointer.to_owned()]), "{more}");
    }
    for model in [r#"["small"]"#, r#""small,small""#, r#""Small""#, "null", r#""secret-model""#] {
        let problems = rules.check(format!(r#"{{"model":{model},"messages":[]}}"#).as_bytes()).unwrap_err();
        assert!(problems.keys().eq(["/model"]), "{problems:?}");
        assert!(!problems["/model"].contains("secret"), "{problems:?}");
    }
    assert_eq!(checked(&rules, br#"{"model":"small"}"#), Err(vec!["body".to_owned()]));
    // 1.0 and 1e2 are integers in JSON Schema. Rewritten, they are integers for any parser.
    assert_eq!(checked(&rules, chat(r#","max_tokens":1e2"#).as_bytes()), Ok(chat(r#","max_tokens":100"#)));
}

#[test]
fn values_are_set_when_the_rule_applies() {
    let usage = r#"{"/stream_options/include_usage": true, "when": {"/stream": true}, "hide": {"/choices": []}}"#;
    let options = |options: &str| chat(&format!(r#","stream":true,"stream_options":{options}"#));
    // rules, body, forwarded body, whether the extra event is hidden
    let table = [
        (usage, chat(r#","stream":true"#), options(r#"{"include_usage":true}"#), true),
        (usage, options(r#"{"include_usage":false}"#), options(r#"{"include_usage":true}"#), true),
        (usage, options("null"), options(r#"{"include_usage":true}"#), true),
        (usage, options(r#"{"include_usage":true}"#), options(r#"{"include_usage":true}"#), false),
        (usage, chat(r#","stream":false"#), chat(r#","stream":false"#), false),
        (usage, chat(""), chat(""), false),
        (
            r#"[{"/a~1b": null}, {"/messages/0/role": "system"}]"#,
            chat(""),
            chat(r#","a/b":null"#).replace("user", "system"),
            false,
        ),
        (r#"{"/max_tokens": 9, "when": {"/max_tokens": null}}"#, chat(""), chat(r#","max_tokens":9"#), false),
        (
            r#"{"/max_tokens": 9, "when": {"/max_tokens": null}}"#,
            chat(r#","max_tokens":7"#),
            chat(r#","max_tokens":7"#),
            false,
        ),
        (r#"{"/messages/7/x": 1}"#, chat(""), r#"{"model":"small","messages":{"7":{"x":1}}}"#.to_owned(), false),
    ];
    for (set, sent, forwarded, hides) in table {
        let checked = rules("refuse", set).check(sent.as_bytes()).unwrap();
        assert_eq!(std::str::from_utf8(checked.as_ref()).unwrap(), forwarded, "{sent}");
        assert_eq!(checked.hidden_events().is_some(), hides, "{sent}");
    }
    let checked = rules("refuse", usage).check(chat(r#","stream":true"#).as_bytes()).unwrap();
    let hidden = checked.hidden_events().unwrap();
    for (event, hides) in [
        (r#"{"choices": [], "usage": {"prompt_tokens": 1}}"#, true),
        (r#"{"choices": [{"delta": {}}]}"#, false),
        (r#"{"usage": {}}"#, false),
        ("[DONE]", false),
        (r#"{"ch\u006fices": [ ], "usage": null}"#, true),
        (r#"{"choices": [{"delta": {"tool_calls": []}}]}"#, false),
        (r#"{"choices": []"#, false),
    ] {
        assert_eq!(hidden.hides(event), hides, "{event}");
    }
}

#[test]
fn numbers_and_the_order_of_members_stay() {
    let body = chat(
        r#","metadata":{"z":0.1,"a":1.7976931348623157e+308,"m":18446744073709551615,"b":-3,"c":2.2250738585072014e-308}"#,
    );
    assert_eq!(checked(&rules("remove", "null"), body.as_bytes()), Ok(body.clone()));
}

#[test]
fn rules_that_are_wrong_are_named() {
    // rules, text in the error
    let table = [
        (r#"{}"#, "request.schema is missing"),
        (r#"{"schema": {"typ": "object"}}"#, "did you mean type?"),
        (r#"{"schema": {"pattern": "("}}"#, "request.schema"),
        (r#"{"schema": {"$ref": "https://example.com"}}"#, "references are not supported"),
        (r#"{"schema": {}, "unknown": "drop"}"#, "request.unknown: must be one of remove, refuse, pass, not drop"),
        (r#"{"schema": {}, "sett": {}}"#, "unknown key request.sett; did you mean set?"),
        (r#"{"schema": {}, "set": {"store": false}}"#, "unknown key request.set.store"),
        (r#"{"schema": {}, "set": {"when": {"/a": 1}}}"#, "must have at least one JSON pointer"),
        (r#"{"schema": {}, "set": [{"/a~": 1}]}"#, "request.set[0]./a~"),
        (r#"{"schema": {}, "set": {"/a": 1, "hide": {"b": 1}}}"#, "a JSON pointer begins with /"),
    ];
    for (request, expected) in table {
        let error = read(request).unwrap_err();
        assert!(error.contains(expected), "{request}: {error}");
    }
}

#[test]
fn an_example_is_a_body_that_is_served() {
    let request = |more: &str| format!(r#"{{"schema": {SCHEMA}, {more}}}"#);
    let example = r#""example": {"model": "small", "messages": [], "max_tokens": 16}"#;
    let rules = read(&request(example)).unwrap();
    assert_eq!(rules.example().unwrap().text(), r#"{"model":"small","messages":[],"max_tokens":16}"#);
    assert!(
        rules
            .schema_text()
            .text()
            .starts_with(r#"{"type":"object","required":["model","messages"],"properties":{"model""#)
    );
    assert_eq!(read(&request(r#""unknown": "refuse""#)).unwrap().example(), None);
    // fields, a part of the message
    let table = [
        (r#""example": {"model": "large", "messages": []}"#, "request.example does not fit the request: /model: "),
        (r#""example": {"model": "small"}"#, "request.example does not fit the request: body: "),
        (r#""example": {"model": "small", "messages": [], "x": 1}"#, "request.example does not fit the request: /x: "),
        (r#""example": "small""#, "request.example does not fit the request: body: "),
        (r#""examples": {}"#, "unknown key request.examples; did you mean example?"),
    ];
    for (more, part) in table {
        let error = read(&request(more)).unwrap_err();
        assert!(error.contains(part), "{more}: {error}");
    }
    assert!(read(&request(r#""unknown": "remove", "example": {"model": "small", "messages": [], "x": 1}"#)).is_ok());
}
