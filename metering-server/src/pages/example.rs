//! A request that every account can make, for examples.

use metering_core::Catalogue;
use metering_core::catalogue::{ParamLocation, Pricing, Route};

/// How long an example of a response may be that the first page shows.
const RESPONSE_MOST: usize = 600;

/// A path to call, and the price of a call.
#[derive(Debug)]
pub(super) struct Example {
    pub(super) path: String,
    /// In words: `0.01 credits`.
    pub(super) price: String,
    /// An example of its response, in the catalogue's words; empty if there is none, or it is long.
    pub(super) response: String,
}

impl Example {
    /// The first metered route that can be called without parameters, or else the balance.
    pub(super) fn of(catalogue: &Catalogue) -> Self {
        let callable = catalogue.routes().iter().find(|route| {
            let plain = route.params.iter().all(|param| !param.required && param.location != ParamLocation::Path);
            route.metered && !route.sse && !route.websocket && &*route.method == "GET" && plain
        });
        callable.map_or_else(
            || Self { path: "/credits/balance".to_owned(), price: "nothing".to_owned(), response: String::new() },
            |route| Self { path: route.template.to_string(), price: in_words(route), response: response(route) },
        )
    }
}

fn response(route: &Route) -> String {
    let text = route.example.as_ref().map_or("", |example| example.text());
    if text.len() > RESPONSE_MOST { String::new() } else { text.to_owned() }
}

fn in_words(route: &Route) -> String {
    let credits = route.price(0).to_string();
    let unit = if credits == "1" { "credit" } else { "credits" };
    match route.pricing {
        _ if credits == "0" => "nothing".to_owned(),
        // Rounded, as in the table of prices.
        Pricing::PerRequest(_) | Pricing::PerConnection(_) => route.price_in_words(),
        Pricing::PerLookback { .. } | Pricing::ByVolume(_) | Pricing::ByUsage(_) | Pricing::Unknown => {
            format!("at most {credits} {unit}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(routes: &str) -> (String, String) {
        let text = format!(r#"{{"market": "X", "version": 1, "endpoints": [{routes}]}}"#);
        let Example { path, price, .. } = Example::of(&Catalogue::from_json(&text).unwrap());
        (path, price)
    }

    #[test]
    fn the_first_route_without_parameters_is_the_example() {
        let with_param = r#"{"path": "/a/{id}", "method": "GET", "metered": true,
            "params": [{"name": "id", "in": "path", "type": "string"}]}"#;
        let post = r#"{"path": "/b", "method": "POST", "metered": true}"#;
        let plain = |price: &str| format!(r#"{{"path": "/c", "method": "GET", "metered": true, "price": {price}}}"#);
        // routes, path, price
        let table = [
            (String::new(), "/credits/balance", "nothing"),
            (format!("{with_param},{post}"), "/credits/balance", "nothing"),
            (format!("{with_param},{post},{}", plain("\"0.5\"")), "/c", "0.5 credits"),
            (plain("\"1\""), "/c", "1 credit"),
            (plain("\"0.0005\""), "/c", "0.5 credits per 1,000 requests"),
            (plain("\"0\""), "/c", "nothing"),
            (plain(r#"[{"up_to": 10, "credits": "0"}, {"credits": "0.5"}]"#), "/c", "at most 0.5 credits"),
        ];
        for (routes, path, price) in table {
            assert_eq!(example(&routes), (path.to_owned(), price.to_owned()), "{routes}");
        }
    }

    #[test]
    fn a_short_response_is_shown_as_the_catalogue_has_it() {
        let shown = |example: &str| {
            let route = format!(r#"{{"path": "/c", "method": "GET", "metered": true, "example": {example}}}"#);
            let text = format!(r#"{{"market": "X", "version": 1, "endpoints": [{route}]}}"#);
            Example::of(&Catalogue::from_json(&text).unwrap()).response
        };
        assert_eq!(shown(r#"{"b": "1.50", "a": [2]}"#), r#"{"b":"1.50","a":[2]}"#);
        assert_eq!(shown(&format!("\"{}\"", "x".repeat(RESPONSE_MOST))), "");
    }
}
