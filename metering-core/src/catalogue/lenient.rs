//! Lenient route lookup that rejects nothing: for resolvers that have already served the request, and to suggest the
//! route that a caller probably meant.

use crate::catalogue::Catalogue;

use crate::catalogue::nearest::distance;
use crate::catalogue::price::Pricing;
use crate::catalogue::route::Route;
use crate::catalogue::spelling::{ends_like_any, fold, reads_like};
use crate::catalogue::template::TemplateSegment;
use crate::catalogue::trie::TrieMatch;
use crate::money::credits::Credits;

/// A path prefix that has only streams below it, and the price of the most expensive of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StreamPrefix {
    segments: Vec<String>,
    price: Credits,
}

impl StreamPrefix {
    /// The shortest prefixes that have only streams below them: `/mpp/stream` for `/mpp/stream/allTrades`.
    pub(super) fn of(routes: &[Route]) -> Vec<Self> {
        let mut prefixes: Vec<Self> = Vec::new();
        for (route, price) in routes.iter().filter_map(|route| Some((route, session_price(route)?))) {
            let literals: Vec<&str> = segments(route).map_while(literal).collect();
            let leads_elsewhere = |length: usize| {
                let mut others = routes.iter().filter(|other| session_price(other).is_none());
                others
                    .any(|other| segments(other).take(length).map_while(literal).eq(literals[..length].iter().copied()))
            };
            let Some(length) = (1..=literals.len()).find(|length| !leads_elsewhere(*length)) else { continue };
            let segments: Vec<String> = literals[..length].iter().map(|segment| fold(segment)).collect();
            match prefixes.iter_mut().find(|prefix| prefix.segments == segments) {
                Some(known) => known.price = known.price.max(price),
                None => prefixes.push(Self { segments, price }),
            }
        }
        prefixes
    }

    fn covers(&self, path: &[&str]) -> bool {
        path.len() >= self.segments.len()
            && self.segments.iter().zip(path).all(|(folded, segment)| reads_like(segment, folded))
    }
}

fn session_price(route: &Route) -> Option<Credits> {
    match route.pricing {
        Pricing::PerConnection(price) => Some(price),
        Pricing::PerRequest(_)
        | Pricing::PerLookback { .. }
        | Pricing::ByVolume(_)
        | Pricing::ByUsage(_)
        | Pricing::Unknown => None,
    }
}

fn segments(route: &Route) -> impl Iterator<Item = TemplateSegment<'_>> {
    route.segments()
}

const fn literal(segment: TemplateSegment<'_>) -> Option<&str> {
    match segment {
        TemplateSegment::Literal(text) => Some(text),
        TemplateSegment::Param { .. } => None,
    }
}

/// Whether a lenient server could read the segment as this piece of a template.
fn reads_like_piece(piece: TemplateSegment<'_>, segment: &str) -> bool {
    match piece {
        TemplateSegment::Literal(text) => reads_like(segment, &fold(text)),
        TemplateSegment::Param { verb: Some(verb), .. } => ends_like_any(segment, &[fold(verb)]),
        TemplateSegment::Param { verb: None, .. } => true,
    }
}

/// How many steps the segment is from this piece; `None` when it is something else.
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
        let exact = match self.trie.find(path.iter().copied(), "GET") {
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
        if let TrieMatch::Route(index) = self.trie.find(path.iter().copied(), method) {
            return Some(&self.routes[index]);
        }
        let fits = |route: &&Route| {
            let mut pieces = segments(route).zip(path);
            segments(route).count() == path.len() && pieces.all(|(piece, segment)| reads_like_piece(piece, segment))
        };
        let dearness = |route: &&Route| (&*route.method == method, literal_count(route), route.price(0));
        self.routes.iter().filter(fits).max_by_key(dearness)
    }

    fn has_route(&self, method: &str, path: &[&str]) -> bool {
        matches!(self.trie.find(path.iter().copied(), method), TrieMatch::Route(_))
    }

    /// The template that a path without a route was probably meant to match.
    pub(crate) fn nearest_template(&self, path: &str) -> Option<&str> {
        let path_segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let steps = |route: &Route| {
            if segments(route).count() != path_segments.len() {
                return None;
            }
            let mut pieces = segments(route).zip(&path_segments);
            pieces.try_fold(0, |sum, (piece, segment)| Some(sum + distance_to(piece, segment)?))
        };
        let near = self.routes.iter().filter_map(|route| Some((route, steps(route)?)));
        let nearest = near.min_by_key(|(route, steps)| (*steps, usize::MAX - literal_count(route)));
        nearest.filter(|(route, _)| literal_count(route) > 0).map(|(route, _)| &*route.template)
    }
}

fn literal_count(route: &Route) -> usize {
    segments(route).filter(|piece| !matches!(piece, TemplateSegment::Param { verb: None, .. })).count()
}
