//! Estimates the cost of a request before it runs, from its body.
//!
//! An estimate that a client can make too low would let it use more than is held. So whatever two JSON parsers may read
//! differently gives no estimate: the maximum is held.

use crate::catalogue::pointer::{self, Lookup, Names, Pointer};
use crate::catalogue::units::{Count, ExactCost, UnitPrice};

/// How to estimate the units that a request will use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Estimate {
    /// For each unit, the pointers to its count in the request. The largest of those that are there counts: which one the
    /// upstream obeys is not known.
    pub(super) json: Vec<(Box<str>, Vec<Pointer>)>,
    /// The unit whose count is at most the length of the request's body in bytes.
    pub(super) bytes: Option<Box<str>>,
    /// The pointer to a factor on all of it, such as the number of responses. Absent means 1.
    pub(super) times: Option<Pointer>,
}

impl Estimate {
    /// The estimated cost of a request with this body; `None` when some unit cannot be estimated.
    pub(super) fn cost(&self, units: &[(Box<str>, UnitPrice)], body: &[u8]) -> Option<ExactCost> {
        let found = Found::read(self, body)?;
        let mut cost = ExactCost::ZERO;
        for (unit, price) in units.iter().filter(|(_, price)| !price.is_zero()) {
            let count = match &self.bytes {
                Some(by_bytes) if by_bytes == unit => Count::from(u64::try_from(body.len()).ok()?),
                _ => found.count(self, unit)?,
            };
            cost = cost.plus(count, *price);
        }
        match &self.times {
            Some(times) => Some(cost.times(found.factor(times)?)),
            None => Some(cost),
        }
    }

    fn pointers(&self) -> Vec<&Pointer> {
        self.json.iter().flat_map(|(_, pointers)| pointers).chain(&self.times).collect()
    }
}

/// What the pointers of an estimate found.
struct Found<'e, 'j> {
    values: Vec<(&'e Pointer, Lookup<'j>)>,
}

impl<'e, 'j> Found<'e, 'j> {
    /// `None` when the body has to be JSON, and is not.
    fn read(estimate: &'e Estimate, body: &'j [u8]) -> Option<Self> {
        let pointers = estimate.pointers();
        if pointers.is_empty() {
            return Some(Self { values: Vec::new() });
        }
        let lookups = pointer::look_up(std::str::from_utf8(body).ok()?, &pointers, Names::AnyCase).ok()?;
        Some(Self { values: pointers.into_iter().zip(lookups).collect() })
    }

    fn lookup(&self, pointer: &Pointer) -> Lookup<'j> {
        let found = self.values.iter().find(|(known, _)| *known == pointer);
        found.map_or(Lookup::Nothing, |(_, lookup)| *lookup)
    }

    /// The count of a unit; `None` when it is not there, or not a number. A string with a number gives none either:
    /// some services accept it, and others use their default.
    fn count(&self, estimate: &Estimate, unit: &str) -> Option<Count> {
        let (_, pointers) = estimate.json.iter().find(|(known, _)| **known == *unit)?;
        let found = pointers.iter().map(|pointer| self.lookup(pointer));
        let mut counts = found.filter(|found| !matches!(found, Lookup::Nothing)).map(number);
        // One that is no number may mean anything to the upstream, and so may a zero.
        counts.try_fold(Count::from(0), |most, count| Some(most.max(count?))).filter(|count| !count.is_zero())
    }

    fn factor(&self, times: &Pointer) -> Option<Count> {
        match self.lookup(times) {
            Lookup::Nothing => Some(Count::from(1)),
            found => number(found).filter(|factor| factor.is_whole() && !factor.is_zero()),
        }
    }
}

fn number(found: Lookup<'_>) -> Option<Count> {
    let Lookup::Value(value) = found else { return None };
    value.get().parse().ok()
}
