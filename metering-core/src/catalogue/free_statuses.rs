//! Which responses cost nothing, by their status.
//!
//! A fixed price is taken before the response is known. Stock clients send a request again after 429 and 5xx, so by
//! default these are free: otherwise one call would be paid three times.

use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::object::{Object, member};

/// The statuses of responses that are passed on and cost nothing: the charge is refunded, or what is held is released.
///
/// By default these are 429 and 5xx. 502, 503 and 504 are always included: they mean that the request was not served.
///
/// ```
/// use metering_core::Catalogue;
///
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [
///         {"path": "/a", "method": "GET", "metered": true},
///         {"path": "/b", "method": "GET", "metered": true, "free_statuses": ["4xx", 500]}]}"#,
/// )?;
/// let [a, b] = catalogue.routes() else { panic!("the file has two routes") };
/// assert_eq!([404, 429, 500, 501].map(|status| a.free_statuses.contains(status)), [false, true, true, true]);
/// assert_eq!([404, 429, 500, 501].map(|status| b.free_statuses.contains(status)), [true, true, true, false]);
/// assert_eq!(a.free_statuses.to_string(), "429, 5xx");
/// # Ok::<(), metering_core::catalogue::CatalogueError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeStatuses(Arc<[Listed]>);

/// An entry of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listed {
    /// A status.
    Status(u16),
    /// All statuses with this first digit.
    Class(u16),
}

/// Whether a response with this status means that the request was not served. Only 502, 503 and 504 do; every other
/// response counts as delivered, although it may be free.
#[must_use]
pub(crate) const fn is_undelivered(status: u16) -> bool {
    matches!(status, 502..=504)
}

impl FreeStatuses {
    /// Whether a request with a response of this status costs nothing.
    #[must_use]
    pub fn contains(&self, status: u16) -> bool {
        let is_listed = |listed: &Listed| match *listed {
            Listed::Status(listed) => status == listed,
            Listed::Class(class) => status / 100 == class,
        };
        is_undelivered(status) || self.0.iter().any(is_listed)
    }

    /// The entries as the catalogue writes them: `429` or `5xx`.
    pub fn entries(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(ToString::to_string)
    }

    /// Reads `free_statuses` of a route or of the file; `None` if it is not there.
    pub(super) fn read(object: &Object<'_>) -> Result<Option<Self>, String> {
        Self::read_as(object, KEY)
    }

    /// Reads a list of statuses that has another key.
    pub(super) fn read_as(object: &Object<'_>, key: &str) -> Result<Option<Self>, String> {
        if member(object, key)?.is_none() {
            return Ok(None);
        }
        let entries: Vec<&RawValue> = object.get(key)?.unwrap_or_default();
        entries.into_iter().map(|entry| Listed::read(entry, key)).collect::<Result<_, _>>().map(Self).map(Some)
    }
}

impl Default for FreeStatuses {
    fn default() -> Self {
        Self([Listed::Status(429), Listed::Class(5)].into())
    }
}

impl fmt::Display for FreeStatuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.entries().collect::<Vec<_>>().join(", "))
    }
}

/// The key of the list in a catalogue file.
pub(super) const KEY: &str = "free_statuses";

impl Listed {
    /// A number, or a class such as `"5xx"`, which OpenAPI writes `5XX`. Clients pay for successes.
    fn read(entry: &RawValue, key: &str) -> Result<Self, String> {
        let text: String = serde_json::from_str(entry.get()).unwrap_or_default();
        match (entry.get().parse(), text.to_ascii_lowercase().as_str()) {
            (Ok(status @ 201..=599), _) => Ok(Self::Status(status)),
            (_, "3xx") => Ok(Self::Class(3)),
            (_, "4xx") => Ok(Self::Class(4)),
            (_, "5xx") => Ok(Self::Class(5)),
            _ => {
                Err(format!("{key}: {} must be a status from 201 to 599, or \"3xx\", \"4xx\" or \"5xx\"", entry.get()))
            }
        }
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::Class(class) => write!(f, "{class}xx"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::catalogue::Catalogue;

    /// A catalogue with one route.
    fn catalogue(file: &str, route: &str) -> Result<Catalogue, String> {
        let route = format!(r#"{{"path": "/x", "method": "GET", "metered": true{route}}}"#);
        let text = format!(r#"{{"market": "M", "version": 1{file}, "endpoints": [{route}]}}"#);
        Catalogue::from_json(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_routes_list_replaces_that_of_the_file_which_replaces_the_default() {
        let (four, five) = (r#", "free_statuses": ["4XX", 304]"#, r#", "free_statuses": [500]"#);
        let none = r#", "free_statuses": []"#;
        // the file, the route, the free statuses among these
        let statuses = [200, 304, 404, 429, 499, 500, 502, 503, 504, 599];
        let table: [(&str, &str, &[u16]); 6] = [
            ("", "", &[429, 500, 502, 503, 504, 599]),
            (four, "", &[304, 404, 429, 499, 502, 503, 504]),
            ("", five, &[500, 502, 503, 504]),
            (four, five, &[500, 502, 503, 504]),
            (four, none, &[502, 503, 504]),
            (four, r#", "free_statuses": null"#, &[304, 404, 429, 499, 502, 503, 504]),
        ];
        for (file, route, free) in table {
            let catalogue = catalogue(file, route).unwrap();
            let of_route = &catalogue.routes()[0].free_statuses;
            let found: Vec<_> = statuses.into_iter().filter(|status| of_route.contains(*status)).collect();
            assert_eq!(found, free, "{file} {route}");
        }
    }

    #[test]
    fn what_is_no_status_is_refused_and_ignored_in_catalogues_of_others() {
        for wrong in ["200", "\"2xx\"", "\"429\"", "600", "4.5", "\"5x\"", "null", "true"] {
            let list = format!(r#", "free_statuses": [404, {wrong}]"#);
            for refused in [catalogue("", &list), catalogue(&list, "")] {
                assert!(refused.unwrap_err().contains(&format!("free_statuses: {wrong} must be")), "{wrong}");
            }
        }
        assert!(catalogue(r#", "free_statuses": "5xx""#, "").unwrap_err().contains("free_statuses: "));
        let unmetered = r#"{"market": "M", "version": 1, "endpoints": [
            {"path": "/x", "method": "GET", "metered": false, "free_statuses": [404]}]}"#;
        assert!(Catalogue::from_json(unmetered).unwrap_err().to_string().contains("free_statuses has no effect"));
        let newer = r#"{"market": "M", "version": 1, "free_statuses": "all", "endpoints": [
            {"path": "/x", "method": "GET", "metered": true, "free_statuses": ["6xx"]}]}"#;
        let catalogue = Catalogue::from_published_json(newer).unwrap();
        assert_eq!(catalogue.routes()[0].free_statuses.to_string(), "429, 5xx");
    }
}
