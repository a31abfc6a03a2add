//! Which upstreams serve a route: by name, in the order in which they are tried.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::object::{Object, UnknownKeys, documentation, member};
use super::problem::Problems;
use crate::catalogue::free_statuses::FreeStatuses;

/// The key of a route, and of the file for routes that do not set it.
pub(super) const KEY: &str = "upstream";
/// Whether a request that may have reached an upstream is sent to the next one, whatever its method, and after which
/// other statuses it is.
pub(super) const RETRY_KEY: &str = "retry";

const NAME_MAX: usize = 40;

/// The upstreams of a route, as steps: the next step is for requests that the one before could not serve. The upstreams
/// of one step share its requests by their weights.
///
/// ```
/// use metering_core::Catalogue;
///
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [
///         {"path": "/a", "method": "GET", "metered": true, "upstream": "eu"},
///         {"path": "/b", "method": "POST", "metered": true, "upstream": [["eu", "us"], "backup"], "retry": true}]}"#,
/// )?;
/// let [a, b] = catalogue.routes() else { panic!("the file has two routes") };
/// assert_eq!(a.upstreams.as_ref().map(|upstreams| upstreams.steps()), Some(&[vec!["eu".to_owned()]][..]));
/// let b = b.upstreams.as_ref().ok_or("it has upstreams")?;
/// assert_eq!((b.steps().len(), b.names().count(), b.retries()), (2, 3, true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteUpstreams {
    steps: Arc<[Vec<String>]>,
    retries: bool,
    /// Which responses cause failover to the next upstream. Always-free statuses are included.
    retried_statuses: Option<FreeStatuses>,
}

impl RouteUpstreams {
    /// The names of each step. No step is empty, and no name occurs twice.
    #[must_use]
    pub fn steps(&self) -> &[Vec<String>] {
        &self.steps
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().flatten().map(String::as_str)
    }

    /// Whether a request that may have reached an upstream is sent to the next one although its method is not idempotent.
    #[must_use]
    pub const fn retries(&self) -> bool {
        self.retries
    }

    /// Whether a response with this status causes failover to the next upstream, although it could be passed on.
    ///
    /// ```
    /// use metering_core::Catalogue;
    ///
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [
    ///         {"path": "/a", "method": "POST", "metered": true, "upstream": ["eu", "us"], "retry": [429, 529]}]}"#,
    /// )?;
    /// let upstreams = catalogue.routes()[0].upstreams.as_ref().ok_or("it has upstreams")?;
    /// assert!(upstreams.retries() && upstreams.goes_on_after(429) && !upstreams.goes_on_after(500));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn goes_on_after(&self, status: u16) -> bool {
        self.retried_statuses.as_ref().is_some_and(|statuses| statuses.contains(status))
    }

    /// Reads `upstream` of the file: the upstreams of routes that name none.
    pub(super) fn read_default(file: &Object<'_>, unknown: UnknownKeys) -> Result<Option<Self>, Problems> {
        documentation(read_steps(file), unknown)
            .map(|steps| steps.map(|steps| Self { steps, retries: false, retried_statuses: None }))
    }

    /// Reads `upstream` and `retry` of a route. `default` is for a route that names none.
    pub(super) fn read(
        endpoint: &Object<'_>,
        default: Option<&Self>,
        unknown: UnknownKeys,
    ) -> Result<Option<Self>, Problems> {
        let own = documentation(read_steps(endpoint), unknown)?;
        let (retries, retried_statuses) = documentation(read_retry(endpoint), unknown)?.unwrap_or_default();
        let steps = own.or_else(|| default.map(|default| Arc::clone(&default.steps)));
        let upstreams = steps.map(|steps| Self { steps, retries, retried_statuses });
        let has_next = upstreams.as_ref().is_some_and(|upstreams| upstreams.names().nth(1).is_some());
        if retries && !has_next && unknown == UnknownKeys::Refuse {
            return Err(format!("{RETRY_KEY} has no effect on a route with one upstream; list another in {KEY}").into());
        }
        Ok(upstreams)
    }
}

/// `true`, or a list of statuses.
fn read_retry(endpoint: &Object<'_>) -> Result<Option<(bool, Option<FreeStatuses>)>, String> {
    match member(endpoint, RETRY_KEY)?.map(RawValue::get) {
        None => Ok(None),
        Some("[]") => Err(format!("{RETRY_KEY}: the list must not be empty; without statuses, write true")),
        Some(list) if list.starts_with('[') => Ok(Some((true, FreeStatuses::read_as(endpoint, RETRY_KEY)?))),
        Some(_) => Ok(endpoint.get::<bool>(RETRY_KEY)?.map(|retries| (retries, None))),
    }
}

/// A name, or a list of names and of lists of names.
fn read_steps(object: &Object<'_>) -> Result<Option<Arc<[Vec<String>]>>, Problems> {
    let Some(value) = member(object, KEY)? else { return Ok(None) };
    let location = object.location_of(KEY);
    let is_list = |value: &RawValue| value.get().starts_with('[');
    let text = |value: &RawValue| {
        let wrong = || format!("{location}: must be a name, or a list of names and lists of names");
        serde_json::from_str::<String>(value.get()).map_err(|_| wrong())
    };
    let list = |value| serde_json::from_str::<Vec<&RawValue>>(value).map_err(|_| format!("{location}: not a list"));
    let mut problems = Problems::default();
    let values = if is_list(value) { list(value.get())? } else { vec![value] };
    let mut steps = Vec::with_capacity(values.len());
    for value in values {
        let names = if is_list(value) { list(value.get())? } else { vec![value] };
        steps.push(names.into_iter().map(text).collect::<Result<Vec<_>, _>>()?);
    }
    if steps.is_empty() || steps.iter().any(Vec::is_empty) {
        problems.add(format!("{location}: a list of upstreams must not be empty"));
    }
    let mut known: Vec<&str> = Vec::new();
    for name in steps.iter().flatten() {
        if !is_upstream_name(name) {
            problems
                .add(format!("{location}: {name:?} is not a name of 1 to {NAME_MAX} characters of A-Z a-z 0-9 . _ -"));
        } else if known.contains(&name.as_str()) {
            problems.add(format!("{location}: {name} is listed twice"));
        }
        known.push(name);
    }
    problems.or(|| Some(Some(steps.into())))
}

/// Whether an upstream can have this name. Names are values of headers and of the labels of metrics.
///
/// ```
/// use metering_core::catalogue::is_upstream_name;
///
/// assert!(is_upstream_name("eu-1.example"));
/// assert!(!is_upstream_name("") && !is_upstream_name("a b"));
/// ```
#[must_use]
pub fn is_upstream_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use crate::catalogue::Catalogue;

    fn catalogue(file: &str, route: &str) -> String {
        format!(
            r#"{{"market": "M", "version": 1{file}, "endpoints": [
                {{"path": "/x", "method": "POST", "metered": true{route}}}]}}"#
        )
    }

    /// The steps of the route, and whether it retries.
    fn read(file: &str, route: &str) -> Result<Option<(String, bool)>, String> {
        let catalogue = Catalogue::from_json(&catalogue(file, route)).map_err(|error| error.to_string())?;
        let upstreams = catalogue.routes()[0].upstreams.as_ref();
        let step = |step: &Vec<String>| step.join("|");
        Ok(upstreams
            .map(|upstreams| (upstreams.steps().iter().map(step).collect::<Vec<_>>().join(", "), upstreams.retries())))
    }

    #[test]
    fn a_route_names_one_upstream_or_steps() {
        // file, route, steps, whether it retries
        let table = [
            ("", "", None),
            ("", r#", "upstream": null"#, None),
            ("", r#", "upstream": "a""#, Some(("a", false))),
            ("", r#", "upstream": ["a"]"#, Some(("a", false))),
            ("", r#", "upstream": ["a", "b"], "retry": true"#, Some(("a, b", true))),
            ("", r#", "upstream": [["a", "b"], "c"]"#, Some(("a|b, c", false))),
            (r#", "upstream": "d""#, "", Some(("d", false))),
            (r#", "upstream": "d""#, r#", "upstream": "a""#, Some(("a", false))),
            (r#", "upstream": ["d", "e"]"#, r#", "retry": true"#, Some(("d, e", true))),
        ];
        for (file, route, expected) in table {
            let expected = expected.map(|(steps, retries): (&str, bool)| (steps.to_owned(), retries));
            assert_eq!(read(file, route), Ok(expected), "{file} {route}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        // route, a part of the message
        let table = [
            (r#", "upstream": []"#, "upstream: a list of upstreams must not be empty"),
            (r#", "upstream": ["a", []]"#, "upstream: a list of upstreams must not be empty"),
            (r#", "upstream": ["a", ["b", "a"]]"#, "upstream: a is listed twice"),
            (r#", "upstream": 1"#, "upstream: must be a name, or a list"),
            (r#", "upstream": [[["a"]]]"#, "upstream: must be a name, or a list"),
            (r#", "upstream": "a b""#, "is not a name"),
            (r#", "retry": true"#, "retry has no effect on a route with one upstream"),
            (r#", "upstream": "a", "retry": true"#, "retry has no effect on a route with one upstream"),
            (r#", "upstream": ["a", "b"], "retry": []"#, "retry: the list must not be empty"),
            (r#", "upstream": ["a", "b"], "retry": ["6xx"]"#, "retry: \"6xx\" must be a status from 201 to 599"),
            (r#", "upstream": ["a", "b"], "retry": "yes""#, "retry: "),
            (r#", "upstreams": "a""#, "unknown key upstreams; did you mean upstream?"),
        ];
        for (route, part) in table {
            let error = read("", route).unwrap_err();
            assert!(error.contains(part) && error.contains("route POST /x"), "{route}: {error}");
        }
        assert!(read(r#", "upstream": []"#, "").unwrap_err().contains("must not be empty"));
    }

    #[test]
    fn newer_forms_of_other_servers_are_ignored() {
        let newer = catalogue(r#", "upstream": {"a": 1}"#, r#", "upstream": [{"name": "a"}], "retry": "always""#);
        let catalogue = Catalogue::from_published_json(&newer).unwrap();
        assert_eq!(catalogue.routes()[0].upstreams, None);
    }
}
