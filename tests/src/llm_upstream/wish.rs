//! Reads a request as leniently as possible, and decides what to serve.
//!
//! Names match in any case and with or without underscores, the last of two equal names wins, `extra_body`, the query
//! and forms override the body, and where members contradict each other, the more expensive one applies.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use super::cost::{Api, Tokens, tool_calls};

/// The tokens of a response if its prompt does not say `output=N`.
const OUTPUT: u64 = 20;
/// The maximum cost of a response: the limit of the model.
const OUTPUT_MAX: u64 = 16_384;
/// The tokens of an image, regardless of its bytes.
const IMAGE_TOKENS: u64 = 1_000;
/// The tokens of an earlier conversation that a request refers to.
const HISTORY_TOKENS: u64 = 50_000;
/// The tokens of one generated image by quality, in the largest of the usual sizes; other sizes are dearer.
const IMAGE_OUTPUT: [(&str, u64); 3] = [("low", 408), ("medium", 1_584), ("high", 6_208)];
const IMAGE_OUTPUT_MAX: u64 = 50_000;
/// The one model with the catalogue's prices. Others cost a hundred times as much.
const SMALL: &str = "small";
const DEAR_FACTOR: u64 = 100;
/// Members that request a paid tool, another model or other extras, by normal name.
const PAID_MEMBERS: [&str; 6] = ["websearchoptions", "mcpservers", "svg", "prediction", "container", "moderation"];
/// Members that refer to an earlier conversation.
const HISTORY_MEMBERS: [&str; 5] =
    ["previousresponseid", "conversation", "prompttemplate", "cachedcontent", "container"];
/// Members and values for which providers charge double.
const PREMIUM: [(&str, &str); 8] = [
    ("servicetier", "priority"),
    ("servicetier", "fast"),
    ("servicetier", "ultrafast"),
    ("speed", "fast"),
    ("promptcacheretention", "24h"),
    ("inferencegeo", "us"),
    ("promptcacheoptions", ""),
    ("accessprograms", ""),
];
/// Headers that change the work, or its account.
const PREMIUM_HEADERS: [&str; 4] = ["anthropic-beta", "openai-organization", "openai-project", "x-litellm-num-retries"];

/// The work done for a request.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) api: Api,
    pub(super) stream: bool,
    /// Whether a stream has to report its usage.
    pub(super) include_usage: bool,
    /// Whether a Gemini stream is one of events, not a JSON array.
    pub(super) sse: bool,
    pub(super) choices: u64,
    /// Those of one run of the cheapest model, as reported.
    pub(super) tokens: Tokens,
    /// Whether the response has to be JSON.
    pub(super) structured: bool,
    /// Whether embeddings are base64.
    pub(super) base64: bool,
    /// The name of a tool to call.
    pub(super) tool: Option<String>,
    /// The words of the prompt with a `=`.
    pub(super) said: BTreeMap<String, String>,
    pub(super) inputs: u64,
    factor: u64,
    extra_atoms: u64,
}

impl Wish {
    /// `None` if the body cannot be read in any way.
    pub(super) fn read(api: Api, target: &str, headers: &HashMap<String, String>, body: &[u8]) -> Option<Self> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let members = members(headers, query, body)?;
        let prompt = Prompt::of(&members);
        let number = |name: &str| prompt.said.get(name).and_then(|text| text.parse::<u64>().ok());
        let prompts = prompts(&members);
        let choices = choices(&members) * prompts;
        let output = output(api, &members, &prompt);
        let reasoning = number("reasoning").unwrap_or(0).min(output);
        let history = HISTORY_MEMBERS.iter().filter(|name| is_set(&members, name)).count();
        let tokens = Tokens {
            input: prompt.tokens + u64::try_from(history).unwrap_or(0) * HISTORY_TOKENS,
            cached: number("cached").unwrap_or(0),
            // Google does not charge for them.
            cache_write: if api == Api::Gemini { 0 } else { number("write").unwrap_or(0) },
            cache_write_1h: if api == Api::Messages { number("write1h").unwrap_or(0) } else { 0 },
            output: output * choices,
            reasoning: reasoning * choices,
        };
        let stream = match api {
            Api::Gemini => path.contains(":stream"),
            _ => members.get("stream").is_some_and(|stream| !matches!(stream, Value::Null | Value::Bool(false))),
        };
        let usage = members.get("streamoptions").and_then(|options| options.get("includeusage"));
        Some(Self {
            api,
            stream,
            include_usage: usage == Some(&Value::Bool(true)),
            sse: query.contains("alt=sse"),
            choices,
            tokens,
            structured: members.values().any(wants_json),
            base64: members.get("encodingformat").and_then(Value::as_str) == Some("base64"),
            tool: prompt.said.get("tool").cloned(),
            inputs: prompts,
            factor: models(api, path, &members) * repeats(&members, headers) * premium(&members, headers),
            extra_atoms: tool_calls(paid_tools(&members)),
            said: prompt.said,
        })
    }

    /// The prompt's value for this, if it is a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.said.get(name)?.parse().ok()
    }

    /// Which failure to play.
    pub(super) fn script(&self) -> &str {
        self.said.get("script").map_or("", String::as_str)
    }

    /// Whether the client gets anything for its money. A failure is the upstream's own.
    pub(super) fn delivers(&self) -> bool {
        self.script().is_empty() && !self.said.contains_key("cut")
    }

    pub(super) const fn cost_atoms(&self) -> u64 {
        self.tokens.cost_atoms(self.api) * self.factor + self.extra_atoms
    }
}

/// The members of a request, by normal name.
fn members(headers: &HashMap<String, String>, query: &str, body: &[u8]) -> Option<Map<String, Value>> {
    let kind = headers.get("content-type").map_or("", String::as_str).to_ascii_lowercase();
    let text = if kind.contains("utf-16") { utf_16(body) } else { String::from_utf8_lossy(body).into_owned() };
    let text = text.trim_start_matches('\u{feff}');
    let mut members = if kind.contains("form") { form(text.as_bytes()) } else { first_value(text)? };
    members.extend(form(query.as_bytes()));
    for name in ["extrabody", "extraparams", "litellmparams"] {
        if let Some(Value::Object(more)) = members.remove(name) {
            members.extend(more);
        }
    }
    Some(members)
}

fn utf_16(body: &[u8]) -> String {
    let units: Vec<u16> = body.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    String::from_utf16_lossy(&units)
}

fn form(text: &[u8]) -> Map<String, Value> {
    let pairs = form_urlencoded::parse(text);
    pairs.map(|(name, value)| (normal(&name), Value::String(value.into_owned()))).collect()
}

/// The first JSON value of a text; the rest is ignored.
fn first_value(text: &str) -> Option<Map<String, Value>> {
    match normalised(serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok()?) {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

fn normalised(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut normal_members = Map::new();
            for (name, value) in members {
                // Other services may read either of them: all count.
                let entry = normal_members.entry(normal(&name));
                entry.and_modify(|known| *known = json!([known.take(), value])).or_insert(value);
            }
            Value::Object(normal_members.into_iter().map(|(name, value)| (name, normalised(value))).collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(normalised).collect()),
        other => other,
    }
}

fn normal(name: &str) -> String {
    name.to_lowercase().replace(['_', '-'], "")
}

/// The instructions in the texts of a request.
#[derive(Default)]
struct Prompt {
    tokens: u64,
    said: BTreeMap<String, String>,
}

impl Prompt {
    fn of(members: &Map<String, Value>) -> Self {
        let mut prompt = Self::default();
        for (name, value) in members.iter().filter(|(name, _)| *name != "model") {
            prompt.add(name, value);
        }
        prompt
    }

    /// A word is a token, and so is each number of a list of tokens.
    fn add(&mut self, name: &str, value: &Value) {
        match value {
            Value::Object(members) => {
                let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
                if kind.contains("image") || members.contains_key("inlinedata") {
                    self.tokens += IMAGE_TOKENS;
                }
                members.iter().for_each(|(name, value)| self.add(name, value));
            }
            Value::Array(values) => values.iter().for_each(|value| self.add(name, value)),
            Value::String(text) => {
                for word in text.split_whitespace() {
                    self.tokens += 1;
                    if let Some((name, value)) = word.split_once('=') {
                        self.said.insert(name.to_owned(), value.to_owned());
                    }
                }
            }
            Value::Number(_) if matches!(name, "input" | "prompt") => self.tokens += 1,
            _ => {}
        }
    }
}

/// A number, or a text with one; of several, the largest.
fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Array(values) => values.iter().filter_map(whole).max(),
        value => value.as_u64().or_else(|| value.as_str()?.parse().ok()),
    }
}

fn is_set(members: &Map<String, Value>, name: &str) -> bool {
    members.get(name).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)))
}

/// Finds a number in the request or in Gemini's settings.
fn setting(members: &Map<String, Value>, name: &str) -> Option<u64> {
    let config = members.get("generationconfig").and_then(|config| config.get(name));
    [members.get(name), config].into_iter().flatten().filter_map(whole).max()
}

/// How many responses: for `best_of`, those that are not returned cost as much.
fn choices(members: &Map<String, Value>) -> u64 {
    ["n", "bestof", "candidatecount"].into_iter().filter_map(|name| setting(members, name)).max().unwrap_or(1)
}

/// How many prompts a request has.
fn prompts(members: &Map<String, Value>) -> u64 {
    let list = ["prompt", "input"].into_iter().filter_map(|name| members.get(name)?.as_array()).next();
    let several = list.filter(|list| list.iter().all(|value| value.is_string() || value.is_array()));
    several.map_or(1, |list| u64::try_from(list.len()).unwrap_or(u64::MAX).max(1))
}

/// The output tokens of one response. Of several limits, the largest counts.
fn output(api: Api, members: &Map<String, Value>, prompt: &Prompt) -> u64 {
    match api {
        Api::Embeddings | Api::CountTokens | Api::GeminiCount => return 0,
        Api::Images => {
            let usual = ["auto", "1024x1024", "1536x1024", "1024x1536"];
            let size = members.get("size").and_then(Value::as_str).unwrap_or("auto");
            let quality = members.get("quality").and_then(Value::as_str).unwrap_or("high");
            let tokens = IMAGE_OUTPUT.iter().find(|(name, _)| *name == quality).map_or(6_208, |(_, tokens)| *tokens);
            return if usual.contains(&size) { tokens } else { IMAGE_OUTPUT_MAX };
        }
        _ => {}
    }
    let names = ["maxcompletiontokens", "maxtokens", "maxoutputtokens"];
    let limit = names.into_iter().filter_map(|name| setting(members, name)).max().unwrap_or(OUTPUT_MAX);
    let said = |name: &str| prompt.said.get(name).and_then(|text| text.parse::<u64>().ok());
    let wanted = said("output").unwrap_or(OUTPUT) + said("reasoning").unwrap_or(0);
    wanted.min(limit)
}

/// The sum of the models' price factors. Lists run all of their models, and so do fallbacks.
fn models(api: Api, path: &str, members: &Map<String, Value>) -> u64 {
    let mut names = Vec::new();
    for name in ["model", "models", "fallbacks", "contextwindowfallbacks", "contentpolicyfallbacks"] {
        collect(members.get(name), &mut names);
    }
    let has_model = members.contains_key("model");
    if matches!(api, Api::Gemini | Api::GeminiCount) && !has_model {
        let model = path.rsplit('/').next().and_then(|last| last.split(':').next());
        names.extend(model.map(str::to_owned));
    }
    let factor = |name: &String| if name == SMALL { 1 } else { DEAR_FACTOR };
    names.iter().map(factor).sum::<u64>().max(1)
}

fn collect(value: Option<&Value>, names: &mut Vec<String>) {
    match value {
        Some(Value::String(text)) => names.extend(text.split(',').map(|name| name.trim().to_owned())),
        Some(Value::Array(values)) => values.iter().for_each(|value| collect(Some(value), names)),
        Some(Value::Object(members)) => members.values().for_each(|value| collect(Some(value), names)),
        _ => {}
    }
}

/// How often the model is called: each retry costs as much again.
fn repeats(members: &Map<String, Value>, headers: &HashMap<String, String>) -> u64 {
    let header = headers.get("x-litellm-num-retries").and_then(|text| text.parse().ok());
    let asked = ["numretries", "maxretries"].into_iter().filter_map(|name| setting(members, name)).max();
    1 + header.max(asked).unwrap_or(0)
}

fn premium(members: &Map<String, Value>, headers: &HashMap<String, String>) -> u64 {
    let is_premium = |(name, value): &(&str, &str)| match members.get(*name) {
        Some(Value::String(text)) => value.is_empty() || text == value,
        Some(other) => value.is_empty() && !other.is_null(),
        None => false,
    };
    let by_header = PREMIUM_HEADERS.iter().any(|name| headers.contains_key(*name));
    let pro = members.get("reasoning").and_then(|reasoning| reasoning.get("mode")).is_some();
    1 + u64::from(by_header || pro || PREMIUM.iter().any(is_premium))
}

/// How many paid tools a request has: all but functions.
fn paid_tools(members: &Map<String, Value>) -> u64 {
    let tools = members.get("tools").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let paid = tools.iter().filter(|tool| {
        let kind = tool.get("type").and_then(Value::as_str).unwrap_or("custom");
        let declares = tool.get("functiondeclarations").is_some();
        !matches!(kind, "function" | "custom") || (tool.get("name").or(tool.get("function")).is_none() && !declares)
    });
    let more = PAID_MEMBERS.iter().filter(|name| is_set(members, name));
    u64::try_from(paid.count() + more.count()).unwrap_or(u64::MAX)
}

/// Whether some member requests JSON.
fn wants_json(value: &Value) -> bool {
    match value {
        Value::String(text) => matches!(text.as_str(), "json_schema" | "json_object" | "application/json"),
        Value::Object(members) => {
            ["type", "format", "responsemimetype"].iter().any(|name| members.get(*name).is_some_and(wants_json))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(target: &str, headers: &[(&str, &str)], body: &str) -> Option<u64> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Wish::read(Api::Chat, target, &headers, body.as_bytes()).map(|wish| wish.cost_atoms())
    }

    /// Six words of input, and 20 tokens of output unless the prompt requests more.
    #[test]
    fn whatever_asks_for_more_is_obeyed() {
        const INPUT: u64 = 6 * 7_200;
        const PLAIN: u64 = INPUT + 20 * 72_000;
        let cases = [
            ("", "", PLAIN),
            (r#", "max_tokens": 5"#, "", INPUT + 5 * 72_000),
            (r#", "max_tokens": 5, "max_completion_tokens": 9"#, "", INPUT + 9 * 72_000),
            (r#", "max_tokens": 5, "MAX-TOKENS": 9"#, "", INPUT + 9 * 72_000),
            (r#", "max_tokens": 5, "max\u005ftokens": 9"#, "", INPUT + 9 * 72_000),
            (r#", "max_tokens": 5, "extra_body": {"max_tokens": 9}"#, "", INPUT + 9 * 72_000),
            (r#", "n": 3"#, "", INPUT + 3 * 20 * 72_000),
            (r#", "best_of": 3"#, "", INPUT + 3 * 20 * 72_000),
            (r#", "model": "small,small""#, "", 2 * PLAIN),
            (r#", "model": ["small", "dear"]"#, "", 101 * PLAIN),
            (r#", "num_retries": 2"#, "", 3 * PLAIN),
            ("", "?model=dear", 100 * PLAIN),
        ];
        for (members, query, expected) in cases {
            let body =
                format!(r#"{{"messages": [{{"role": "user", "content": "a b c d e"}}], "model": "small"{members}}}"#);
            assert_eq!(cost(&format!("/v1/chat/completions{query}"), &[], &body), Some(expected), "{members} {query}");
        }
        let body = r#"{"messages": [{"role": "user", "content": "a b c d e"}], "model": "small"} garbage"#;
        assert_eq!(cost("/v1/chat/completions", &[("anthropic-beta", "x")], body), Some(2 * PLAIN));
        let form =
            cost("/x", &[("content-type", "application/x-www-form-urlencoded")], "model=dear&prompt=a b c d e f");
        assert_eq!(form, Some(100 * PLAIN));
        assert_eq!(cost("/v1/chat/completions", &[], "no"), None);
    }
}
