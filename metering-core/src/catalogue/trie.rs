//! The segment trie behind the catalogue: finds the route of a path without trying every route.

use foldhash::HashMap;

use crate::catalogue::spelling::{ends_like_any, fold, reads_like_any};
use crate::catalogue::template::TemplateSegment;

/// Path templates by segment. A literal segment takes precedence over a parameter with a verb, and that over a
/// parameter alone. A parameter never matches a value that some server could read as one of the literals or verbs in
/// the same position.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trie {
    root: Node,
}

#[derive(Debug, Clone, Default)]
struct Node {
    literals: HashMap<Box<str>, Node>,
    /// The literals as lenient servers read them.
    folded: Vec<Box<str>>,
    /// Parameters with a verb, by verb.
    verbs: HashMap<Box<str>, Node>,
    /// The verbs as lenient servers read them.
    folded_verbs: Vec<Box<str>>,
    param: Option<Box<Node>>,
    /// `(method, route)` of the templates that end here.
    routes: Vec<(Box<str>, usize)>,
}

/// The result of a search.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TrieMatch {
    Route(usize),
    OtherMethods(Vec<String>),
    /// A parameter's value could be read as a literal segment or a verb of another route.
    Ambiguous,
    Nothing,
}

impl Trie {
    /// Adds a template; `false` when there already is one of the same shape and method.
    pub(crate) fn insert(&mut self, template: &str, method: &str, route: usize) -> bool {
        let mut node = &mut self.root;
        for segment in TemplateSegment::of(template) {
            node = match segment {
                TemplateSegment::Param { verb: None, .. } => node.param.get_or_insert_default(),
                TemplateSegment::Param { verb: Some(verb), .. } => {
                    Node::named(&mut node.verbs, &mut node.folded_verbs, verb)
                }
                TemplateSegment::Literal(text) => Node::named(&mut node.literals, &mut node.folded, text),
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
        let Node { literals, folded, verbs, param, .. } = &self.root;
        param.is_some() || !verbs.is_empty() || literals.contains_key(first) || reads_like_any(first, folded)
    }

    /// Finds the route of a path, given without its first slash, and method.
    pub(crate) fn find(&self, path: &str, method: &str) -> TrieMatch {
        let mut near_misses = NearMisses::default();
        match self.root.find(Some(path), method, &mut near_misses) {
            Some(route) => TrieMatch::Route(route),
            None if !near_misses.methods.is_empty() => {
                near_misses.methods.sort_unstable();
                near_misses.methods.dedup();
                TrieMatch::OtherMethods(near_misses.methods)
            }
            None if near_misses.ambiguous => TrieMatch::Ambiguous,
            None => TrieMatch::Nothing,
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
    /// The node of a literal or a verb.
    fn named<'n>(nodes: &'n mut HashMap<Box<str>, Self>, folded: &mut Vec<Box<str>>, name: &str) -> &'n mut Self {
        if !nodes.contains_key(name) {
            folded.push(fold(name).into());
        }
        nodes.entry(name.into()).or_default()
    }

    /// Finds the route for the rest of a path, which is `None` after the last segment.
    fn find(&self, path: Option<&str>, method: &str, near_misses: &mut NearMisses) -> Option<usize> {
        let Some(path) = path else {
            let route = self.routes.iter().find(|(candidate, _)| &**candidate == method);
            if route.is_none() {
                near_misses.methods.extend(self.routes.iter().map(|(candidate, _)| candidate.to_string()));
            }
            return route.map(|(_, route)| *route);
        };
        let (segment, rest) = path.split_once('/').map_or((path, None), |(segment, rest)| (segment, Some(rest)));
        if let Some(node) = self.literals.get(segment)
            && let Some(route) = node.find(rest, method, near_misses)
        {
            return Some(route);
        }
        if segment.is_empty() || (self.param.is_none() && self.verbs.is_empty()) {
            return None;
        }
        let exact = segment.rsplit_once(':').filter(|(value, _)| !value.is_empty());
        let exact = exact.and_then(|(value, verb)| Some((value, self.verbs.get(verb)?)));
        // The rest must not look like a verb: some servers split at a colon other than the last.
        let value = exact.map_or(segment, |(value, _)| value);
        if reads_like_any(segment, &self.folded) || ends_like_any(value, &self.folded_verbs) {
            near_misses.ambiguous = true;
            return None;
        }
        // A segment with a verb is never just a parameter's value, whatever the method.
        let node = exact.map(|(_, node)| node).or(self.param.as_deref());
        node.and_then(|node| node.find(rest, method, near_misses))
    }
}
