//! The body that a route accepts, and the part of it that is forwarded.
//!
//! The price of a request depends on its body, so the upstream must get exactly the checked body. A body is parsed
//! once, checked, changed by the route's rules, and written again: anything that two JSON parsers may read differently
//! is refused or removed.

mod document;
mod file;
mod set;
mod unknown;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;

use crate::catalogue::json_text::JsonText;
use crate::shown_fields::shown_fields;
use document::Document;
use set::SetRule;
use unknown::{KnownMembers, PROBLEMS_MAX, Unknown};

pub(super) use file::read_rules;
pub use set::HiddenEvents;

/// Longer descriptions of a problem are cut.
const PROBLEM_CHARS: usize = 240;

/// The body that a route accepts: its JSON Schema, how unknown members are handled, and the members set before
/// forwarding.
///
/// ```
/// use metering_core::Catalogue;
///
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/chat", "method": "POST", "metered": true, "request": {
///         "schema": {"type": "object", "required": ["model"], "properties": {
///             "model": {"enum": ["small"]}, "stream": {"type": "boolean"}}},
///         "unknown": "remove",
///         "set": {"/stream_options/include_usage": true, "when": {"/stream": true}}}}]}"#,
/// )?;
/// let rules = catalogue.routes()[0].body.as_ref().ok_or("no rules")?;
///
/// let checked = rules.check(br#"{"model": "small", "stream": true, "extra_body": {"model": "large"}}"#).map_err(|_| "refused")?;
/// assert_eq!(checked.as_ref(), br#"{"model":"small","stream":true,"stream_options":{"include_usage":true}}"#);
///
/// let problems = rules.check(br#"{"model": "large"}"#).unwrap_err();
/// assert_eq!(problems["/model"], r#"value is not one of "small""#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct BodyRules {
    schema: JsonText,
    example: Option<JsonText>,
    validator: Arc<Validator>,
    unknown: Unknown,
    /// The names of all members that the schema names anywhere.
    names: Vec<String>,
    set: Vec<SetRule>,
}

/// A body that was checked and written again. Forward this, as `application/json`, instead of what the client sent.
///
/// [`MeteringLayer`](crate::MeteringLayer) puts it into the extensions of requests to routes that declare their body.
#[derive(Clone, PartialEq, Eq)]
pub struct CheckedBody {
    json: Arc<[u8]>,
    hidden: Option<HiddenEvents>,
}

impl BodyRules {
    /// The JSON Schema (2020-12) of the body.
    #[must_use]
    pub const fn schema(&self) -> &Value {
        self.schema.value()
    }

    /// The schema from the catalogue.
    #[must_use]
    pub const fn schema_text(&self) -> &JsonText {
        &self.schema
    }

    /// An example of a body, which the rules accept.
    #[must_use]
    pub const fn example(&self) -> Option<&JsonText> {
        self.example.as_ref()
    }

    /// Checks the body of a request, and builds the body to forward.
    ///
    /// # Errors
    /// The problems, by JSON pointer (RFC 6901); by `body` if one concerns the whole body. The values of the body are
    /// not in it.
    pub fn check(&self, body: &[u8]) -> Result<CheckedBody, BTreeMap<String, String>> {
        let mut document = Document::parse(body).map_err(|problem| problem_of_body(&problem))?;
        let value = document.to_value();
        let evaluation = self.validator.evaluate(&value);
        if !evaluation.is_valid() {
            return Err(self.problems(&value));
        }
        let known = KnownMembers::of(&evaluation, &self.names);
        known.apply(self.unknown, &mut document)?;
        let mut hidden = None;
        for rule in self.set.iter().filter(|rule| rule.applies_to(&value)) {
            if rule.apply(&mut document) {
                hidden = HiddenEvents::of_both(hidden, rule.hidden());
            }
        }
        let json = document.to_json().map_err(|problem| problem_of_body(&problem))?;
        Ok(CheckedBody { json: json.into(), hidden })
    }

    /// Why the schema refuses a body.
    fn problems(&self, value: &Value) -> BTreeMap<String, String> {
        let problems: BTreeMap<_, _> = self.validator.iter_errors(value).take(PROBLEMS_MAX).map(described).collect();
        if problems.is_empty() { problem_of_body("does not fit the schema") } else { problems }
    }
}

/// A problem of the whole body.
pub(crate) fn problem_of_body(problem: &str) -> BTreeMap<String, String> {
    [("body".to_owned(), problem.to_owned())].into()
}

/// The pointer to a value that the schema refuses, and why. The value itself is left out: it may be secret, or large.
fn described(error: jsonschema::ValidationError<'_>) -> (String, String) {
    let pointer = error.instance_path().to_string();
    let problem: String = error.masked().to_string().chars().take(PROBLEM_CHARS).collect();
    (if pointer.is_empty() { "body".to_owned() } else { pointer }, problem)
}

impl CheckedBody {
    /// The events of the response that are not passed on, because only the route requested them.
    #[must_use]
    pub const fn hidden_events(&self) -> Option<&HiddenEvents> {
        self.hidden.as_ref()
    }
}

impl AsRef<[u8]> for CheckedBody {
    fn as_ref(&self) -> &[u8] {
        &self.json
    }
}

impl fmt::Debug for CheckedBody {
    /// The length only: bodies can contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CheckedBody({} bytes)", self.json.len())
    }
}

impl PartialEq for BodyRules {
    fn eq(&self, other: &Self) -> bool {
        // The rest is derived from the schema.
        (&self.schema, &self.example, self.unknown, &self.set)
            == (&other.schema, &other.example, other.unknown, &other.set)
    }
}

impl Eq for BodyRules {}

shown_fields!(BodyRules: schema, example, unknown, set);

#[cfg(test)]
mod tests;
