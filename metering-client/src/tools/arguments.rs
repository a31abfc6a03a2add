//! A tool's arguments, read into the target of a request.
//!
//! They are held to the route's declarations by the rules that the gateway goes by, before anything is sent: what
//! does not fit is told by name and costs nothing. A path parameter is percent-encoded, and what cannot be part of one
//! segment is refused; in the end the catalogue is asked, so that a value which is the name of another route's
//! segment does not call, and pay for, that route.

use std::collections::BTreeMap;

use metering_core::wire::{ErrorBody, ErrorCode};
use metering_core::{Catalogue, Param, ParamPlace, ParamType, RequestPath, Route, RouteRefusal};
use rmcp::model::JsonObject;
use serde_json::Value;

use super::schema::{EVENTS_DEFAULT, EVENTS_MOST, MAX_EVENTS, is_required, takes_max_events};

/// The longest argument, in bytes. Servers are known to take request lines of 8,000.
const VALUE_BYTES_MAX: usize = 2_000;
/// How many problems are told at once.
const PROBLEMS_MAX: usize = 20;
/// Up to here, every integer is a double, so that `19000000.0` can only mean one.
const EXACT_DOUBLE_MAX: u64 = 1 << 53;

/// What a call asks of its route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    /// The path and query of the request.
    pub(super) target: String,
    /// After how many events to stop.
    pub(super) max_events: usize,
}

/// Reads the arguments of a call.
///
/// # Errors
/// When they do not fit; says what to do.
pub(super) fn read(catalogue: &Catalogue, route: &Route, arguments: &JsonObject) -> Result<Asked, Box<ErrorBody>> {
    let mut reading = Reading { route, values: BTreeMap::new(), max_events: EVENTS_DEFAULT, problems: BTreeMap::new() };
    for (name, value) in arguments {
        reading.argument(name, value);
    }
    for param in route.params.iter().filter(|param| is_required(param)) {
        if !reading.values.contains_key(&*param.name) {
            reading.refuse(&param.name, "is required");
        }
    }
    if reading.problems.is_empty()
        && let Some(target) = reading.target(catalogue)
    {
        return Ok(Asked { target, max_events: reading.max_events });
    }
    Err(refusal(reading.problems))
}

/// Refuses all arguments of a tool that has none.
///
/// # Errors
/// When there are some.
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

/// Names come from the caller: what is echoed is kept short.
fn excerpt(name: &str) -> String {
    const MAX_CHARS: usize = 64;
    name.chars().take(MAX_CHARS).collect()
}

/// Arguments while they are read.
struct Reading<'c> {
    route: &'c Route,
    values: BTreeMap<&'c str, String>,
    max_events: usize,
    problems: BTreeMap<String, String>,
}

impl<'c> Reading<'c> {
    fn argument(&mut self, name: &str, value: &Value) {
        let route = self.route;
        let param = route.params.iter().find(|param| param.name == name);
        match param {
            // Agents write `null` for what they leave out.
            Some(param) if value.is_null() && !is_required(param) => {}
            Some(param) => self.value(param, value),
            None if name == MAX_EVENTS && takes_max_events(route) => self.read_max_events(value),
            None => {
                let known = self.known();
                self.refuse(name, &format!("this tool has no such argument; {known}"));
            }
        }
    }

    fn value(&mut self, param: &'c Param, value: &Value) {
        let text = text_of(param.kind, value);
        match text.as_deref().map_or(param.kind.problem_with(""), |text| param.kind.problem_with(text)) {
            Some(problem) => self.refuse(&param.name, problem),
            None => {
                let text = text.unwrap_or_default();
                match segment_problem(param, &text) {
                    Some(problem) => self.refuse(&param.name, problem),
                    None => drop(self.values.insert(&param.name, text)),
                }
            }
        }
    }

    fn read_max_events(&mut self, value: &Value) {
        if value.is_null() {
            return;
        }
        let number = text_of(ParamType::Integer, value).and_then(|text| text.parse().ok());
        match number.filter(|number| (1..=EVENTS_MOST).contains(number)) {
            Some(number) => self.max_events = number,
            None => self.refuse(MAX_EVENTS, &format!("must be an integer from 1 to {EVENTS_MOST}")),
        }
    }

    /// The target, if the route is what the gateway will read in it.
    fn target(&mut self, catalogue: &Catalogue) -> Option<String> {
        let route = self.route;
        let path = self.path();
        let query = self.query();
        let Ok(parsed) = RequestPath::parse(&path) else {
            self.refuse("path", "the arguments make no acceptable path");
            return None;
        };
        // By the route's place in the catalogue: which one is meant is all there is to know.
        if !catalogue.find(&route.method, &parsed).is_ok_and(|found| std::ptr::eq(found, route)) {
            let why = "an argument is a name that makes this the path of another route; use that route's tool";
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
            Err(RouteRefusal::UnknownRoute | RouteRefusal::MethodNotAllowed(_) | RouteRefusal::AmbiguousPath) => {
                self.refuse("path", "the arguments do not make a path of this route");
                None
            }
        }
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for segment in self.route.template[1..].split('/') {
            path.push('/');
            match segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                Some(name) => push_encoded(self.values.get(name).map_or("", String::as_str), &mut path),
                None => path.push_str(segment),
            }
        }
        path
    }

    fn query(&self) -> Option<String> {
        let mut query = String::new();
        for param in self.route.params.iter().filter(|param| param.place == ParamPlace::Query) {
            let Some(value) = self.values.get(&*param.name) else { continue };
            query.push_str(if query.is_empty() { "" } else { "&" });
            push_encoded(&param.name, &mut query);
            query.push('=');
            push_encoded(value, &mut query);
        }
        (!query.is_empty()).then_some(query)
    }

    fn known(&self) -> String {
        let own = takes_max_events(self.route).then_some(MAX_EVENTS);
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

/// A JSON value as the text of a parameter, where there is no doubt about it.
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

/// What keeps a value out of a path or query, if anything.
fn segment_problem(param: &Param, value: &str) -> Option<&'static str> {
    if value.len() > VALUE_BYTES_MAX {
        return Some("is longer than 2000 bytes");
    }
    let in_path = param.place == ParamPlace::Path;
    (in_path && (value.contains(['/', '\\']) || matches!(value, "." | "..")))
        .then_some("must be one segment of a path: without / and \\, and neither . nor ..")
}

/// RFC 3986, section 2.3: all but unreserved characters are encoded, so that nothing in a value is read as syntax.
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
