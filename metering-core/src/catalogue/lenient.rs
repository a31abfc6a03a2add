//! Lenient route lookup that rejects nothing: for resolvers that have already served the request, and to suggest the
//! route that a caller probably meant.

use crate::catalogue::Catalogue;
use crate::catalogue::nearest::distance;
use crate::catalogue::route::Route;
use crate::catalogue::spelling::{ends_like_any, fold, reads_like};
use crate::catalogue::stream_prefix::session_price;
use crate::catalogue::template::TemplateSegment;
use crate::catalogue::trie::TrieMatch;
use crate::money::credits::Credits;

/// Whether a lenient server could read the segment as this piece of a template.
fn reads_like_piece(piece: TemplateSegment<'_>, segment: &str) -> bool {
    match piece {
        TemplateSegment::Literal(text) => reads_like(segment, &fold(text)),
        TemplateSegment::Param { verb: Some(verb), .. } => ends_like_any(segment, &[fold(verb)]),
        TemplateSegment::Param { verb: None, .. } => true,
    }
}

/// The number of steps from this piece to the segment; `None` for anything else.
fn distance_to(piece: TemplateSegment<'_>, segment: &str) -> Option<usize> {
    match piece {
        TemplateSegment::Literal(text) => distance(segment, text),
        TemplateSegment::Param { verb: Some(verb), .. } => distance(segment.rsplit_once(':')?.1, verb),
        TemplateSegment::Param { verb: None, .. } => Some(0),
    }
}

impl Catalogue {
    /// The price of a connection to a stream at this path: the stream's own price, or for a path without a route the
    /// price of its stream prefix.
    pub(crate) fn session_price(&self, path: &[&str]) -> Option<Credits> {
        let exact = match self.trie.find(&path.join("/"), "GET") {
            TrieMatch::Route(index) => session_price(&self.routes[index]),
            _ => None,
        };
        let prefix = || self.stream_prefixes.iter().find(|prefix| prefix.covers(path)).map(|prefix| prefix.price);
        exact.or_else(prefix)
    }

    /// The route of a path for a server that is not strict about spelling. `HEAD` counts as `GET`, and a method that
    /// the path does not have counts as the most expensive one it has.
    pub(crate) fn find_leniently(&self, method: &str, path: &[&str]) -> Option<&Route> {
        let method = if method == "HEAD" && !self.has_route("HEAD", path) { "GET" } else { method };
        if let TrieMatch::Route(index) = self.trie.find(&path.join("/"), method) {
            return Some(&self.routes[index]);
        }
        let fits = |route: &&Route| {
            let mut pieces = route.segments().zip(path);
            route.segments().count() == path.len() && pieces.all(|(piece, segment)| reads_like_piece(piece, segment))
        };
        let dearness = |route: &&Route| (&*route.method == method, literal_count(route), route.price(0));
        self.routes.iter().filter(fits).max_by_key(dearness)
    }

    fn has_route(&self, method: &str, path: &[&str]) -> bool {
        matches!(self.trie.find(&path.join("/"), method), TrieMatch::Route(_))
    }

    /// The template that a path without a route was probably meant to match.
    pub(crate) fn nearest_template(&self, path: &str) -> Option<&str> {
        let path_segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let steps = |route: &Route| {
            if route.segments().count() != path_segments.len() {
                return None;
            }
            let mut pieces = route.segments().zip(&path_segments);
            pieces.try_fold(0, |sum, (piece, segment)| Some(sum + distance_to(piece, segment)?))
        };
        let near = self.routes.iter().filter_map(|route| Some((route, steps(route)?)));
        let nearest = near.min_by_key(|(route, steps)| (*steps, usize::MAX - literal_count(route)));
        nearest.filter(|(route, _)| literal_count(route) > 0).map(|(route, _)| &*route.template)
    }
}

fn literal_count(route: &Route) -> usize {
    route.segments().filter(|piece| !matches!(piece, TemplateSegment::Param { verb: None, .. })).count()
}
