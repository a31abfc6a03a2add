//! Members of a body that are not in the route's schema.
//!
//! A member is known if the schema describes it: JSON Schema's annotations of `properties`, `patternProperties` and
//! `additionalProperties`, through all combinations of schemas, for those that fit the body. An object none of whose
//! members the schema names is free-form, and passes unchanged.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jsonschema::Evaluation;
use serde_json::Value;

use super::document::Document;
use crate::catalogue::pointer::is_same_name;

/// So several problems of one body are reported.
pub(super) const PROBLEMS_MAX: usize = 8;

/// How members that are not in the schema are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Unknown {
    /// The request is refused.
    #[default]
    Refuse,
    /// They are not forwarded.
    Remove,
    /// They are forwarded.
    Pass,
}

/// The members of a valid body that its schema declares.
pub(super) struct KnownMembers<'r> {
    /// By the pointer to their object. Objects that are free-form are missing.
    by_object: HashMap<String, BTreeSet<String>>,
    /// The names that the schema has anywhere.
    names: &'r [String],
}

impl<'r> KnownMembers<'r> {
    pub(super) fn of(evaluation: &Evaluation, names: &'r [String]) -> Self {
        let mut by_object = HashMap::<_, BTreeSet<_>>::new();
        for entry in evaluation.iter_annotations() {
            let keyword = entry.schema_location.rsplit('/').next().unwrap_or_default();
            if !matches!(keyword, "properties" | "patternProperties" | "additionalProperties") {
                continue;
            }
            let known = entry.annotations.value().as_array().map(Vec::as_slice).unwrap_or_default();
            let known = known.iter().filter_map(Value::as_str).map(str::to_owned);
            by_object.entry(entry.instance_location.to_string()).or_default().extend(known);
        }
        Self { by_object, names }
    }

    /// Removes unknown members from the body, refuses them, or passes them on.
    pub(super) fn apply(&self, unknown: Unknown, document: &mut Document) -> Result<(), BTreeMap<String, String>> {
        let mut walk = Walk { unknown, known: self, problems: BTreeMap::new() };
        walk.visit(document, "");
        if walk.problems.is_empty() { Ok(()) } else { Err(walk.problems) }
    }
}

/// Visits all objects of a document that some schema names members of.
struct Walk<'k> {
    unknown: Unknown,
    known: &'k KnownMembers<'k>,
    problems: BTreeMap<String, String>,
}

impl Walk<'_> {
    fn visit(&mut self, document: &mut Document, pointer: &str) {
        match document {
            Document::Object(members) => {
                if let Some(known) = self.known.by_object.get(pointer) {
                    members.retain(|(name, _)| known.contains(name) || self.keeps(name, pointer));
                }
                for (name, member) in members {
                    self.visit(member, &below(pointer, name));
                }
            }
            Document::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.visit(item, &format!("{pointer}/{index}"));
                }
            }
            Document::Null | Document::Bool(_) | Document::Number(_) | Document::Text(_) => {}
        }
    }

    /// Whether an unknown member is forwarded. Records a problem if the request is refused for it.
    fn keeps(&mut self, name: &str, pointer: &str) -> bool {
        let problem = match self.unknown {
            Unknown::Remove => return false,
            Unknown::Refuse => "is not a field of this request; remove it".to_owned(),
            // Some parsers would confuse it with the other.
            Unknown::Pass => match self.known.names.iter().find(|known| *known != name && is_same_name(name, known)) {
                Some(known) => format!("must be spelled {known}"),
                None => return true,
            },
        };
        if self.problems.len() < PROBLEMS_MAX {
            let name: String = name.chars().take(64).collect();
            self.problems.insert(below(pointer, &name), problem);
        }
        true
    }
}

/// The pointer to a member (RFC 6901, section 3).
fn below(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
