//! What an amount of credits buys, in requests to real routes and in plain words.
//!
//! The operator chooses the routes: those with a `unit` in the catalogue. Without any, they are the ones that customers
//! use most; before anyone has used one, the first routes with different prices.

use rust_decimal::Decimal;

use crate::catalogue::price::Pricing;
use crate::catalogue::price_words::{grouped, plural, unit_nouns};
use crate::catalogue::route::Route;
use crate::catalogue::units::UnitPrice;
use crate::money::credits::{ATOMS_PER_CREDIT, Credits};

/// How many alternatives are named.
const MOST: usize = 3;
/// How many routes are looked at when the operator has named none.
const MOST_UNNAMED: usize = 8;
/// The longest title that a route is called by, in characters.
const TITLE_MAX: usize = 80;
const MILLION: u128 = 1_000_000;

/// How a number of requests is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    /// That many.
    Number,
    /// Requests may cost more.
    UpTo,
    /// Requests may cost less.
    AtLeast,
}

/// A number of requests, or of the units that they use.
struct Bought {
    count: u128,
    /// Whether the amount buys exactly this many.
    is_exact: bool,
    bound: Bound,
    one: String,
    many: String,
}

/// The alternatives: `about 1,000 searches`, `200 reports`. Empty when no route has a price, or the amount buys nothing.
/// `most_used` are routes of the same catalogue that have a price, the most used first.
pub(super) fn of(routes: &[Route], most_used: &[&Route], credits: Credits) -> Vec<String> {
    let named: Vec<&Route> = routes.iter().filter(|route| route.unit.is_some() && !route.is_free()).collect();
    let routes = match (named.is_empty(), most_used) {
        (false, _) => named,
        (true, []) => first_prices(routes),
        (true, used) => used.to_vec(),
    };
    let mut all: Vec<Bought> = Vec::with_capacity(MOST);
    for bought in routes.into_iter().flat_map(|route| bought(route, credits)) {
        if all.len() < MOST && bought.count > 0 && all.iter().all(|other| other.many != bought.many) {
            all.push(bought);
        }
    }
    all.iter().map(Bought::words).collect()
}

/// The first route of each price that is not free.
fn first_prices(routes: &[Route]) -> Vec<&Route> {
    let mut first: Vec<&Route> = Vec::new();
    for route in routes.iter().filter(|route| !route.is_free()) {
        if first.len() < MOST_UNNAMED && first.iter().all(|other| other.pricing != route.pricing) {
            first.push(route);
        }
    }
    first
}

fn bought(route: &Route, credits: Credits) -> Vec<Bought> {
    let Pricing::ByUsage(price) = &route.pricing else {
        let prices: Vec<Credits> = route.prices().into_iter().filter(|price| price.is_positive()).collect();
        let lowest = prices.iter().copied().min().unwrap_or_default();
        // Free requests at the start of a month are free without a plan, too.
        let bound = if prices.iter().all(|price| *price == lowest) { Bound::Number } else { Bound::UpTo };
        let is_known = route.pricing != Pricing::Unknown;
        return requests(route, credits, lowest, bound).filter(|_| is_known).into_iter().collect();
    };
    let bound = match (price.is_by_model(), price.min().is_positive()) {
        // The units are those of the most expensive model, and requests to another may cost the minimum.
        (true, true) => return Vec::new(),
        (true, false) => Bound::AtLeast,
        (false, true) => Bound::UpTo,
        (false, false) => Bound::Number,
    };
    let units: Vec<Bought> = price.units().filter_map(|(name, price)| units(name, price, credits, bound)).collect();
    if units.is_empty() && !price.may_exceed_hold() {
        return requests(route, credits, price.max(), Bound::AtLeast).into_iter().collect();
    }
    units
}

/// The requests that an amount buys at this price.
fn requests(route: &Route, credits: Credits, price: Credits, bound: Bound) -> Option<Bought> {
    let [credits, price] = [credits, price].map(|amount| u128::try_from(amount.atoms()).unwrap_or_default());
    let (count, rest) = (credits.checked_div(price)?, credits.checked_rem(price)?);
    let (one, many) = match (&route.unit, &route.pricing) {
        (Some(unit), _) => (unit.clone(), plural(unit)),
        (None, Pricing::PerConnection(_)) => named("connection", route),
        (None, _) => named("call", route),
    };
    Some(Bought { count, is_exact: rest == 0, bound, one, many })
}

/// A noun and its plural, of a route without a noun of its own. It is called by its title, or by its path if that is long.
fn named(noun: &str, route: &Route) -> (String, String) {
    let title = route.title();
    let is_short = !title.is_empty() && title.chars().count() <= TITLE_MAX;
    let name = if is_short { format!("“{title}”") } else { route.template.to_string() };
    (format!("{noun} to {name}"), format!("{noun}s to {name}"))
}

/// The units that an amount buys at this price.
fn units(name: &str, price: UnitPrice, credits: Credits, bound: Bound) -> Option<Bought> {
    // A credit is 10¹⁸ attocredits.
    let credits = u128::try_from(credits.atoms()).ok()?.checked_mul(10_u128.pow(18) / MILLION)?;
    let price = price.attocredits().checked_mul(u128::from(ATOMS_PER_CREDIT.unsigned_abs()) / MILLION)?;
    let (count, rest) = (credits.checked_div(price)?, credits.checked_rem(price)?);
    let (one, many) = unit_nouns(name);
    Some(Bought { count, is_exact: rest == 0, bound, one, many })
}

impl Bought {
    fn words(&self) -> String {
        // A bound is shown in full; a number that is rounded anyway gets three digits.
        let rounds = self.count >= MILLION || !self.is_exact && self.bound == Bound::Number;
        let shown = if rounds { three_digits(self.count) } else { self.count };
        let is_rounded = !self.is_exact || shown != self.count;
        let prefix = match self.bound {
            Bound::Number if is_rounded => "about ",
            Bound::Number => "",
            Bound::UpTo => "up to ",
            Bound::AtLeast => "at least ",
        };
        format!("{prefix}{} {}", number(shown), if self.count == 1 { &self.one } else { &self.many })
    }
}

/// Rounds down to three digits.
fn three_digits(count: u128) -> u128 {
    let step = 10_u128.pow(count.checked_ilog10().unwrap_or_default().saturating_sub(2));
    count / step * step
}

/// A count with separators; from a million on, in millions.
fn number(count: u128) -> String {
    let millions = || {
        let millions = Decimal::try_from_i128_with_scale(i128::try_from(count).ok()?, 6).ok()?;
        Some(format!("{} million", grouped(&millions.normalize().to_string())))
    };
    if count < MILLION {
        grouped(&count.to_string())
    } else {
        millions().unwrap_or_else(|| grouped(&count.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::TITLE_MAX;
    use crate::catalogue::Catalogue;

    fn buys(endpoints: &str, credits: &str) -> String {
        let text = format!(r#"{{"market": "M", "version": 1, "endpoints": [{endpoints}]}}"#);
        Catalogue::from_json(&text).unwrap().buys(credits.parse().unwrap(), &[]).join(" or ")
    }

    fn route(path: &str, fields: &str) -> String {
        format!(r#"{{"path": "{path}", "method": "GET", "metered": true, {fields}}}"#)
    }

    /// A catalogue priced in credits, whose plan of 10 credits was said to buy 72,000 calls of weight 1.
    #[test]
    fn plan_buys_what_its_credits_pay_for() {
        let search = route("/search", r#""price": "0.01", "unit": "search""#);
        let report = route("/report", r#""price": "0.05", "unit": "report""#);
        let status = route("/status", r#""price": "0.001""#);
        let all = [status.clone(), search.clone(), report.clone()].join(",");
        assert_eq!(buys(&all, "10"), "1,000 searches or 200 reports");
        assert_eq!(buys(&all, "10.004"), "about 1,000 searches or about 200 reports");
        assert_eq!(buys(&all, "0.02"), "2 searches", "no report for that");
        assert_eq!(buys(&all, "0.01"), "1 search");
        assert_eq!(buys(&all, "0"), "");
        assert_eq!(buys(&[status, route("/free", r#""price": "0""#)].join(","), "10"), "10,000 calls to /status");
        let twins = [search.replace("search", "find"), report, search].join(",");
        assert_eq!(buys(&twins, "1"), "100 finds or 20 reports or 100 searches", "in the catalogue's order");
    }

    #[test]
    fn without_units_the_first_routes_of_different_prices_are_named() {
        let of_price = |path: &str, price: &str| route(path, &format!(r#""price": "{price}""#));
        let all = [of_price("/a", "0.01"), of_price("/b", "0.01"), of_price("/c", "0.03"), of_price("/d", "1")];
        assert_eq!(buys(&all.join(","), "10"), "1,000 calls to /a or about 333 calls to /c or 10 calls to /d");
        assert_eq!(buys(&route("/free", r#""price": "0""#), "10"), "");
        assert_eq!(buys(&of_price("/a", "0.003"), "100"), "about 33,300 calls to /a", "rounded down to three digits");
        assert_eq!(buys(&of_price("/a", "0.00001"), "100"), "10 million calls to /a");
    }

    #[test]
    fn routes_without_units_are_called_by_their_titles() {
        let described = |description: &str| route("/a", &format!(r#""price": "0.01", "description": "{description}""#));
        assert_eq!(buys(&described("Finds pages."), "10"), "1,000 calls to “Finds pages”");
        assert_eq!(buys(&described("Finds pages."), "0.01"), "1 call to “Finds pages”");
        for unsuitable in [String::new(), " . ".to_owned(), "x".repeat(TITLE_MAX + 1)] {
            assert_eq!(buys(&described(&unsuitable), "10"), "1,000 calls to /a", "{unsuitable}");
        }
    }

    #[test]
    fn without_units_the_most_used_routes_are_named() {
        let of_price = |path: &str, price: &str| route(path, &format!(r#""price": "{price}""#));
        let routes = [of_price("/a", "1"), of_price("/b", "0.01"), of_price("/c", "0.01"), of_price("/d", "0.02")];
        let buys = |routes: &[String], used: &[usize]| {
            let text = format!(r#"{{"market": "M", "version": 1, "endpoints": [{}]}}"#, routes.join(","));
            let catalogue = Catalogue::from_json(&text).unwrap();
            let used: Vec<_> = used.iter().map(|place| &catalogue.routes()[*place]).collect();
            catalogue.buys("1".parse().unwrap(), &used).join(" or ")
        };
        assert_eq!(buys(&routes, &[2, 3, 1, 0]), "100 calls to /c or 50 calls to /d or 100 calls to /b");
        assert_eq!(buys(&routes, &[3]), "50 calls to /d");
        let chosen = [&routes[..], &[route("/e", r#""price": "0.5", "unit": "report""#)]].concat();
        assert_eq!(buys(&chosen, &[2]), "2 reports", "the operator's choice comes first");
    }

    #[test]
    fn unit_is_a_noun_of_a_metered_route() {
        let with = |unit: &str, metered: bool| {
            let route = format!(r#"{{"path": "/x", "method": "GET", "metered": {metered}, "unit": {unit}}}"#);
            format!(r#"{{"market": "M", "version": 1, "endpoints": [{route}]}}"#)
        };
        let unit_of = |text: &str| Catalogue::from_published_json(text).unwrap().routes()[0].unit.clone();
        for wrong in [r#""""#, r#"" search""#, r#""a\nb""#, "7", &format!("\"{}\"", "x".repeat(41))] {
            let error = Catalogue::from_json(&with(wrong, true)).unwrap_err().to_string();
            assert!(error.contains("unit"), "{error}");
            assert_eq!(unit_of(&with(wrong, true)), None, "{wrong}");
        }
        let error = Catalogue::from_json(&with(r#""search""#, false)).unwrap_err().to_string();
        assert!(error.contains("unit has no effect"), "{error}");
        assert_eq!(unit_of(&with(r#""ETH price""#, true)).as_deref(), Some("ETH price"));
    }

    #[test]
    fn prices_that_vary_give_bounds() {
        let lookback = r#""price": "0.01", "unit": "chart", "params": [{"name": "s", "in": "query", "type": "integer",
            "required": true}], "billing_modifier": {"type": "lookback_multiplier", "param": "s",
            "tiers": [{"max_seconds": 600, "multiplier": 1}], "overflow_multiplier": 4}"#;
        let stream = r#""sse": true, "billing_modifier": {"type": "stream_session", "credits_per_connection": 0.01}"#;
        let free_first = r#""price": [{"up_to": 1000, "credits": "0"}, {"credits": "0.001"}]"#;
        let by_usage = |more: &str| {
            format!(
                r#""price": {{"max": "0.5", {more} "units": {{"input_tokens": "0.0000003", "output_tokens": "0.000001"}},
                "report": {{"json": {{"input_tokens": "/a", "output_tokens": "/b"}}}}}}"#
            )
        };
        // the route's fields, ten credits' buying power
        let table = [
            (lookback.to_owned(), "up to 1,000 charts"),
            (stream.to_owned(), "1,000 connections to /x"),
            (free_first.to_owned(), "10,000 calls to /x"),
            (by_usage(""), "about 33.3 million input tokens or 10 million output tokens"),
            (by_usage(r#""min": "0.001","#), "up to 33.3 million input tokens or up to 10 million output tokens"),
            (r#""price": {"max": "0.5", "report": {"header": "x-cost"}}"#.to_owned(), "at least 20 calls to /x"),
            (r#""price": {"max": "0.5", "over": "debt", "report": {"header": "x-cost"}}"#.to_owned(), ""),
        ];
        for (fields, words) in table {
            assert_eq!(buys(&route("/x", &fields), "10"), words, "{fields}");
        }
    }
}
