//! The response details of a refusal, kept for a request that starts before its charge is decided. The refusal is the
//! same as without that.

use std::sync::Arc;

use http::{Response, Uri};

use super::refusal;
use crate::catalogue::route::Route;
use crate::error::Error;
use crate::service::ChallengeClient;
use crate::service::metering::Service;

/// The parts of a request that its refusal depends on. Such a request has no payment.
pub(super) struct LateRefusal {
    uri: Uri,
    method: Arc<str>,
    template: Arc<str>,
    client: ChallengeClient,
}

impl LateRefusal {
    /// `uri` is as the client spelled it.
    pub(super) fn new(uri: &Uri, route: &Route, client: ChallengeClient) -> Self {
        Self { uri: uri.clone(), method: Arc::clone(&route.method), template: Arc::clone(&route.template), client }
    }

    pub(super) fn response<R: From<String>>(&self, service: &Service, error: &Error) -> Response<R> {
        let Self { uri, method, template, client } = self;
        let mut routes = service.catalogue().routes().iter();
        let route = routes.find(|route| route.method == *method && route.template == *template);
        refusal::response(service.offers(), (uri, route), error, *client, None)
    }
}
