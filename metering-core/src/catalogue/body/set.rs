//! Members that are set in a body before it is forwarded, and the response events that are hidden because of them.

use serde_json::Value;

use super::document::Document;
use crate::catalogue::pointer::Pointer;

/// Values to set, when the body has some values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SetRule {
    /// Each pointer and its value. None points to the whole body.
    pub(super) values: Vec<(Pointer, Value)>,
    /// The client's body must have all of these values. A missing member counts as `null`.
    pub(super) when: Vec<(Pointer, Value)>,
    /// Identifies a response event that exists because of this rule, not because the client requested it.
    pub(super) hide: Vec<(Pointer, Value)>,
}

/// Response events that are not passed on to the client: the upstream sends them because of a member that the route set
/// in the request.
///
/// OpenAI's `stream_options.include_usage` adds an event with the usage. A client that did not request it may not
/// expect an event without choices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenEvents {
    /// An event is hidden if it has all values of one of these.
    marks: Vec<Vec<(Box<str>, Value)>>,
}

impl SetRule {
    /// Whether the rule applies to the client's body.
    pub(super) fn applies_to(&self, sent: &Value) -> bool {
        self.when.iter().all(|(pointer, value)| sent.pointer(pointer.as_str()).unwrap_or(&Value::Null) == value)
    }

    /// Sets the values. Returns whether that changed anything.
    pub(super) fn apply(&self, document: &mut Document) -> bool {
        let mut changed = false;
        for (pointer, value) in &self.values {
            changed |= set(document, pointer.tokens(), value);
        }
        changed
    }

    pub(super) fn hidden(&self) -> Option<HiddenEvents> {
        let mark: Vec<_> = self.hide.iter().map(|(pointer, value)| (pointer.as_str().into(), value.clone())).collect();
        (!mark.is_empty()).then(|| HiddenEvents { marks: vec![mark] })
    }
}

/// Sets a value below `document`. A value on the way that is not an object or list element becomes an object.
fn set(document: &mut Document, tokens: &[Box<str>], value: &Value) -> bool {
    let Some((token, rest)) = tokens.split_first() else {
        let value = Document::from(value);
        let changed = *document != value;
        *document = value;
        return changed;
    };
    if let Document::List(items) = document
        && let Some(item) = token.parse::<usize>().ok().and_then(|index| items.get_mut(index))
    {
        return set(item, rest, value);
    }
    if !matches!(document, Document::Object(_)) {
        *document = Document::Object(Vec::new());
    }
    let Document::Object(members) = document else { return false };
    if !members.iter().any(|(name, _)| **name == **token) {
        members.push((token.to_string(), Document::Null));
    }
    members.iter_mut().find(|(name, _)| **name == **token).is_some_and(|(_, member)| set(member, rest, value))
}

/// Whether a JSON text may have this value somewhere. Most events of a stream do not, and need not be parsed then.
fn may_have(json: &str, value: &Value) -> bool {
    let has_empty = |open: char, close: char| {
        let is_empty = |rest: &str| rest.trim_start_matches([' ', '\t', '\n', '\r']).starts_with(close);
        json.split(open).skip(1).any(is_empty)
    };
    match value {
        Value::Array(items) if items.is_empty() => has_empty('[', ']'),
        Value::Object(members) if members.is_empty() => has_empty('{', '}'),
        Value::Null => json.contains("null"),
        Value::Bool(true) => json.contains("true"),
        Value::Bool(false) => json.contains("false"),
        _ => true,
    }
}

impl HiddenEvents {
    /// Whether an event with this data, its JSON text, is hidden. Data that is not JSON is not hidden.
    #[must_use]
    pub fn hides(&self, data: &str) -> bool {
        let is_possible = |mark: &Vec<(Box<str>, Value)>| mark.iter().all(|(_, value)| may_have(data, value));
        if !self.marks.iter().any(is_possible) {
            return false;
        }
        let Ok(event) = serde_json::from_str::<Value>(data) else { return false };
        let marked =
            |mark: &Vec<(Box<str>, Value)>| mark.iter().all(|(pointer, value)| event.pointer(pointer) == Some(value));
        self.marks.iter().any(marked)
    }

    pub(super) fn of_both(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(mut one), Some(other)) => {
                one.marks.extend(other.marks);
                Some(one)
            }
            (one, other) => one.or(other),
        }
    }
}
