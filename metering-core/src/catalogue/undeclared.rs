//! Query parameters that a client may not send although its route accepts any (`"query": "any"`).
//!
//! The gateway cannot know how an upstream reads undeclared parameters. It refuses parameters that could undo its
//! checks: another spelling of a declared parameter, another method, another model, a response without its report.

use crate::access::key::ApiKey;
use crate::catalogue::route::{ParamLocation, Route};
use crate::catalogue::spelling::fold;

/// Parameters that replace the method or the headers of a request: Rails and Symfony, Google, and others.
const OVERRIDES: [&str; 6] =
    ["_method", "$httpmethod", "$httpheaders", "x-http-method-override", "x-http-method", "x-method-override"];
/// Parameters that leave out parts of a response or wrap it: Google's, and JSONP.
const RESHAPES: [&str; 6] = ["fields", "$fields", "callback", "$callback", "jsonp", "$outputdefaults"];
/// Google's formats of responses.
const FORMATS: [&str; 2] = ["alt", "$alt"];
/// The formats whose reports can be read.
const READABLE: [&str; 2] = ["json", "sse"];

/// Why the parameter is refused, if it is.
pub(super) fn problem(route: &Route, name: &str, value: &str) -> Option<&'static str> {
    if ApiKey::parse(value).is_ok() {
        return Some("is an API key; send it in a header, because URLs end up in logs");
    }
    let plain_name = plain(name);
    let mut declared = route.params.iter().filter(|param| param.location == ParamLocation::Query);
    if declared.any(|param| plain(&param.name) == plain_name) {
        return Some("reads like a declared parameter; spell it exactly as the catalogue does");
    }
    let folded = fold(name);
    if OVERRIDES.contains(&folded.as_str()) {
        return Some("could make the service run another request");
    }
    // LiteLLM takes the model from there, whatever the body contains.
    if plain_name == "model" && route.usage_price().is_some_and(|price| price.is_by_model()) {
        return Some("could choose another model than the one that has the price");
    }
    let reports_in_body = route.usage_price().is_some_and(|price| price.report().needs_body());
    let hides = RESHAPES.contains(&folded.as_str()) || FORMATS.contains(&folded.as_str()) && !READABLE.contains(&value);
    (reports_in_body && hides).then_some("could keep the cost out of the response")
}

/// A name as lenient servers read it: PHP turns dots, spaces and brackets into underscores, and cuts `name[]` off.
fn plain(name: &str) -> String {
    let folded = fold(name);
    let start = folded.split('[').next().unwrap_or_default();
    start.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
}
