//! A report in the JSON of a body: where its values are, how several are combined, and where failures and texts are.

use crate::catalogue::amount::{Amount, Measures};
use crate::catalogue::json_scanner::Targets;
use crate::catalogue::pointer::Pointer;

/// How several values at one pointer are combined: those of several events, or of the elements that a `*` matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Combine {
    /// The largest. Counters are cumulative, and a later one may be 0.
    #[default]
    Max,
    Last,
    Sum,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JsonReport {
    /// The reported unit, by the number of its place.
    pub(super) measures: Measures<usize>,
    pub(super) places: Vec<Pointer>,
    pub(super) combine: Combine,
    /// How many pointers show whether the upstream failed.
    pub(super) failures: usize,
    /// Whether an event of the type `error` is a failure.
    pub(super) has_error_events: bool,
    /// Units whose count is at most the length of texts; `None` if that is not known of any.
    pub(super) delivered: Option<Vec<Delivered>>,
    /// For each pointer to such a text, which of these units it belongs to.
    pub(super) texts: Vec<usize>,
    /// All pointers: the places, the failures, the texts.
    pub(super) targets: Targets,
}

/// A unit whose count is at most the length of texts in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Delivered {
    pub(super) unit: Box<str>,
    /// The places of its count.
    pub(super) places: Vec<usize>,
}

/// The pointers to the texts of each unit.
pub(super) type Texts = Vec<(Box<str>, Vec<Pointer>)>;

/// The part of a price that describes a report in JSON.
pub(super) struct Declared {
    pub(super) measures: Measures<Pointer>,
    pub(super) combine: Combine,
    /// `None` for the usual ones.
    pub(super) failed: Option<Vec<Pointer>>,
    pub(super) delivered: Option<Texts>,
}

/// Where OpenAI's, Anthropic's and similar services have their errors.
const USUAL_FAILURES: [&str; 2] = ["/error", "/response/error"];

impl JsonReport {
    pub(super) fn new(declared: Declared) -> Self {
        let mut places: Vec<Pointer> = Vec::new();
        let mut number = |pointer: &Pointer| {
            places.iter().position(|known| known == pointer).unwrap_or_else(|| {
                places.push(pointer.clone());
                places.len() - 1
            })
        };
        let measures = declared.measures.map(&mut number);
        let usual = || USUAL_FAILURES.iter().filter_map(|text| Pointer::parse(text).ok()).collect();
        let failed: Vec<Pointer> = declared.failed.unwrap_or_else(usual);
        let mut texts = (Vec::new(), Vec::new());
        let delivered = declared.delivered.map(|units| {
            let units = units.into_iter().enumerate();
            let unit = |(position, (unit, pointers)): (usize, (Box<str>, Vec<Pointer>))| {
                texts.0.extend(pointers.iter().map(|_| position));
                texts.1.extend(pointers);
                Delivered { places: places_of(&measures, &unit), unit }
            };
            units.map(unit).collect()
        });
        let targets = Targets::new(places.iter().chain(&failed).chain(&texts.1));
        Self {
            measures,
            places,
            combine: declared.combine,
            failures: failed.len(),
            has_error_events: !failed.is_empty(),
            delivered,
            texts: texts.0,
            targets,
        }
    }
}

fn places_of(measures: &Measures<usize>, unit: &str) -> Vec<usize> {
    let Measures::Counts(counts) = measures else { return Vec::new() };
    let amount = counts.iter().find(|(name, _)| **name == *unit).map(|(_, amount)| amount);
    amount.map(Amount::places).unwrap_or_default().into_iter().copied().collect()
}
