//! Catalogues, and requests for the routes of accepted ones.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metering_core::catalogue::RequestPath;
use metering_core::{Catalogue, Credits};

fuzz_target!(|text: &str| {
    let Ok(catalogue) = Catalogue::from_json(text) else { return };
    for route in catalogue.routes() {
        // A template without braces is its own target route, unless a parameter's name is not a valid value.
        let target = route.template.replace(['{', '}'], "");
        let Ok(path) = RequestPath::parse(&target) else { continue };
        if let Ok(resolved) = catalogue.resolve(&route.method, &path, None) {
            assert!(resolved.price >= Credits::ZERO, "{} has a negative price", route.template);
        }
    }
});
