//! The segment trie behind the catalogue: finds a path's route in time that does not grow with the catalogue.

use std::collections::HashMap;

use crate::catalogue::param_name;

/// Path templates by segment. A literal segment is preferred to a parameter; where it leads nowhere, the parameter
/// is tried.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trie {
    root: Node,
}

#[derive(Debug, Clone, Default)]
struct Node {
    literals: HashMap<Box<str>, Node>,
    param: Option<Box<Node>>,
    /// `(method, route)` of the templates that end here.
    routes: Vec<(Box<str>, usize)>,
}

/// What a path and method mean.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Route(usize),
    OtherMethods(Vec<String>),
    Nothing,
}

impl Trie {
    /// Adds a template; `false` when one of the same shape and method is there already.
    pub(crate) fn insert(&mut self, template: &str, method: &str, route: usize) -> bool {
        let mut node = &mut self.root;
        for segment in template[1..].split('/') {
            node = if param_name(segment).is_some() {
                node.param.get_or_insert_default()
            } else {
                node.literals.entry(segment.into()).or_default()
            };
        }
        if node.routes.iter().any(|(taken, _)| &**taken == method) {
            return false;
        }
        node.routes.push((method.into(), route));
        true
    }

    /// Whether some template's first segment takes this one.
    pub(crate) fn covers(&self, first: &str) -> bool {
        self.root.param.is_some() || self.root.literals.contains_key(first)
    }

    /// Finds the route of a path and method.
    pub(crate) fn find<'p>(&self, segments: impl Iterator<Item = &'p str>, method: &str) -> Found {
        let segments: Vec<_> = segments.collect();
        let mut methods = Vec::new();
        match self.root.find(&segments, method, &mut methods) {
            Some(route) => Found::Route(route),
            None if methods.is_empty() => Found::Nothing,
            None => {
                methods.sort_unstable();
                methods.dedup();
                Found::OtherMethods(methods)
            }
        }
    }
}

impl Node {
    /// Gathers the methods of matching paths on the way, for the answer 405.
    fn find(&self, segments: &[&str], method: &str, methods: &mut Vec<String>) -> Option<usize> {
        let Some((segment, rest)) = segments.split_first() else {
            let route = self.routes.iter().find(|(candidate, _)| &**candidate == method);
            if route.is_none() {
                methods.extend(self.routes.iter().map(|(candidate, _)| candidate.to_string()));
            }
            return route.map(|(_, route)| *route);
        };
        if let Some(node) = self.literals.get(*segment)
            && let Some(route) = node.find(rest, method, methods)
        {
            return Some(route);
        }
        match &self.param {
            Some(node) if !segment.is_empty() => node.find(rest, method, methods),
            _ => None,
        }
    }
}
