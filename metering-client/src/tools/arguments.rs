//! Turns a tool's arguments into the target of a request.
//!
//! Arguments are checked by the gateway's own rules before anything is sent, so a bad one is reported by name and costs
//! nothing. Path parameters are percent-encoded; values that cannot be one path segment are rejected. Finally the
//! catalogue resolves the target, so a value that is also a segment of another route does not call, and pay for, that
//! route.

use std::collections::BTreeMap;

use metering_core::Catalogue;
use metering_core::catalogue::{Param, ParamLocation, ParamType, Route, RouteRefusal, TemplateSegment};
use metering_core::charging::MaxCost;
use metering_core::wire::{ErrorBody, ErrorCode};
use rmcp::model::JsonObject;
use serde_json::Value;

use super::body::BodyArgument;
use super::schema::{EVENTS_DEFAULT, EVENTS_MAX, MAX_COST, MAX_EVENTS, is_required, takes_max_cost, takes_max_events};

/// The longest argument, in bytes. Common servers accept request lines of 8,000 bytes.
const VALUE_BYTES_MAX: usize = 2_000;
/// How many problems one error reports.
const PROBLEMS_MAX: usize = 20;
/// Every integer up to here is exact as a double, so `19000000.0` can only mean one integer.
const EXACT_DOUBLE_MAX: u64 = 1 << 53;

/// The request that a call's arguments describe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolRequest {
    /// The path and query of the request.
    pub(super) target: String,
    /// Its body, as JSON.
    pub(super) body: Option<String>,
    /// Stop after this many events.
    pub(super) max_events: usize,
    /// The most that the call may cost, in credits.
    pub(super) max_cost: Option<String>,
}

/// Reads the arguments of a call.
///
/// # Errors
/// When the arguments do not fit the tool; the error explains what to correct.
pub(super) fn read(
    catalogue: &Catalogue,
    route: &Route,
    arguments: &JsonObject,
) -> Result<ToolRequest, Box<ErrorBody>> {
    let mut reading = Reading {
        route,
        values: BTreeMap::new(),
        body: None,
        max_events: EVENTS_DEFAULT,
        max_cost: None,
        problems: BTreeMap::new(),
    };
    for (name, value) in arguments {
        reading.argument(name, value);
    }
    for param in route.params.iter().filter(|param| is_required(param)) {
        if !reading.values.contains_key(&*param.name) {
            reading.refuse(&param.name, "is required");
        }
    }
    if let Some(argument) = BodyArgument::of(route).filter(|argument| argument.is_required() && reading.body.is_none())
    {
        reading.refuse(argument.name, "is required");
    }
    if reading.problems.is_empty()
        && let Some(target) = reading.target(catalogue)
    {
        let Reading { body, max_events, max_cost, .. } = reading;
        return Ok(ToolRequest { target, body, max_events, max_cost });
    }
    Err(refusal(reading.problems))
}

/// Rejects all arguments of a tool that takes none.
///
/// # Errors
/// When there are any.
pub(super) fn none(arguments: &JsonObject) -> Result<(), Box<ErrorBody>> {
    if arguments.is_empty() {
        return Ok(());
    }
    let problem = "this tool takes no arguments";
    Err(refusal(arguments.keys().take(PROBLEMS_MAX).map(|name| (excerpt(name), problem.to_owned())).collect()))
}

fn refusal(problems: BTreeMap<String, String>) -> Box<ErrorBody> {
    let list: Vec<_> = problems.iter().map(|(name, problem)| format!("{name}: {problem}")).collect();
    let message = format!(
        "The arguments do not fit the tool: {}. Correct them and call again; nothing was charged.",
        list.join("; ")
    );
    Box::new(ErrorBody { fields: Some(problems), ..ErrorBody::new(ErrorCode::InvalidParameter, message) })
}

/// Names come from the caller, so only a short part is echoed.
fn excerpt(name: &str) -> String {
    const MAX_CHARS: usize = 64;
    name.chars().take(MAX_CHARS).collect()
}

/// The arguments read so far.
struct Reading<'c> {
    route: &'c Route,
    /// One value, or the values of a parameter that repeats.
    values: BTreeMap<&'c str, Vec<String>>,
    body: Option<String>,
    max_events: usize,
    max_cost: Option<String>,
    problems: BTreeMap<String, String>,
}

impl<'c> Reading<'c> {
    fn argument(&mut self, name: &str, value: &Value) {
        let route = self.route;
        let param = route.params.iter().find(|param| param.name == name);
        let body = BodyArgument::of(route).filter(|body| body.name == name);
        match (param, body) {
            // Agents send `null` for arguments they leave out.
            (Some(param), _) if value.is_null() && !is_required(param) => {}
            (Some(param), _) => self.value(param, value),
            (None, Some(argument)) => self.read_body(argument, value),
            (None, None) if name == MAX_EVENTS && takes_max_events(route) => self.read_max_events(value),
            (None, None) if name == MAX_COST && takes_max_cost(route) => self.read_max_cost(value),
            (None, None) => {
                let known = self.known();
                self.refuse(name, &format!("this tool has no such argument; {known}"));
            }
        }
    }

    fn value(&mut self, param: &'c Param, value: &Value) {
        let values = match value {
            Value::Array(values) if param.array => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        let mut texts = Vec::with_capacity(values.len());
        for value in values {
            let text = text_of(param.kind, value);
            let problem = param.kind.problem_with(text.as_deref().unwrap_or_default());
            let text = text.unwrap_or_default();
            match problem.or_else(|| segment_problem(param, &text, self.route.encoded_slash)) {
                Some(problem) => return self.refuse(&param.name, problem),
                None => texts.push(text),
            }
        }
        // An empty list is treated like a missing argument.
        if !texts.is_empty() {
            self.values.insert(&param.name, texts);
        }
    }

    fn read_body(&mut self, argument: BodyArgument<'_>, value: &Value) {
        if value.is_null() && !argument.is_required() {
            return;
        }
        match argument.problem_with(value) {
            Some(problem) => self.refuse(argument.name, problem),
            None => self.body = Some(value.to_string()),
        }
    }

    fn read_max_events(&mut self, value: &Value) {
        if value.is_null() {
            return;
        }
        let number = text_of(ParamType::Integer, value).and_then(|text| text.parse().ok());
        match number.filter(|number| (1..=EVENTS_MAX).contains(number)) {
            Some(number) => self.max_events = number,
            None => self.refuse(MAX_EVENTS, &format!("must be an integer from 1 to {EVENTS_MAX}")),
        }
    }

    fn read_max_cost(&mut self, value: &Value) {
        if value.is_null() {
            return;
        }
        let text = text_of(ParamType::Number, value).unwrap_or_default();
        match text.parse::<MaxCost>() {
            Ok(_) => self.max_cost = Some(text),
            Err(error) => self.refuse(MAX_COST, &error.to_string()),
        }
    }

    /// The target, if the gateway resolves it to this route.
    fn target(&mut self, catalogue: &Catalogue) -> Option<String> {
        let route = self.route;
        let path = self.path();
        let query = self.query();
        let Ok(parsed) = catalogue.path(&path) else {
            self.refuse("path", "the arguments do not make a valid path");
            return None;
        };
        // Compare by identity: it must be this very entry of the catalogue.
        if !catalogue.find(&route.method, &parsed).is_ok_and(|found| std::ptr::eq(found, route)) {
            let why = "the arguments make the path of another route; use the tool of that route";
            self.refuse("path", why);
            return None;
        }
        match route.read(&parsed, query.as_deref()) {
            Ok((_, None)) => Some(path),
            Ok((_, Some(query))) => Some(format!("{path}?{query}")),
            Err(RouteRefusal::InvalidParameters(problems)) => {
                self.problems.extend(problems);
                None
            }
            Err(_) => {
                self.refuse("path", "the arguments do not make a path of this route");
                None
            }
        }
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for segment in self.route.segments() {
            path.push('/');
            match segment {
                TemplateSegment::Literal(text) => path.push_str(text),
                TemplateSegment::Param { name, verb } => {
                    let value = self.values.get(name).and_then(|values| values.first());
                    push_encoded(value.map_or("", String::as_str), &mut path);
                    if let Some(verb) = verb {
                        path.push(':');
                        path.push_str(verb);
                    }
                }
            }
        }
        path
    }

    fn query(&self) -> Option<String> {
        let mut query = String::new();
        for param in self.route.params.iter().filter(|param| param.location == ParamLocation::Query) {
            for value in self.values.get(&*param.name).into_iter().flatten() {
                query.push_str(if query.is_empty() { "" } else { "&" });
                push_encoded(&param.name, &mut query);
                query.push('=');
                push_encoded(value, &mut query);
            }
        }
        (!query.is_empty()).then_some(query)
    }

    fn known(&self) -> String {
        let body = BodyArgument::of(self.route).map(|argument| argument.name);
        let max_events = takes_max_events(self.route).then_some(MAX_EVENTS);
        let own = [body, max_events, takes_max_cost(self.route).then_some(MAX_COST)];
        let own = own.into_iter().flatten();
        let names: Vec<_> = self.route.params.iter().map(|param| &*param.name).chain(own).collect();
        if names.is_empty() { "it takes none".to_owned() } else { format!("it takes {}", names.join(", ")) }
    }

    fn refuse(&mut self, name: &str, problem: &str) {
        if self.problems.len() >= PROBLEMS_MAX {
            return;
        }
        self.problems.entry(excerpt(name)).or_insert_with(|| problem.to_owned());
    }
}

/// A JSON value as parameter text, if there is only one way to write it.
fn text_of(kind: ParamType, value: &Value) -> Option<String> {
    match (kind, value) {
        (_, Value::String(text)) => Some(text.clone()),
        (ParamType::Boolean, Value::Bool(flag)) => Some(flag.to_string()),
        (ParamType::Number, Value::Number(number)) => Some(number.to_string()),
        (ParamType::Integer, Value::Number(number)) => {
            let text = number.to_string();
            let Some(whole) = text.strip_suffix(".0") else { return Some(text) };
            let exact = whole.parse::<i64>().is_ok_and(|whole| whole.unsigned_abs() <= EXACT_DOUBLE_MAX);
            exact.then(|| whole.to_owned())
        }
        _ => None,
    }
}

/// Why a value cannot be used in a path or query, if it cannot.
fn segment_problem(param: &Param, value: &str, encoded_slash: bool) -> Option<&'static str> {
    if value.len() > VALUE_BYTES_MAX {
        return Some("must be at most 2000 bytes long");
    }
    let in_path = param.location == ParamLocation::Path;
    let has_separator = value.contains('\\') || (value.contains('/') && !encoded_slash);
    (in_path && (has_separator || matches!(value, "." | "..")))
        .then_some("must be one path segment: no / or \\, and not . or ..")
}

/// RFC 3986, section 2.3: encodes all but unreserved characters, so nothing in a value is read as syntax.
fn push_encoded(value: &str, target: &mut String) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            target.push(char::from(byte));
        } else {
            target.push_str(&format!("%{byte:02X}"));
        }
    }
}

#[cfg(test)]
mod tests;
