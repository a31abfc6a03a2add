use crate::catalogue::price::Pricing;
use crate::catalogue::route::Route;
use crate::catalogue::spelling::{fold, reads_like};
use crate::catalogue::template::TemplateSegment;
use crate::money::credits::Credits;

/// A path prefix under which all routes are streams, and the price of the most expensive one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StreamPrefix {
    segments: Vec<String>,
    pub(super) price: Credits,
}

impl StreamPrefix {
    /// The shortest prefixes under which all routes are streams: `/mpp/stream` for `/mpp/stream/allTrades`.
    pub(super) fn of(routes: &[Route]) -> Vec<Self> {
        let mut prefixes: Vec<Self> = Vec::new();
        for (route, price) in routes.iter().filter_map(|route| Some((route, session_price(route)?))) {
            let literals: Vec<&str> = route.segments().map_while(literal).collect();
            let leads_elsewhere = |length: usize| {
                let mut others = routes.iter().filter(|other| session_price(other).is_none());
                others.any(|other| {
                    other.segments().take(length).map_while(literal).eq(literals[..length].iter().copied())
                })
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

    pub(super) fn covers(&self, path: &[&str]) -> bool {
        path.len() >= self.segments.len()
            && self.segments.iter().zip(path).all(|(folded, segment)| reads_like(segment, folded))
    }
}

pub(super) fn session_price(route: &Route) -> Option<Credits> {
    match route.pricing {
        Pricing::PerConnection(price) => Some(price),
        Pricing::PerRequest(_)
        | Pricing::PerLookback { .. }
        | Pricing::ByVolume(_)
        | Pricing::ByUsage(_)
        | Pricing::Unknown => None,
    }
}

const fn literal(segment: TemplateSegment<'_>) -> Option<&str> {
    match segment {
        TemplateSegment::Literal(text) => Some(text),
        TemplateSegment::Param { .. } => None,
    }
}
