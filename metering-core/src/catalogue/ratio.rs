//! The ratio of two prices, if it is the same for every request.

use crate::catalogue::price::Pricing;
use crate::catalogue::usage_price::UsagePrice;
use crate::money::credits::Credits;

/// A ratio of prices, in lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    new: u128,
    /// Above zero.
    old: u128,
}

impl Ratio {
    /// The ratio of the prices of each request under `new` and under `old`; `None` when it differs between requests or
    /// is not known.
    ///
    /// Prices by usage are rounded up per request, so for them the ratio holds to within an atom per request.
    #[must_use]
    pub fn between(old: &Pricing, new: &Pricing) -> Option<Self> {
        if old == new {
            return (*old != Pricing::Unknown).then_some(Self { new: 1, old: 1 });
        }
        match (old, new) {
            (
                Pricing::PerLookback { weight: old, param: old_param, tiers: old_tiers },
                Pricing::PerLookback { weight: new, param: new_param, tiers: new_tiers },
            ) if old_param == new_param && old_tiers.bounds().eq(new_tiers.bounds()) => {
                let old = old_tiers.multipliers().map(|multiplier| old.price(multiplier).map(atoms));
                let new = new_tiers.multipliers().map(|multiplier| new.price(multiplier).map(atoms));
                let pairs = old.zip(new).map(|(old, new)| old.and_then(|old| Ok((old, new?))));
                Self::common(pairs.collect::<Result<Vec<_>, _>>().ok()?)
            }
            (Pricing::ByUsage(old), Pricing::ByUsage(new)) => Self::by_usage(old, new),
            _ => Self::common([(atoms(fixed_price(old)?), atoms(fixed_price(new)?))]),
        }
    }

    fn by_usage(old: &UsagePrice, new: &UsagePrice) -> Option<Self> {
        match (&old.models, &new.models) {
            (None, None) => Self::common(amounts(old, new)?),
            (Some(old), Some(new)) if old.place == new.place && old.prices.len() == new.prices.len() => {
                let pairs = old.prices.iter().map(|(name, old)| {
                    let (_, new) = new.prices.iter().find(|(known, _)| known == name)?;
                    amounts(old, new)
                });
                Self::common(pairs.collect::<Option<Vec<_>>>()?.into_iter().flatten())
            }
            _ => None,
        }
    }

    /// The ratio of all `(old, new)`, if they have the same.
    fn common(pairs: impl IntoIterator<Item = (u128, u128)>) -> Option<Self> {
        let mut common = None;
        for (old, new) in pairs.into_iter().filter(|pair| *pair != (0, 0)) {
            if old == 0 {
                return None;
            }
            let divisor = greatest_common_divisor(old, new);
            let ratio = Self { new: new / divisor, old: old / divisor };
            if common.is_some_and(|common| common != ratio) {
                return None;
            }
            common = Some(ratio);
        }
        common
    }

    /// An amount at the new prices, if it was `amount` at the old ones; `None` when that is not a whole number of
    /// atoms, or out of range. `amount` must not be negative.
    #[must_use]
    pub fn applied_to(self, amount: Credits) -> Option<Credits> {
        let product = atoms(amount).checked_mul(self.new)?;
        if product % self.old != 0 {
            return None;
        }
        i64::try_from(product / self.old).ok().map(Credits::from_atoms)
    }

    /// The same, rounded up to an atom.
    #[must_use]
    pub fn rounded_up(self, amount: Credits) -> Option<Credits> {
        let product = atoms(amount).checked_mul(self.new)?;
        i64::try_from(product.div_ceil(self.old)).ok().map(Credits::from_atoms)
    }
}

/// The amounts of two prices by usage that differ in nothing else, as `(old, new)`.
fn amounts(old: &UsagePrice, new: &UsagePrice) -> Option<Vec<(u128, u128)>> {
    let alike = old.report == new.report
        && old.missing == new.missing
        && old.over == new.over
        && old.estimate == new.estimate
        && old.units.len() == new.units.len();
    // A report in credits is the upstream's amount, whatever the catalogue.
    if !alike || old.units.is_empty() {
        return None;
    }
    let mut pairs = vec![(atoms(old.max), atoms(new.max)), (atoms(old.min), atoms(new.min))];
    for (unit, price) in &old.units {
        let (_, new) = new.units.iter().find(|(known, _)| known == unit)?;
        pairs.push((price.attocredits(), new.attocredits()));
    }
    let names = |price: &UsagePrice| price.upstreams().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
    if names(old) != names(new) {
        return None;
    }
    for ((_, old), (_, new)) in old.upstreams().zip(new.upstreams()) {
        pairs.extend(amounts(old, new)?);
    }
    Some(pairs)
}

/// The price of a request, if it is the same for all.
#[must_use]
pub fn fixed_price(pricing: &Pricing) -> Option<Credits> {
    match pricing {
        Pricing::PerRequest(price) | Pricing::PerConnection(price) => Some(*price),
        Pricing::PerLookback { .. } | Pricing::ByVolume(_) | Pricing::ByUsage(_) | Pricing::Unknown => None,
    }
}

/// Prices are zero or more.
fn atoms(price: Credits) -> u128 {
    u128::from(price.atoms().max(0).unsigned_abs())
}

fn greatest_common_divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogue;

    fn pricing(fields: &str) -> Pricing {
        let params = r#""params": [{"name": "s", "in": "query", "type": "integer", "required": true}]"#;
        let route = format!(r#"{{"path": "/x", "method": "GET", "metered": true, {params}, {fields}}}"#);
        let text = format!(r#"{{"market": "M", "version": 1, "endpoints": [{route}]}}"#);
        Catalogue::from_json(&text).unwrap().routes()[0].pricing.clone()
    }

    fn lookback(weight: &str, seconds: u32, multipliers: [&str; 2]) -> Pricing {
        let [first, overflow] = multipliers;
        pricing(&format!(
            r#""credit_weight": {weight}, "billing_modifier": {{"type": "lookback_multiplier", "param": "s",
               "tiers": [{{"max_seconds": {seconds}, "multiplier": {first}}}], "overflow_multiplier": {overflow}}}"#
        ))
    }

    fn by_usage(max: &str, units: [&str; 2], more: &str) -> Pricing {
        let [input, output] = units;
        pricing(&format!(
            r#""price": {{"max": "{max}", "units": {{"input": "{input}", "output": "{output}"}}, {more}
               "report": {{"json": {{"input": "/i", "output": "/o"}}}}}}"#
        ))
    }

    #[test]
    fn ratio_is_known_only_if_it_is_the_same_for_every_request() {
        let usage = by_usage("1", ["0.1", "0.3"], "");
        // old, new, the ratio
        let table = [
            (pricing(r#""price": "0.01""#), pricing(r#""price": "0.03""#), Some((3, 1))),
            (pricing(r#""price": "0.01""#), pricing(r#""price": "0""#), Some((0, 1))),
            (pricing(r#""price": "0""#), pricing(r#""price": "1""#), None),
            (lookback("4", 600, ["1", "2.5"]), lookback("6", 600, ["1", "2.5"]), Some((3, 2))),
            (lookback("4", 600, ["1", "2"]), lookback("4", 600, ["3", "6"]), Some((3, 1))),
            (lookback("4", 600, ["0", "2"]), lookback("2", 600, ["0", "2"]), Some((1, 2))),
            (lookback("4", 600, ["1", "2"]), lookback("4", 600, ["1", "3"]), None),
            (lookback("4", 600, ["1", "2"]), lookback("8", 601, ["1", "2"]), None),
            (lookback("4", 600, ["1", "2"]), pricing(r#""price": "0.01""#), None),
            (usage.clone(), usage.clone(), Some((1, 1))),
            (usage.clone(), by_usage("2", ["0.2", "0.6"], ""), Some((2, 1))),
            (usage.clone(), by_usage("1", ["0.2", "0.6"], ""), None),
            (usage.clone(), by_usage("2", ["0.2", "0.5"], ""), None),
            (usage, by_usage("2", ["0.2", "0.6"], r#""over": "debt","#), None),
            (Pricing::Unknown, Pricing::Unknown, None),
        ];
        for (old, new, expected) in table {
            let ratio = Ratio::between(&old, &new).map(|ratio| (ratio.new, ratio.old));
            assert_eq!(ratio, expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn amounts_are_whole_atoms() {
        let ratio = Ratio { new: 3, old: 2 };
        // atoms, exactly, rounded up
        for (amount, exactly, rounded) in [(4, Some(6), Some(6)), (5, None, Some(8)), (i64::MAX, None, None)] {
            let amount = Credits::from_atoms(amount);
            assert_eq!(ratio.applied_to(amount).map(Credits::atoms), exactly);
            assert_eq!(ratio.rounded_up(amount).map(Credits::atoms), rounded);
        }
    }
}
