//! A table of endpoints: which one is at a path.

use std::sync::Arc;

use http::Method;

use super::row::{Endpoint, Request};
use crate::http::{Problem, Reply};

/// The endpoints of an API.
pub(crate) struct Table<A>(Vec<Endpoint<A>>);

impl<A> Table<A> {
    pub(crate) const fn new(endpoints: Vec<Endpoint<A>>) -> Self {
        Self(endpoints)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Endpoint<A>> {
        self.0.iter()
    }

    /// The endpoints at a path, one per method, with the values of the path's parameters. A trailing slash makes no
    /// difference. Endpoints whose own path is this one hide those that match it with a parameter: `/keys/leaked` is
    /// not a `/keys/{id}`.
    pub(crate) fn at(&self, path: &str) -> impl Iterator<Item = (&Endpoint<A>, Vec<String>)> {
        let at = move |endpoint| Some((endpoint, Endpoint::parameters(endpoint, path)?));
        let is_literal = self.0.iter().filter_map(at).any(|(_, parameters)| parameters.is_empty());
        self.0.iter().filter_map(at).filter(move |(_, parameters)| parameters.is_empty() || !is_literal)
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
