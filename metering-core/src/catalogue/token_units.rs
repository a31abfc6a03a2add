//! Which units of a price are tokens, and how many tokens a request may use or has used, for limits on tokens per minute.
//!
//! Cached input counts, as it does at OpenAI, unless the price lists its token units. A model's output limit is not
//! an estimate: a request that sets no limit counts only its input until its response has reported the rest.

use crate::catalogue::amount::Measures;
use crate::catalogue::report::Source;
use crate::catalogue::report_headers;
use crate::catalogue::units::Counts;
use crate::catalogue::usage_price::UsagePrice;

impl UsagePrice {
    /// Whether any of its units are tokens.
    #[must_use]
    pub fn counts_tokens(&self) -> bool {
        self.token_units().next().is_some()
    }

    /// The units that are tokens: those that the price lists in `tokens`, or else those named `tokens` or `..._tokens`.
    pub fn token_units(&self) -> impl Iterator<Item = &str> {
        self.units().map(|(unit, _)| unit).filter(move |unit| self.is_token(unit))
    }

    fn is_token(&self, unit: &str) -> bool {
        match &self.tokens {
            Some(listed) => listed.iter().any(|token| **token == *unit),
            None => unit == "tokens" || unit.ends_with("_tokens"),
        }
    }

    /// The tokens that a request is expected to use, as far as its price estimates them; `None` if the price counts none.
    /// `body` is as for [`UsagePrice::hold`].
    ///
    /// ```
    /// use metering_core::Catalogue;
    ///
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/chat", "method": "POST", "metered": true, "price": {
    ///         "max": "0.5", "units": {"input_tokens": "0.00000025", "output_tokens": "0.000001"},
    ///         "report": {"json": {"input_tokens": "/usage/in", "output_tokens": "/usage/out"}},
    ///         "estimate": {"json": {"output_tokens": "/max_tokens"}, "bytes": "input_tokens"}}}]}"#,
    /// )?;
    /// let price = catalogue.routes()[0].usage_price().ok_or("no price by usage")?;
    /// assert_eq!(price.expected_tokens(Some(br#"{"max_tokens": 1000, "messages": ["x"]}"#)), Some(1_039));
    /// assert_eq!(price.expected_tokens(Some(br#"{"messages": ["x"]}"#)), Some(19));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn expected_tokens(&self, body: Option<&[u8]>) -> Option<u32> {
        let estimate = self.estimate.as_ref().zip(body);
        let expected = estimate.map(|(estimate, body)| estimate.tokens(&self.token_units().collect::<Vec<_>>(), body));
        self.counts_tokens().then_some(expected.unwrap_or(0))
    }

    /// The tokens among these counts; `None` if the price counts none, or nothing was counted.
    #[must_use]
    pub fn used_tokens(&self, counts: &Counts) -> Option<u32> {
        let used = self.token_units().map(|unit| counts.get(unit).unwrap_or_default().round_up());
        (self.counts_tokens() && !counts.is_empty()).then(|| used.fold(0, u32::saturating_add))
    }

    /// The tokens that headers or trailers report; `None` when they do not, or cannot be read.
    #[must_use]
    pub fn tokens_from_headers<'h>(&self, header: impl Fn(&str) -> Option<&'h [u8]>) -> Option<u32> {
        let Source::Headers(Measures::Counts(names)) = &self.report().source else { return None };
        self.used_tokens(&report_headers::counts(names, header).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Catalogue;
    use crate::catalogue::RequestPath;

    fn price(more: &str) -> Arc<UsagePrice> {
        let file = format!(
            r#"{{"market": "M", "version": 1, "endpoints": [{{"path": "/chat", "method": "POST", "metered": true,
                "price": {{"max": "0.5", "units": {{"input_tokens": "0.001", "cached_tokens": "0", "images": "0.01"}},
                "report": {{"header": {{"input_tokens": "x-in", "cached_tokens": "x-cached", "images": "x-images"}}}}
                {more}}}}}]}}"#
        );
        Arc::clone(Catalogue::from_json(&file).unwrap().routes()[0].usage_price().unwrap())
    }

    fn counts(json: &str) -> Counts {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn tokens_are_the_units_of_that_name_or_those_that_are_listed() {
        let all = counts(r#"{"input_tokens": 12.5, "cached_tokens": 30, "images": 2}"#);
        // members of the price, tokens used
        let table = [
            ("", Some(43)),
            (r#", "tokens": ["input_tokens"]"#, Some(13)),
            (r#", "tokens": "images""#, Some(2)),
            (r#", "tokens": []"#, None),
        ];
        for (more, used) in table {
            assert_eq!(price(more).used_tokens(&all), used, "{more}");
            assert_eq!(price(more).used_tokens(&Counts::default()), None, "{more}: nothing was reported");
        }
        let price = price("");
        assert_eq!(price.used_tokens(&counts(r#"{"images": 2}"#)), Some(0));
        assert_eq!(price.used_tokens(&counts(r#"{"input_tokens": 5000000000, "cached_tokens": 1}"#)), Some(u32::MAX));
        let header = |name: &str| (name == "x-in").then_some(b"7".as_slice());
        assert_eq!((price.tokens_from_headers(header), price.tokens_from_headers(|_| None)), (Some(7), None));
    }

    #[test]
    fn units_without_an_estimate_are_not_expected() {
        let price = price(r#", "estimate": {"bytes": "input_tokens", "json": {"images": "/n"}, "times": "/times"}"#);
        // body, tokens expected
        let table = [(r#"{"n": 5}"#, 8), (r#"{"times": 3}"#, 36), (r#"{"times": 0}"#, 12), ("not JSON", 8)];
        for (body, expected) in table {
            assert_eq!(price.expected_tokens(Some(body.as_bytes())), Some(expected), "{body}");
        }
        assert_eq!(price.expected_tokens(None), Some(0));
    }

    #[test]
    fn tokens_of_a_model_are_bounded_by_the_request_once() {
        let catalogue = Catalogue::from_json(
            r#"{"market": "M", "version": 1, "models": {
                "small": {"max": "1", "per_million": {"input_tokens": "1", "output_tokens": "10", "reasoning_tokens": "20"}},
                "large": {"max": "1", "per_million": {"input_tokens": "1", "output_tokens": "10"},
                    "limits": {"output_tokens": 5000}}},
                "endpoints": [{"path": "/chat", "method": "POST", "metered": true, "price": {"preset": "openai-chat"}}]}"#,
        );
        let route = &catalogue.as_ref().unwrap().routes()[0];
        let expected = |body: &str| {
            let path = RequestPath::parse("/chat").unwrap();
            let price = route.usage_price_of(&path, Some(body.as_bytes())).unwrap().unwrap();
            price.expected_tokens(Some(format!("{body:<100}").as_bytes()))
        };
        assert_eq!(
            expected(r#"{"model": "small", "max_tokens": 40}"#),
            Some(140),
            "the reasoning is part of the output"
        );
        assert_eq!(expected(r#"{"model": "large", "max_tokens": 40, "n": 2}"#), Some(280));
        assert_eq!(expected(r#"{"model": "large"}"#), Some(100), "the model's limit is not an estimate");
    }
}
