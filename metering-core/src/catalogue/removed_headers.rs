//! Which headers of a request and of its response do not pass the gateway on a route.
//!
//! A route priced by usage usually resells another service. By default, customers cannot send headers that change the
//! price or the payer there, and do not see the account or its cost.

use super::header_patterns::{HeaderPattern, HeaderPatterns};
use super::object::{Object, UnknownKeys, documentation};
use super::problem::Problems;
use crate::catalogue::price::Pricing;

/// Request headers with which a client changes what known upstreams charge, the payer, or whether they report the
/// charge.
const FROM_REQUESTS: [&str; 21] = [
    // Proxies for models: LiteLLM, Portkey, Helicone, Cloudflare. They choose another model, provider or key.
    "x-litellm-*",
    "x-pass-*",
    "custom-llm-provider",
    "x-portkey-*",
    "helicone-*",
    "cf-aig-*",
    // OpenAI and Azure: the payer, and a deployment that makes images.
    "openai-organization",
    "openai-project",
    "x-ms-oai-*",
    // Anthropic: long contexts and other beta features have prices of their own.
    "anthropic-beta",
    "anthropic-workspace-id",
    // Google: the payer, the tier, and a response without its usage.
    "x-goog-user-project",
    "x-goog-fieldmask",
    "x-goog-request-params",
    "x-vertex-ai-*",
    // Bedrock: faster and dearer tiers.
    "x-amzn-bedrock-*",
    // Others: the payer, and versions with other prices.
    "x-hf-bill-to",
    "groq-model-version",
    "x-groq-*",
    "x-openrouter-*",
    "openrouter-*",
];

/// Response headers that reveal the upstream, its cost, or how much of its limits is left. `retry-after` and request
/// ids are kept: clients use them.
const FROM_RESPONSES: [&str; 37] = [
    // Proxies for models.
    "x-litellm-*",
    "llm_provider-*",
    "x-portkey-*",
    "helicone-*",
    "x-openrouter-*",
    "openrouter-*",
    // Providers.
    "x-ratelimit-*",
    "openai-*",
    "anthropic-*",
    "x-goog-*",
    "x-gemini-*",
    "x-vertex-ai-*",
    "x-amz-*",
    "x-amzn-*",
    "x-ms-*",
    "apim-request-id",
    "azureml-*",
    "x-groq-*",
    "x-together-*",
    "fireworks-*",
    "mistral-*",
    "x-compute-*",
    "x-ds-*",
    "x-cohere-*",
    // Servers and networks in front of them.
    "server",
    "server-timing",
    "via",
    "x-powered-by",
    "x-served-by",
    "x-runtime",
    "cf-*",
    "x-cache*",
    "x-envoy-*",
    "x-kong-*",
    "x-vercel-*",
    "fly-*",
    "x-railway-*",
];

/// The headers that do not pass the gateway on a route.
///
/// ```
/// use metering_core::Catalogue;
///
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [
///         {"path": "/chat", "method": "POST", "metered": true,
///          "price": {"max": "0.5", "report": {"header": "x-cost"}}},
///         {"path": "/beta", "method": "POST", "metered": true, "request_headers": {"remove": ["x-internal-*"]},
///          "price": {"max": "0.5", "report": {"header": "x-cost"}}},
///         {"path": "/flat", "method": "POST", "metered": true}]}"#,
/// )?;
/// let [chat, beta, flat] = catalogue.routes() else { panic!("three routes") };
/// assert!(chat.removed_headers.request.matches("anthropic-beta"));
/// assert!(chat.removed_headers.response.matches("x-cost"));
/// assert!(!beta.removed_headers.request.matches("anthropic-beta"));
/// assert!(flat.removed_headers.response.is_empty());
/// # Ok::<(), metering_core::catalogue::CatalogueError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovedHeaders {
    /// Headers to remove from a request before it is forwarded.
    pub request: HeaderPatterns,
    /// The headers to remove from a response and its trailers, after their report has been read.
    pub response: HeaderPatterns,
}

/// Reads `request_headers` and `response_headers` of a route.
///
/// # Errors
/// The problems with them.
pub(super) fn read(
    endpoint: &Object<'_>,
    pricing: Option<&Pricing>,
    unknown: UnknownKeys,
) -> Result<RemovedHeaders, Problems> {
    let mut problems = Problems::default();
    let request = problems.keep(documentation(listed(endpoint, "request_headers", unknown), unknown));
    let response = problems.keep(documentation(listed(endpoint, "response_headers", unknown), unknown));
    problems.or(|| {
        Some(RemovedHeaders {
            request: request?.unwrap_or_else(|| from_requests(pricing)),
            response: response?.unwrap_or_else(|| from_responses(pricing)),
        })
    })
}

fn listed(endpoint: &Object<'_>, key: &str, unknown: UnknownKeys) -> Result<Option<HeaderPatterns>, Problems> {
    let Some(rules) = endpoint.object(key)? else { return Ok(None) };
    rules.only(&["remove"], unknown)?;
    let patterns: Vec<HeaderPattern> = rules.require("remove")?;
    Ok(Some(patterns.into_iter().collect()))
}

fn from_requests(pricing: Option<&Pricing>) -> HeaderPatterns {
    match pricing {
        Some(Pricing::ByUsage(_)) => patterns(FROM_REQUESTS).collect(),
        _ => HeaderPatterns::default(),
    }
}

fn from_responses(pricing: Option<&Pricing>) -> HeaderPatterns {
    let Some(Pricing::ByUsage(price)) = pricing else { return HeaderPatterns::default() };
    let report = price.report();
    // The cost that the upstream reports; the customer gets the amount charged instead. Counts of units are kept: they
    // explain the charge.
    let cost = report.header_names().filter(|_| report.is_in_credits());
    patterns(FROM_RESPONSES).chain(cost.filter_map(|name| name.parse().ok())).collect()
}

fn patterns<const N: usize>(texts: [&'static str; N]) -> impl Iterator<Item = HeaderPattern> {
    texts.into_iter().filter_map(|text| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use crate::Catalogue;

    const BY_USAGE: &str = r#""price": {"max": "0.5", "report": {"header": "X-Cost"}}"#;

    fn catalogue(fields: &str) -> String {
        format!(
            r#"{{"market": "M", "version": 1, "endpoints": [{{"path": "/a", "method": "POST", "metered": true, {fields}}}]}}"#
        )
    }

    #[test]
    fn routes_priced_by_usage_hide_their_upstream_unless_the_catalogue_lists_what_to_remove() {
        let counts = r#""price": {"max": "0.5", "units": {"a": "0.1"}, "report": {"header": {"a": "x-tokens"}}}"#;
        let own = format!(r#"{BY_USAGE}, "request_headers": {{"remove": ["x-own-*"]}}"#);
        let off = format!(r#"{BY_USAGE}, "response_headers": {{"remove": []}}"#);
        let flat = r#""price": "0.1", "response_headers": {"remove": ["via"]}"#;
        // fields, is it in a response, header, removed
        let table = [
            (BY_USAGE, false, "anthropic-beta", true),
            (BY_USAGE, false, "X_LiteLLM_Tags", true),
            (BY_USAGE, false, "x-goog-user-project", true),
            (BY_USAGE, false, "x-stainless-retry-count", false),
            (BY_USAGE, false, "anthropic-version", false),
            (BY_USAGE, false, "http-referer", false),
            (BY_USAGE, true, "x-litellm-response-cost", true),
            (BY_USAGE, true, "llm_provider-openai-organization", true),
            (BY_USAGE, true, "x-ratelimit-remaining-tokens", true),
            (BY_USAGE, true, "anthropic-ratelimit-tokens-limit", true),
            (BY_USAGE, true, "openai-processing-ms", true),
            (BY_USAGE, true, "cf-ray", true),
            (BY_USAGE, true, "server-timing", true),
            (BY_USAGE, true, "x-cost", true),
            (BY_USAGE, true, "retry-after", false),
            (BY_USAGE, true, "retry-after-ms", false),
            (BY_USAGE, true, "x-request-id", false),
            (BY_USAGE, true, "request-id", false),
            (BY_USAGE, true, "content-type", false),
            (counts, true, "x-tokens", false),
            (counts, true, "openai-version", true),
            (&own, false, "x-own-a", true),
            (&own, false, "anthropic-beta", false),
            (&own, true, "openai-version", true),
            (&off, true, "openai-version", false),
            (&off, true, "x-cost", false),
            (&off, false, "anthropic-beta", true),
            (flat, true, "via", true),
            (flat, true, "openai-version", false),
            (flat, false, "anthropic-beta", false),
        ];
        for (fields, is_response, header, removed) in table {
            let catalogue = Catalogue::from_json(&catalogue(fields)).unwrap();
            let headers = &catalogue.routes()[0].removed_headers;
            let patterns = if is_response { &headers.response } else { &headers.request };
            assert_eq!(patterns.matches(header), removed, "{fields} {header}");
        }
    }

    #[test]
    fn mistakes_are_named_and_those_of_other_servers_ignored() {
        // fields, problem
        let table = [
            (r#""response_headers": {"remove": ["*"]}"#, "response_headers.remove"),
            (r#""response_headers": {"remove": "via"}"#, "response_headers.remove"),
            (r#""request_headers": {}"#, "request_headers.remove is missing"),
            (r#""request_headers": {"remove": [], "add": {}}"#, "unknown key request_headers.add"),
            (r#""request_header": {"remove": []}"#, "did you mean request_headers?"),
        ];
        for (fields, problem) in table {
            let text = catalogue(fields);
            let error = Catalogue::from_json(&text).unwrap_err().to_string();
            assert!(error.contains(problem), "{fields}: {error}");
            assert!(Catalogue::from_published_json(&text).is_ok(), "{fields}");
        }
    }
}
