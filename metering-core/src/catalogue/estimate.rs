//! Estimates the cost of a request before it runs, from its body.
//!
//! If a client could make an estimate too low, it could use more than is held. So if two JSON parsers may read a body
//! differently, there is no estimate, and the maximum is held.

use crate::catalogue::pointer::{self, Lookup, Pointer};
use crate::catalogue::units::{Count, ExactCost, UnitPrice};
use crate::money::decimal;

/// How to estimate the units that a request will use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Estimate {
    /// For each unit, the pointers to its limit in the request. The largest of those that are there counts: which one
    /// the upstream obeys is not known.
    pub(super) json: Vec<(Box<str>, Vec<Pointer>)>,
    /// The units whose counts are together at most the length of the request's body in bytes.
    pub(super) bytes: Vec<Box<str>>,
    /// The pointers to a factor of the whole estimate, such as the number of responses. The largest counts; absent
    /// means 1.
    pub(super) times: Vec<Pointer>,
    /// The most of a unit that a request uses if its body has no limit of its own.
    pub(super) limits: Vec<(Box<str>, Count)>,
}

impl Estimate {
    /// The estimated cost of a request with this body; `None` when some unit cannot be estimated.
    pub(super) fn cost(&self, units: &[(Box<str>, UnitPrice)], body: &[u8]) -> Option<ExactCost> {
        let found = FactorValue::read(self, body)?;
        let by_bytes = |unit: &str| self.bytes.iter().any(|by_bytes| **by_bytes == *unit);
        let mut cost = ExactCost::ZERO;
        // Every byte may be of the most expensive unit.
        if let Some(dearest) = units.iter().filter(|(unit, _)| by_bytes(unit)).map(|(_, price)| *price).max() {
            cost = cost.plus(Count::from(u64::try_from(body.len()).ok()?), dearest);
        }
        for (unit, price) in units.iter().filter(|(unit, price)| !price.is_zero() && !by_bytes(unit)) {
            cost = cost.plus(found.count(self, unit)?, *price);
        }
        Some(cost.times(found.factor(&self.times)?))
    }

    /// The tokens of these units that a request with this body is expected to use. A unit that the body does not bound
    /// counts as zero, whatever the model's limit, and so does a factor that cannot be read. Units that the same places
    /// bound are parts of one count.
    pub(super) fn tokens(&self, units: &[&str], body: &[u8]) -> u32 {
        let found = FactorValue::read(self, body);
        let by_bytes = |unit: &str| self.bytes.iter().any(|by_bytes| **by_bytes == *unit);
        let bytes =
            if units.iter().any(|unit| by_bytes(unit)) { u32::try_from(body.len()).unwrap_or(u32::MAX) } else { 0 };
        let mut bounds: Vec<&[Pointer]> = Vec::new();
        for (_, pointers) in self.json.iter().filter(|(unit, _)| units.contains(&&**unit)) {
            if !bounds.contains(&pointers.as_slice()) {
                bounds.push(pointers);
            }
        }
        let counts = bounds.into_iter().filter_map(|bound| found.as_ref()?.largest(bound)?).map(Count::round_up);
        let factor = found.as_ref().and_then(|found| found.factor(&self.times)).map_or(1, Count::round_up);
        counts.fold(bytes, u32::saturating_add).saturating_mul(factor)
    }

    fn pointers(&self) -> Vec<&Pointer> {
        self.json.iter().flat_map(|(_, pointers)| pointers).chain(&self.times).collect()
    }
}

/// The values that the pointers of an estimate found.
struct FactorValue<'e, 'j> {
    values: Vec<(&'e Pointer, Lookup<'j>)>,
}

impl<'e, 'j> FactorValue<'e, 'j> {
    /// `None` when the body must be JSON, and is not.
    fn read(estimate: &'e Estimate, body: &'j [u8]) -> Option<Self> {
        let pointers = estimate.pointers();
        if pointers.is_empty() {
            return Some(Self { values: Vec::new() });
        }
        let lookups = pointer::look_up(std::str::from_utf8(body).ok()?, &pointers).ok()?;
        Some(Self { values: pointers.into_iter().zip(lookups).collect() })
    }

    fn lookup(&self, pointer: &Pointer) -> Lookup<'j> {
        let found = self.values.iter().find(|(known, _)| *known == pointer);
        found.map_or(Lookup::Nothing, |(_, lookup)| *lookup)
    }

    /// The count of a unit; `None` when it is not there, or not a whole number above zero. Numbers in strings do not
    /// count, nor do fractions or zero: some services accept these, others use their default.
    fn count(&self, estimate: &Estimate, unit: &str) -> Option<Count> {
        let pointers = estimate.json.iter().find(|(known, _)| **known == *unit);
        let limit = estimate.limits.iter().find(|(known, _)| **known == *unit).map(|(_, limit)| *limit);
        self.largest(pointers.map_or(&[][..], |(_, pointers)| pointers.as_slice()))?.or(limit)
    }

    /// The largest value, 1 if there is none.
    fn factor(&self, times: &[Pointer]) -> Option<Count> {
        Some(self.largest(times)?.unwrap_or(Count::from(1)))
    }

    /// The largest of the values that are there, if any; `None` when the upstream's reading of one of them is unknown.
    fn largest(&self, pointers: &[Pointer]) -> Option<Option<Count>> {
        let found = pointers.iter().map(|pointer| self.lookup(pointer));
        let mut counts = found.filter(|found| !matches!(found, Lookup::Nothing)).map(number);
        counts.try_fold(None, |most: Option<Count>, count| Some(most.max(Some(count?))))
    }
}

/// A whole number of at least 1, exactly. A fraction is never rounded.
fn number(found: Lookup<'_>) -> Option<Count> {
    let Lookup::Value(value) = found else { return None };
    let whole = decimal::parse_units(value.get(), 1).ok().and_then(|whole| u64::try_from(whole).ok());
    whole.filter(|whole| *whole > 0).map(Count::from)
}
