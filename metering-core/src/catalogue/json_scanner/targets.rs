//! The wanted pointers as a tree of their tokens, so a scanner follows all of them at once.

use super::scanned_value::ScannedValue;
use crate::catalogue::pointer::Pointer;

/// Wanted pointers, numbered in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::catalogue) struct Targets {
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Node {
    edges: Vec<Edge>,
    /// The numbers of the pointers that end here.
    ends: Vec<usize>,
}

/// The way to a node below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) token: Token,
    /// The token as the position of an element, if it is one.
    pub(super) index: Option<u64>,
    pub(super) to: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Name(Box<str>),
    /// `*`: each element of an array, each member of an object.
    Each,
}

impl Targets {
    pub(super) const ROOT: usize = 0;

    pub(in crate::catalogue) fn new<'p>(pointers: impl IntoIterator<Item = &'p Pointer>) -> Self {
        let mut targets = Self { nodes: vec![Node::default()] };
        for (number, pointer) in pointers.into_iter().enumerate() {
            let end = pointer.tokens().iter().fold(Self::ROOT, |node, token| targets.step(node, token));
            targets.nodes[end].ends.push(number);
        }
        targets
    }

    /// The node below `node` with this token, which is added if it is not there.
    fn step(&mut self, node: usize, token: &str) -> usize {
        let token = if token == "*" { Token::Each } else { Token::Name(token.into()) };
        if let Some(edge) = self.nodes[node].edges.iter().find(|edge| edge.token == token) {
            return edge.to;
        }
        let index = match &token {
            Token::Name(name) => name.parse().ok().filter(|index: &u64| index.to_string() == **name),
            Token::Each => None,
        };
        let to = self.nodes.len();
        self.nodes.push(Node::default());
        self.nodes[node].edges.push(Edge { token, index, to });
        to
    }

    pub(super) fn edges(&self, node: usize) -> &[Edge] {
        &self.nodes[node].edges
    }

    /// Passes on the value found at these nodes.
    pub(super) fn at(&self, nodes: &[usize], found: ScannedValue<'_>, take: &mut impl FnMut(usize, ScannedValue<'_>)) {
        for end in nodes.iter().flat_map(|node| &self.nodes[*node].ends) {
            take(*end, found);
        }
    }

    /// Notifies the pointers at or below a node that a name on their path occurred again.
    pub(super) fn below(&self, node: usize, take: &mut impl FnMut(usize, ScannedValue<'_>)) {
        let mut nodes = vec![node];
        while let Some(node) = nodes.pop() {
            self.at(&[node], ScannedValue::RepeatedName, take);
            nodes.extend(self.nodes[node].edges.iter().map(|edge| edge.to));
        }
    }
}
