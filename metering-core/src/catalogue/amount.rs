//! Where a report has the count of a unit: at one place, at one of several, or as a sum and difference of places.

use crate::catalogue::units::Count;
use crate::money::credits::Credits;
use crate::money::decimal::DecimalError;

/// An amount that is computed from the values at places `P`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Amount<P> {
    At(P),
    /// The first value that is present.
    First(Vec<Amount<P>>),
    /// The largest value that is present.
    Largest(Vec<Amount<P>>),
    /// The sum of the first places minus the others, at least zero. It is present if one of the first ones is.
    Sum {
        plus: Vec<Amount<P>>,
        minus: Vec<Amount<P>>,
    },
}

/// The unit of a reported amount: credits, or counts of units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Measures<T> {
    /// Credits, here.
    Credits(T),
    /// Each unit, and the place of its count.
    Counts(Vec<(Box<str>, Amount<T>)>),
}

impl<T> Measures<T> {
    pub(super) const fn is_in_credits(&self) -> bool {
        matches!(self, Self::Credits(_))
    }

    /// The same measures of other places.
    pub(super) fn map<U>(&self, place: &mut impl FnMut(&T) -> U) -> Measures<U> {
        match self {
            Self::Credits(at) => Measures::Credits(place(at)),
            Self::Counts(units) => {
                Measures::Counts(units.iter().map(|(unit, amount)| (unit.clone(), amount.map(place))).collect())
            }
        }
    }

    /// Parses a value: credits in atoms, a count in billionths.
    pub(super) fn parse(&self, text: &str) -> Result<u128, DecimalError> {
        match self {
            Self::Credits(_) => u128::try_from(reported_credits(text)?.atoms()).map_err(|_| DecimalError::OutOfRange),
            Self::Counts(_) => Ok(text.parse::<Count>()?.billionths()),
        }
    }
}

/// Parses reported credits.
///
/// # Errors
/// When the amount overflows [`Credits`]: it is then unknown and cannot be charged.
pub(super) fn reported_credits(text: &str) -> Result<Credits, DecimalError> {
    let credits = Credits::parse_rounding_up(text)?;
    if credits == Credits::MAX { Err(DecimalError::OutOfRange) } else { Ok(credits) }
}

impl<P> Amount<P> {
    /// All places.
    pub(super) fn places(&self) -> Vec<&P> {
        match self {
            Self::At(place) => vec![place],
            Self::First(all) | Self::Largest(all) => all.iter().flat_map(Self::places).collect(),
            Self::Sum { plus, minus } => plus.iter().chain(minus).flat_map(Self::places).collect(),
        }
    }

    /// The same amount of other places.
    pub(super) fn map<Q>(&self, place: &mut impl FnMut(&P) -> Q) -> Amount<Q> {
        let mut all = |amounts: &[Self]| amounts.iter().map(|amount| amount.map(place)).collect::<Vec<_>>();
        match self {
            Self::First(amounts) => Amount::First(all(amounts)),
            Self::Largest(amounts) => Amount::Largest(all(amounts)),
            Self::Sum { plus, minus } => Amount::Sum { plus: all(plus), minus: all(minus) },
            Self::At(at) => Amount::At(place(at)),
        }
    }

    /// The count; `None` when it is not there.
    ///
    /// # Errors
    /// When a required place cannot be read.
    pub(super) fn count<E>(&self, read: &mut impl FnMut(&P) -> Result<Option<Count>, E>) -> Result<Option<Count>, E> {
        let (plus, minus) = match self {
            Self::At(place) => return read(place),
            Self::First(all) => {
                for amount in all {
                    if let Some(count) = amount.count(read)? {
                        return Ok(Some(count));
                    }
                }
                return Ok(None);
            }
            Self::Largest(all) => {
                let mut largest = None;
                for amount in all {
                    largest = largest.max(amount.count(read)?);
                }
                return Ok(largest);
            }
            Self::Sum { plus, minus } => (plus, minus),
        };
        let mut sum = None;
        for amount in plus {
            if let Some(count) = amount.count(read)? {
                sum = Some(count.plus(sum.unwrap_or_default()));
            }
        }
        let Some(mut sum) = sum else { return Ok(None) };
        for amount in minus {
            sum = sum.minus(amount.count(read)?.unwrap_or_default());
        }
        Ok(Some(sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_is_the_first_the_largest_or_the_sum_of_what_is_there() {
        let at = |name: &'static str| Amount::At(name);
        let sum = |plus: &[&'static str], minus: &[&'static str]| Amount::Sum {
            plus: plus.iter().copied().map(Amount::At).collect(),
            minus: minus.iter().copied().map(Amount::At).collect(),
        };
        // amount, count
        let table = [
            (at("two"), Some(2)),
            (at("absent"), None),
            (Amount::First(vec![at("absent"), at("two"), at("ten")]), Some(2)),
            (Amount::Largest(vec![at("absent"), at("ten"), at("two")]), Some(10)),
            (Amount::Largest(vec![at("absent")]), None),
            (sum(&["two", "ten"], &[]), Some(12)),
            (sum(&["ten"], &["two", "absent"]), Some(8)),
            (sum(&["two"], &["ten"]), Some(0)),
            (sum(&["absent"], &["two"]), None),
            (Amount::First(vec![sum(&["absent"], &["two"]), sum(&["ten"], &["ten"])]), Some(0)),
        ];
        let mut read = |name: &&str| {
            Ok::<_, DecimalError>(match *name {
                "two" => Some(Count::from(2)),
                "ten" => Some(Count::from(10)),
                _ => None,
            })
        };
        for (amount, count) in table {
            assert_eq!(amount.count(&mut read), Ok(count.map(Count::from)), "{amount:?}");
        }
    }
}
