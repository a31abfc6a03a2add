//! The segment trie behind the catalogue: finds the route of a path without trying every route.

use std::collections::HashMap;

use crate::catalogue::spelling::{fold, reads_like_any};

/// Path templates by segment. A literal segment takes precedence over a parameter. A parameter never matches a value
/// that some server could read as one of the literals in the same position.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trie {
    root: Node,
}

#[derive(Debug, Clone, Default)]
struct Node {
    literals: HashMap<Box<str>, Node>,
    /// The literals as lenient servers read them.
    folded: Vec<Box<str>>,
    param: Option<Box<Node>>,
    /// `(method, route)` of the templates that end here.
    routes: Vec<(Box<str>, usize)>,
}

/// The result of a search.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Route(usize),
    OtherMethods(Vec<String>),
    /// A parameter's value could be read as a literal segment of another route.
    Ambiguous,
    Nothing,
}

impl Trie {
    /// Adds a template; `false` when there already is one of the same shape and method.
    pub(crate) fn insert(&mut self, template: &str, method: &str, route: usize) -> bool {
        let mut node = &mut self.root;
        for segment in template[1..].split('/') {
            node = if param_name(segment).is_some() {
                node.param.get_or_insert_default()
            } else {
                if !node.literals.contains_key(segment) {
                    node.folded.push(fold(segment).into());
                }
                node.literals.entry(segment.into()).or_default()
            };
        }
        if node.routes.iter().any(|(taken, _)| &**taken == method) {
            return false;
        }
        node.routes.push((method.into(), route));
        true
    }

    /// Whether the first segment of some template matches this one, in any spelling.
    pub(crate) fn covers(&self, first: &str) -> bool {
        let Node { literals, folded, param, .. } = &self.root;
        param.is_some() || literals.contains_key(first) || reads_like_any(first, folded)
    }

    /// Finds the route of a path and method.
    pub(crate) fn find<'p>(&self, segments: impl Iterator<Item = &'p str>, method: &str) -> Found {
        let segments: Vec<_> = segments.collect();
        let mut near_misses = NearMisses::default();
        match self.root.find(&segments, method, &mut near_misses) {
            Some(route) => Found::Route(route),
            None if !near_misses.methods.is_empty() => {
                near_misses.methods.sort_unstable();
                near_misses.methods.dedup();
                Found::OtherMethods(near_misses.methods)
            }
            None if near_misses.ambiguous => Found::Ambiguous,
            None => Found::Nothing,
        }
    }
}

/// Near misses of a search.
#[derive(Debug, Default)]
struct NearMisses {
    /// Methods of routes whose path matches, for a 405 response.
    methods: Vec<String>,
    ambiguous: bool,
}

impl Node {
    fn find(&self, segments: &[&str], method: &str, near_misses: &mut NearMisses) -> Option<usize> {
        let Some((segment, rest)) = segments.split_first() else {
            let route = self.routes.iter().find(|(candidate, _)| &**candidate == method);
            if route.is_none() {
                near_misses.methods.extend(self.routes.iter().map(|(candidate, _)| candidate.to_string()));
            }
            return route.map(|(_, route)| *route);
        };
        if let Some(node) = self.literals.get(*segment)
            && let Some(route) = node.find(rest, method, near_misses)
        {
            return Some(route);
        }
        match &self.param {
            Some(_) if reads_like_any(segment, &self.folded) => {
                near_misses.ambiguous = true;
                None
            }
            Some(node) if !segment.is_empty() => node.find(rest, method, near_misses),
            _ => None,
        }
    }
}

/// The name in `{name}`.
pub(crate) fn param_name(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}
