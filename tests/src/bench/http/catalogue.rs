//! The routes of the unmetered twin: the server's own catalogue with one word changed.

use serde_json::Value;

use crate::bench::Failure;

/// What a server without a catalogue of its own uses.
const DEFAULT: &str = include_str!("../../../../metering-server/assets/routes.json");

/// The default catalogue with the route `template` (GET) as one that is free.
pub(super) fn with_free_route(template: &str) -> Result<String, Failure> {
    let mut catalogue: Value = serde_json::from_str(DEFAULT)?;
    let endpoints = catalogue["endpoints"].as_array_mut().ok_or("a catalogue has endpoints")?;
    let route = endpoints.iter_mut().find(|route| route["path"] == template && route["method"] == "GET");
    let metered = route.ok_or_else(|| format!("no route {template}"))?.get_mut("metered").ok_or("it is metered")?;
    *metered = false.into();
    Ok(catalogue.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use metering_core::Catalogue;

    #[test]
    fn one_route_is_free_and_all_else_is_as_it_was() {
        let free = with_free_route("/mpp/ethPrice/{block_number}").unwrap();
        let (free, default) = (Catalogue::from_json(&free).unwrap(), Catalogue::from_json(DEFAULT).unwrap());
        assert_eq!(free.routes().len(), default.routes().len());
        for (free, default) in free.routes().iter().zip(default.routes()) {
            assert_eq!(free.template, default.template);
            assert_eq!(free.metered, &*free.template != "/mpp/ethPrice/{block_number}", "{}", free.template);
            assert!(default.metered);
        }
        assert!(with_free_route("/mpp/other").is_err());
    }
}
