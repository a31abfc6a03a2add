//! The routes that a server charges for.

use metering_config::read_catalogue;
use metering_core::Catalogue;
use metering_core::catalogue::CatalogueError;
use serde_json::Value;

use crate::api;
use crate::config::{Config, ConfigError, Surface};

/// First path segments, besides the API's, that the service uses or reserves for pages and tools. Catalogues cannot use
/// them.
const RESERVED: [&str; 8] = ["assets", "agents-tos", "docs", "mcp", "messages", "metering", "sse", "verify-receipt"];

/// The configured catalogue, or the default one.
///
/// # Errors
/// When the file cannot be read, or a path in it belongs to the service.
pub(crate) fn catalogue(config: &Config) -> Result<Catalogue, ConfigError> {
    let invalid = |problem: String| ConfigError::Key { key: "catalogue".to_owned(), problem };
    let catalogue = match &config.catalogue {
        None => built_in(config.upstream.is_none()).map_err(|error| invalid(error.to_string()))?,
        Some(file) => read_catalogue(file).map_err(|error| invalid(error.to_string()))?,
    };
    usable(catalogue, config).map_err(invalid)
}

/// The catalogue, if this server can serve it.
///
/// # Errors
/// Why it cannot.
pub(super) fn usable(catalogue: Catalogue, config: &Config) -> Result<Catalogue, String> {
    let problem = conflict(&catalogue, config);
    problem.map_or(Ok(catalogue), Err)
}

/// Why a server with this configuration cannot serve a valid catalogue.
pub(crate) fn conflict(catalogue: &Catalogue, config: &Config) -> Option<String> {
    let unauthorizable = || unauthorizable(catalogue, config);
    reserved_path(catalogue).or_else(unauthorizable).or_else(|| config.unserved_route(catalogue))
}

/// Why proxies cannot ask about the routes of a catalogue.
fn unauthorizable(catalogue: &Catalogue, config: &Config) -> Option<String> {
    if !config.serves(Surface::Authorize) {
        return None;
    }
    if catalogue.prefixes().contains("authorize") {
        return Some("paths under /authorize are reserved for the service".to_owned());
    }
    let by_usage = catalogue.routes().iter().find(|route| route.usage_price().is_some());
    let by_usage = by_usage.filter(|_| !config.authorize.settle)?;
    Some(format!("the price of {} depends on the response; set authorize.settle = true", by_usage.template))
}

/// Why a server cannot serve a catalogue next to its own paths.
fn reserved_path(catalogue: &Catalogue) -> Option<String> {
    let is_reserved = |prefix: &&str| RESERVED.contains(prefix) || api::has_first_segment(prefix);
    if let Some(prefix) = catalogue.prefixes().into_iter().find(is_reserved) {
        return Some(format!("paths under /{prefix} are reserved for the service"));
    }
    let variable = catalogue.prefixes().into_iter().find(|prefix| prefix.starts_with('{'));
    variable.map(|prefix| format!("the first segment of a path must be literal, not {prefix}"))
}

/// The built-in catalogue. Its responses and examples are those of the sample feed, so they are left out if another
/// upstream serves its routes.
fn built_in(with_sample: bool) -> Result<Catalogue, CatalogueError> {
    if with_sample {
        return Catalogue::from_json(metering_sample::ROUTES);
    }
    let mut file: Value = serde_json::from_str(metering_sample::ROUTES)?;
    for route in file["endpoints"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        route.remove("response");
        route.remove("example");
    }
    Catalogue::from_json(&file.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_of_the_service_are_refused_by_name() {
        let file = |path: &str| {
            let any = json!({"name": "any", "in": "path", "type": "string", "required": true, "description": "Any"});
            let params: Vec<_> = path.contains("{any}").then_some(any).into_iter().collect();
            let route = json!({"path": path, "method": "GET", "metered": true, "sse": false, "description": "A route",
                "group": "Routes", "params": params, "credit_weight": 1});
            json!({"market": "A_MARKET", "version": 3, "endpoints": [route]}).to_string()
        };
        let table = [
            ("/events", Some("paths under /events are reserved for the service")),
            ("/webhooks/{any}/prices", Some("paths under /webhooks are reserved for the service")),
            ("/.well-known/prices", Some("paths under /.well-known are reserved for the service")),
            ("/docs/prices", Some("paths under /docs are reserved for the service")),
            ("/{any}/prices", Some("the first segment of a path must be literal, not {any}")),
            ("/v1/events", None),
            ("/webhook", None),
        ];
        for (path, problem) in table {
            let catalogue = Catalogue::from_json(&file(path)).unwrap();
            assert_eq!(reserved_path(&catalogue).as_deref(), problem, "{path}");
        }
    }

    #[test]
    fn responses_of_the_sample_feed_are_left_out_for_another_upstream() {
        let [sample, other] = [true, false].map(|with_sample| built_in(with_sample).unwrap());
        assert!(sample.routes().iter().all(|route| route.response.is_some()));
        assert!(other.routes().iter().all(|route| route.response.is_none() && route.example.is_none()));
        assert!(!other.json().contains("\"response\""));
        let prices =
            |catalogue: &Catalogue| catalogue.routes().iter().map(|route| route.pricing.clone()).collect::<Vec<_>>();
        assert_eq!(prices(&sample), prices(&other));
    }
}
