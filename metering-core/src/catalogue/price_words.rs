//! The price of a route in plain words. Pages and the API reference show the same words, so they are built once, here.
//!
//! Millionths are hard to read: a price below a thousandth of a credit is quoted per 1,000 or per million, and a price
//! of tokens always per million.

use rust_decimal::Decimal;

use crate::catalogue::price::{Multiplier, Pricing};
use crate::catalogue::route::Route;
use crate::catalogue::units::UnitPrice;
use crate::catalogue::usage_price::UsagePrice;
use crate::catalogue::volume_tiers::{VolumeTier, VolumeTiers};
use crate::money::credits::{Credits, decimal_of_atoms};

/// Significant digits of a price.
const DIGITS: u32 = 4;
/// How many models are named.
const MODELS_SHOWN: usize = 4;
pub(super) const THOUSAND: i64 = 1_000;
pub(super) const MILLION: i64 = 1_000_000;

impl Route {
    /// The price for people, for example `0.01 credits`, `from 0.001 credits`, `1,000 free a month, then 0.001 credits`
    /// or `0.25 credits per million input tokens`. Rounded to four digits.
    ///
    /// ```
    /// use metering_core::Catalogue;
    ///
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [
    ///         {"path": "/search", "method": "GET", "metered": true, "price": "0.01", "unit": "search"},
    ///         {"path": "/price", "method": "GET", "metered": true, "credit_weight": 5}]}"#,
    /// )?;
    /// assert_eq!(catalogue.routes()[0].price_in_words(), "0.01 credits per search");
    /// assert_eq!(catalogue.routes()[1].price_in_words(), "0.6944 credits per 1,000 requests");
    /// # Ok::<(), metering_core::catalogue::CatalogueError>(())
    /// ```
    #[must_use]
    pub fn price_in_words(&self) -> String {
        self.words(None)
    }

    /// The price for people, of `lot` requests if they have a price of their own.
    pub(super) fn words(&self, lot: Option<i64>) -> String {
        let unit = self.unit.as_deref();
        match &self.pricing {
            _ if self.is_free() => "free".to_owned(),
            Pricing::PerRequest(price) => amount_of(lot, *price, unit, "request"),
            Pricing::PerConnection(price) => amount_of(lot, *price, Some(unit.unwrap_or("connection")), "connection"),
            Pricing::PerLookback { .. } => {
                let prices = self.prices();
                let lowest = prices.iter().copied().min().unwrap_or_default();
                let from = if prices.iter().all(|price| *price == lowest) { "" } else { "from " };
                format!("{from}{}", amount_of(lot, lowest, unit, "request"))
            }
            Pricing::ByVolume(tiers) => by_volume(lot, tiers),
            Pricing::ByUsage(price) => by_usage(price),
            Pricing::Unknown => "not known to this version".to_owned(),
        }
    }

    /// Why a request cost this much: the price in words, and the factor of its look-back if it had one.
    #[must_use]
    pub fn charge_in_words(&self, charged: Credits) -> String {
        let words = self.price_in_words();
        let Pricing::PerLookback { weight, .. } = &self.pricing else { return words };
        let base = weight.price(Multiplier::ONE).unwrap_or_default();
        match Decimal::from(charged.atoms()).checked_div(Decimal::from(base.atoms())) {
            Some(factor) if factor != Decimal::ONE => {
                let (base, factor) = (amount(base, None, ""), factor.round_dp(DIGITS).normalize());
                format!("{words}; its look-back makes it {factor} times {base}")
            }
            _ => words,
        }
    }

    /// Its purpose, in the words of the catalogue's author and without a full stop at the end. Empty if the catalogue
    /// has none.
    #[must_use]
    pub fn title(&self) -> &str {
        self.description.trim().trim_end_matches('.')
    }

    /// Whether no request to it costs anything.
    #[must_use]
    pub fn is_free(&self) -> bool {
        let is_fixed = !matches!(self.pricing, Pricing::ByUsage(_) | Pricing::Unknown);
        !self.metered || is_fixed && self.prices().iter().all(|price| !price.is_positive())
    }

    /// All prices that a request can have; of a price by usage, the most that is held.
    pub(super) fn prices(&self) -> Vec<Credits> {
        match &self.pricing {
            Pricing::PerLookback { tiers, .. } => {
                let bounds: Vec<u64> = tiers.bounds().collect();
                let beyond = bounds.last().map_or(0, |most| most.saturating_add(1));
                bounds.into_iter().chain([beyond]).map(|seconds| self.price(seconds)).collect()
            }
            Pricing::ByVolume(tiers) => tiers.iter().map(|tier| tier.price).collect(),
            Pricing::PerRequest(_) | Pricing::PerConnection(_) | Pricing::ByUsage(_) | Pricing::Unknown => {
                vec![self.price(0)]
            }
        }
    }
}

/// The regular plural of an English noun.
pub(super) fn plural(noun: &str) -> String {
    let before_y = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u']));
    match before_y {
        Some(stem) => format!("{stem}ies"),
        None if ["s", "x", "z", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => format!("{noun}es"),
        None => format!("{noun}s"),
    }
}

/// One and several of a price's unit, whose name may be either: `input_tokens` is `input token` and `input tokens`.
pub(super) fn unit_nouns(name: &str) -> (String, String) {
    let words = name.replace('_', " ");
    match words.strip_suffix('s') {
        Some(one) => (one.to_owned(), words),
        None => (words.clone(), plural(&words)),
    }
}

/// A number with its thousands separated.
pub(super) fn grouped(number: &str) -> String {
    let (whole, fraction) = number.split_once('.').map_or((number, None), |(whole, rest)| (whole, Some(rest)));
    let mut text = String::with_capacity(number.len() + number.len() / 3);
    for (position, digit) in whole.char_indices() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

fn by_volume(lot: Option<i64>, tiers: &VolumeTiers) -> String {
    let step = |VolumeTier { first, last, price }: VolumeTier| {
        let (is_free, last) = (!price.is_positive(), last.map(|last| grouped(&last.to_string())));
        let price = if is_free { "free".to_owned() } else { amount_of(lot, price, None, "") };
        match last {
            Some(last) if first == 1 && is_free => format!("{last} free a month"),
            Some(last) if first == 1 => format!("{price} for the first {last} a month"),
            Some(last) => format!("then {price} up to {last}"),
            None => format!("then {price}"),
        }
    };
    tiers.iter().map(step).collect::<Vec<_>>().join(", ")
}

/// The prices of the first models.
fn by_model(price: &UsagePrice) -> String {
    let shown = price.models().take(MODELS_SHOWN).map(|(name, price)| format!("{name}: {}", by_usage(price)));
    let more = match price.models().count().saturating_sub(MODELS_SHOWN) {
        0 => None,
        1 => Some("1 more model".to_owned()),
        more => Some(format!("{} more models", grouped(&more.to_string()))),
    };
    shown.chain(more).collect::<Vec<_>>().join("; ")
}

fn by_usage(price: &UsagePrice) -> String {
    if price.is_by_model() {
        return by_model(price);
    }
    let each = price.units().filter(|(_, price)| !price.is_zero()).map(|(unit, price)| unit_amount(unit, price));
    let mut parts: Vec<String> = each.collect();
    let least = price.min().is_positive().then(|| amount(price.min(), None, ""));
    match (parts.is_empty(), least) {
        (true, _) if price.may_exceed_hold() => return "by what each request uses".to_owned(),
        (true, Some(least)) => return format!("{least} to {}", amount(price.max(), None, "")),
        (true, None) => return format!("up to {}", amount(price.max(), None, "")),
        (false, Some(least)) => parts.push(format!("at least {least}")),
        (false, None) => {}
    }
    let at_upstreams = price.upstreams().map(|(name, price)| format!(", or at {name} {}", by_usage(price)));
    parts.join(", ") + &at_upstreams.collect::<String>()
}

/// The price of one of a price's units.
fn unit_amount(name: &str, price: UnitPrice) -> String {
    const SCALE: u32 = 18;
    let of = |count: i64| {
        let attocredits = i128::try_from(price.attocredits()).ok()?.checked_mul(i128::from(count))?;
        Decimal::try_from_i128_with_scale(attocredits, SCALE).ok()
    };
    let (one, many) = unit_nouns(name);
    let is_token = one.split(' ').next_back() == Some("token");
    let lot = if is_token { MILLION } else { lot_of(of(1).unwrap_or_default()) };
    of_lot(of(lot).unwrap_or_default(), lot, Some((one.as_str(), many.as_str())))
}

/// A price in credits. `noun` is the unit that it buys; `otherwise` is only named where the price is for many.
fn amount(price: Credits, noun: Option<&str>, otherwise: &str) -> String {
    amount_of(None, price, noun, otherwise)
}

/// The same for `lot` units; without it, for as many as is best read.
fn amount_of(lot: Option<i64>, price: Credits, noun: Option<&str>, otherwise: &str) -> String {
    let lot = lot.unwrap_or_else(|| lot_of(price.to_decimal()));
    let total = i128::from(price.atoms()).checked_mul(i128::from(lot)).and_then(decimal_of_atoms);
    let noun = noun.or(Some(otherwise).filter(|noun| lot > 1 && !noun.is_empty()));
    let many = noun.map(plural).unwrap_or_default();
    of_lot(total.unwrap_or_default(), lot, noun.map(|one| (one, many.as_str())))
}

/// How many units a price is quoted for.
pub(super) fn lot_of(price: Decimal) -> i64 {
    let thousandth = Decimal::new(1, 3);
    if price >= thousandth {
        1
    } else if price * Decimal::ONE_THOUSAND >= thousandth {
        THOUSAND
    } else {
        MILLION
    }
}

/// What `lot` cost, of a noun with its plural if it is named.
fn of_lot(total: Decimal, lot: i64, noun: Option<(&str, &str)>) -> String {
    let rounded =
        if total >= Decimal::ONE_THOUSAND { total.round_dp(2) } else { total.round_sf(DIGITS).unwrap_or(total) };
    let credits = if rounded == Decimal::ONE { "credit" } else { "credits" };
    let number = grouped(&rounded.normalize().to_string());
    let (one, many) = noun.unwrap_or_default();
    let per = match lot {
        1 if one.is_empty() => String::new(),
        1 => format!(" per {one}"),
        THOUSAND => format!(" per 1,000 {many}"),
        _ => format!(" per million {many}"),
    };
    format!("{number} {credits}{}", per.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;

    fn words(fields: &str) -> String {
        let route = format!(r#"{{"path": "/x", "method": "GET", "metered": true, {fields}}}"#);
        let text = format!(r#"{{"market": "M", "version": 1, "endpoints": [{route}]}}"#);
        Catalogue::from_json(&text).unwrap().routes()[0].price_in_words()
    }

    #[test]
    fn prices_are_said_as_people_think_of_them() {
        let lookback = |overflow: u32| {
            format!(
                r#""price": "0.01", "params": [{{"name": "s", "in": "query", "type": "integer", "required": true}}],
                "billing_modifier": {{"type": "lookback_multiplier", "param": "s",
                "tiers": [{{"max_seconds": 600, "multiplier": 2}}], "overflow_multiplier": {overflow}}}"#
            )
        };
        let by_usage = |more: &str| {
            format!(
                r#""price": {{"max": "0.5", {more} "report": {{"json": {{"input_tokens": "/a", "seconds": "/b"}}}},
                "units": {{"input_tokens": "0.00000025", "seconds": "0.02"}}}}"#
            )
        };
        let by_models = |count: u32| {
            let model = |number| format!(r#""m{number}": {{"per_million": {{"tokens": "0.25"}}}}"#);
            let models: Vec<String> = (0..count).map(model).collect();
            format!(
                r#""price": {{"max": "1", "model": {{"json": "/m"}}, "models": {{{}}}, "report": {{"json": {{"tokens": "/a"}}}}}}"#,
                models.join(",")
            )
        };
        let by_report = |more: &str| format!(r#""price": {{"max": "0.5", {more} "report": {{"header": "x-cost"}}}}"#);
        // the route's fields, its price
        let table = [
            (r#""price": "0.01""#.to_owned(), "0.01 credits"),
            (r#""price": "1""#.to_owned(), "1 credit"),
            (r#""price": "0.01", "unit": "search""#.to_owned(), "0.01 credits per search"),
            (r#""price": "0""#.to_owned(), "free"),
            (r#""credit_weight": 5"#.to_owned(), "0.6944 credits per 1,000 requests"),
            (r#""credit_weight": 5, "unit": "query""#.to_owned(), "0.6944 credits per 1,000 queries"),
            (r#""credit_weight": 0.0005"#.to_owned(), "0.06944 credits per million requests"),
            (lookback(2), "0.02 credits"),
            (lookback(1), "from 0.01 credits"),
            (
                r#""billing_modifier": {"type": "stream_session", "credits_per_connection": 0.01}"#.to_owned(),
                "0.01 credits per connection",
            ),
            (
                r#""price": [{"up_to": 1000, "credits": "0"}, {"credits": "0.001"}]"#.to_owned(),
                "1,000 free a month, then 0.001 credits",
            ),
            (
                r#""price": [{"up_to": 10, "credits": "1"}, {"up_to": 20000, "credits": "0.5"}, {"credits": "0"}]"#
                    .to_owned(),
                "1 credit for the first 10 a month, then 0.5 credits up to 20,000, then free",
            ),
            (by_usage(""), "0.25 credits per million input tokens, 0.02 credits per second"),
            (
                by_usage(r#""min": "0.001","#),
                "0.25 credits per million input tokens, 0.02 credits per second, at least 0.001 credits",
            ),
            (by_models(1), "m0: 0.25 credits per million tokens"),
            (
                by_models(6),
                "m0: 0.25 credits per million tokens; m1: 0.25 credits per million tokens; m2: 0.25 credits per million \
                 tokens; m3: 0.25 credits per million tokens; 2 more models",
            ),
            (by_report(""), "up to 0.5 credits"),
            (by_report(r#""min": "0.1","#), "0.1 credits to 0.5 credits"),
            (by_report(r#""over": "debt","#), "by what each request uses"),
        ];
        for (fields, price) in table {
            assert_eq!(words(&fields), price, "{fields}");
        }
    }

    #[test]
    fn nouns_have_regular_plurals_and_numbers_have_separators() {
        for (one, many) in
            [("search", "searches"), ("query", "queries"), ("day", "days"), ("report", "reports"), ("box", "boxes")]
        {
            assert_eq!(plural(one), many);
        }
        assert_eq!(unit_nouns("output_tokens"), ("output token".to_owned(), "output tokens".to_owned()));
        assert_eq!(unit_nouns("image"), ("image".to_owned(), "images".to_owned()));
        for (number, text) in [("1", "1"), ("999", "999"), ("1000", "1,000"), ("1234567.8901", "1,234,567.8901")] {
            assert_eq!(grouped(number), text);
        }
    }
}
