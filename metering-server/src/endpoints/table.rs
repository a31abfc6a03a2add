//! A table of endpoints: which one is at a path.

use std::collections::BTreeMap;

use http::Method;
use matchit::Router;
use percent_encoding::percent_decode_str;

use super::row::{Endpoint, Request};
use crate::http::{Problem, Reply};

/// The endpoints of an API.
pub(crate) struct Table<A> {
    endpoints: Vec<Endpoint<A>>,
    /// The places in `endpoints` of those at a path, one per method.
    router: Router<Vec<usize>>,
}

/// The endpoints at the path of a request, one per method, and the values of the path's parameters.
pub(crate) struct Found<'t, A> {
    endpoints: &'t [Endpoint<A>],
    places: &'t [usize],
    /// In order, decoded.
    parameters: Vec<String>,
}

impl<A> Table<A> {
    pub(crate) fn new(endpoints: Vec<Endpoint<A>>) -> Self {
        let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, endpoint) in endpoints.iter().enumerate() {
            places.entry(numbered(&endpoint.path, endpoint.has_slashes)).or_default().push(place);
        }
        let mut router = Router::new();
        for (path, places) in places {
            router.insert(path, places).expect("no two paths match the same requests");
        }
        Self { endpoints, router }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Endpoint<A>> {
        self.endpoints.iter()
    }

    /// The endpoints at a path; `None` if there are none. A trailing slash makes no difference. Endpoints whose own path
    /// is this one hide those that match it with a parameter: `/keys/leaked` is not a `/keys/{id}`.
    pub(crate) fn at(&self, path: &str) -> Option<Found<'_, A>> {
        let found = self.router.at(path.strip_suffix('/').unwrap_or(path)).ok()?;
        let values =
            found.params.iter().map(|(_, value)| Some(percent_decode_str(value).decode_utf8().ok()?.into_owned()));
        let parameters = values.collect::<Option<Vec<_>>>()?;
        Some(Found { endpoints: &self.endpoints, places: found.value, parameters })
    }
}

impl<'t, A> Found<'t, A> {
    /// The endpoints, one per method.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &'t Endpoint<A>> + use<'t, A> {
        let endpoints = self.endpoints;
        self.places.iter().map(move |place| &endpoints[*place])
    }

    /// The values of the path's parameters, in order, decoded.
    #[cfg(test)]
    pub(crate) fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// Whether every process serves the path, whichever surfaces it is configured for. It must be written as that of the
    /// endpoint, without a trailing slash.
    pub(crate) fn is_everywhere(&self, path: &str) -> bool {
        self.endpoints().any(|endpoint| endpoint.is_everywhere && endpoint.path == path)
    }

    /// Whether the path supports `HEAD`.
    pub(crate) fn takes_head(&self) -> bool {
        self.endpoints().any(|endpoint| endpoint.takes_head)
    }

    /// Whether the session of a signed-in browser may replace the key of a request with this method.
    pub(crate) fn takes_session(&self, method: &Method) -> bool {
        self.endpoints().any(|endpoint| endpoint.takes_session && endpoint.method == *method)
    }

    /// The name of the call with this method, and the values in its path, for the log of an account.
    pub(crate) fn named(&self, method: &Method) -> (&'static str, String) {
        let id = self.endpoints().find(|endpoint| endpoint.method == *method).map_or("", |endpoint| endpoint.id);
        (id, self.parameters.join(" "))
    }

    /// Whether responses of the path may be compressed.
    pub(crate) fn is_compressed(&self) -> bool {
        self.endpoints().any(|endpoint| endpoint.is_compressed)
    }

    /// Calls the endpoint with this method. `request.path` is filled in here.
    ///
    /// # Errors
    /// Those of the handler; 405 when no endpoint has this method.
    pub(crate) async fn call(self, app: &A, method: &Method, mut request: Request) -> Result<Reply, Problem> {
        let Some(endpoint) = self.endpoints().find(|endpoint| endpoint.method == *method) else {
            return Err(self.not_allowed());
        };
        request.path = self.parameters;
        (endpoint.handler)(app, request).await
    }

    fn not_allowed(&self) -> Problem {
        let mut methods = Vec::new();
        for endpoint in self.endpoints() {
            methods.push(endpoint.method.as_str());
            methods.extend(endpoint.takes_head.then_some("HEAD"));
        }
        Problem::method_not_allowed(&methods)
    }
}

/// A path whose parameters are named by their places: the router takes two names at the same place for a conflict.
fn numbered(path: &str, has_slashes: bool) -> String {
    let last = path.split('/').count() - 1;
    let segment = |(place, segment): (usize, &str)| match segment.starts_with('{') {
        true if has_slashes && place == last => format!("{{*{place}}}"),
        true => format!("{{{place}}}"),
        false => segment.to_owned(),
    };
    path.split('/').enumerate().map(segment).collect::<Vec<_>>().join("/")
}
