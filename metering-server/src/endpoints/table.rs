//! A table of endpoints: which one is at a path.

use std::collections::BTreeMap;
use std::sync::Arc;

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

impl<A> Table<A> {
    pub(crate) fn new(endpoints: Vec<Endpoint<A>>) -> Self {
        let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, endpoint) in endpoints.iter().enumerate() {
            places.entry(numbered(&endpoint.path)).or_default().push(place);
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

    /// The endpoints at a path, one per method, with the values of the path's parameters. A trailing slash makes no
    /// difference. Endpoints whose own path is this one hide those that match it with a parameter: `/keys/leaked` is
    /// not a `/keys/{id}`.
    pub(crate) fn at(&self, path: &str) -> impl Iterator<Item = (&Endpoint<A>, Vec<String>)> {
        let found = self.router.at(path.strip_suffix('/').unwrap_or(path)).ok();
        let decoded = found.and_then(|found| {
            let values = found.params.iter().map(|(_, value)| percent_decode_str(value).decode_utf8());
            let values: Option<Vec<String>> = values.map(|value| Some(value.ok()?.into_owned())).collect();
            Some((found.value, values?))
        });
        let (places, values) = decoded.map_or((&[][..], Vec::new()), |(places, values)| (places.as_slice(), values));
        places.iter().map(move |place| (&self.endpoints[*place], values.clone()))
    }

    /// Calls the endpoint of a request. `request.path` is filled in here.
    ///
    /// # Errors
    /// Those of the handler; 405 for a known path, 404 for an unknown one.
    pub(crate) async fn call(
        &self,
        app: &Arc<A>,
        method: &Method,
        path: &str,
        request: Request,
    ) -> Result<Reply, Problem> {
        let found = self.at(path).find(|(endpoint, _)| endpoint.method == *method);
        match found {
            Some((endpoint, parameters)) => (endpoint.handler)(app, Request { path: parameters, ..request }).await,
            None => Err(self.unmatched(path)),
        }
    }

    fn unmatched(&self, path: &str) -> Problem {
        let mut methods = Vec::new();
        for (endpoint, _) in self.at(path) {
            methods.push(endpoint.method.as_str());
            methods.extend(endpoint.takes_head.then_some("HEAD"));
        }
        if methods.is_empty() { Problem::not_found() } else { Problem::method_not_allowed(&methods) }
    }
}

/// A path whose parameters are named by their places: the router takes two names at the same place for a conflict.
fn numbered(path: &str) -> String {
    let segment = |(place, segment): (usize, &str)| match segment.starts_with('{') {
        true => format!("{{{place}}}"),
        false => segment.to_owned(),
    };
    path.split('/').enumerate().map(segment).collect::<Vec<_>>().join("/")
}
