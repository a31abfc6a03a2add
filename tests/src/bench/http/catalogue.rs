//! The unmetered twin's catalogue: the server's own with one route made free.

use serde_json::Value;

use crate::bench::Failure;

/// The default catalogue with the `GET` route `template` made free.
pub(super) fn with_free_route(template: &str) -> Result<String, Failure> {
    let mut catalogue: Value = serde_json::from_str(metering_sample::ROUTES)?;
    let endpoints = catalogue["endpoints"].as_array_mut().ok_or("the catalogue has no endpoints")?;
    let route = endpoints.iter_mut().find(|route| route["path"] == template && route["method"] == "GET");
    let metered = route
        .ok_or_else(|| format!("no route {template}"))?
        .get_mut("metered")
        .ok_or("the route has no field `metered`")?;
    *metered = false.into();
    Ok(catalogue.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use metering_core::Catalogue;

    #[test]
    fn only_the_named_route_becomes_free() {
        let free = with_free_route("/mpp/ethPrice/{block_number}").unwrap();
        let (free, default) =
            (Catalogue::from_json(&free).unwrap(), Catalogue::from_json(metering_sample::ROUTES).unwrap());
        assert_eq!(free.routes().len(), default.routes().len());
        for (free, default) in free.routes().iter().zip(default.routes()) {
            assert_eq!(free.template, default.template);
            assert_eq!(free.metered, &*free.template != "/mpp/ethPrice/{block_number}", "{}", free.template);
            assert!(default.metered);
        }
        assert!(with_free_route("/mpp/other").is_err());
    }
}
