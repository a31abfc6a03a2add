//! Calls from web pages of other origins, whose browsers ask the server first (CORS, the Fetch standard).
//!
//! Pages send the key in a header that they set themselves. No cookie stands for a visitor here, so that what a page is
//! let do is what its own key allows.

use std::convert::Infallible;
use std::time::Duration;

use http::{HeaderValue, Request, header};
use tower::service_fn;
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer, ExposeHeaders};
use tower_layer::Layer;
use tower_service::Service;

use crate::config::WebOrigin;
use crate::http::Response;

/// How long a browser may go without asking again.
const REMEMBERED: Duration = Duration::from_hours(1);

/// The origins whose pages may call.
#[derive(Debug, Clone)]
pub(crate) struct CrossOrigin {
    origins: Vec<HeaderValue>,
    layer: CorsLayer,
}

impl CrossOrigin {
    pub(crate) fn new<'o>(origins: impl IntoIterator<Item = &'o WebOrigin>) -> Self {
        let origins: Vec<_> =
            origins.into_iter().filter_map(|origin| HeaderValue::try_from(origin.as_str()).ok()).collect();
        // What may be sent depends on the API behind the gateway; what is sent is looked at when it comes.
        let layer = CorsLayer::new()
            .allow_origin(AllowOrigin::list(origins.iter().cloned()))
            .allow_methods(AllowMethods::mirror_request())
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers(ExposeHeaders::any())
            .max_age(REMEMBERED);
        Self { origins, layer }
    }

    /// Answers what a browser asks before a page's request, and lets the page read the answer to that request. What
    /// comes from anywhere else is answered as if this were not here.
    pub(crate) async fn answer<B, F>(&self, request: Request<B>, mut answer: impl FnMut(Request<B>) -> F) -> Response
    where
        F: Future<Output = Response>,
    {
        let origin = request.headers().get(header::ORIGIN);
        if origin.is_none_or(|origin| !self.origins.contains(origin)) {
            return answer(request).await;
        }
        let answering = service_fn(|request| {
            let answer = answer(request);
            async { Ok::<_, Infallible>(answer.await) }
        });
        match self.layer.layer(answering).call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}
