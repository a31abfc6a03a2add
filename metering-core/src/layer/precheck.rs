//! Refuses requests before their body is read.

use http::Response;
use http::request::Parts;

use super::MeteringLayer;
use super::head::{address, request_head};
use super::outgoing::Outgoing;
use super::received::Received;
use crate::access::credentials::Credentials;
use crate::charging::replay::Retry;
use crate::service::ChallengeClient;

impl MeteringLayer {
    /// Refuses a request by its head alone, if the layer would refuse it whatever its body: 401, 402, 403, 404, 405 or
    /// 429. For services that read bodies before the layer, for a [`RequestBody`](crate::RequestBody): they need not
    /// read bodies of clients without a key or credits, and a client that waits for `100 Continue` is not told to send
    /// its body (RFC 9110, section 10.1.1).
    ///
    /// It reads the store at most once, and does not charge or count anything. The hook of [`on_match`](Self::on_match)
    /// is not called. A request that passes may still be refused by the layer.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use http::{Request, StatusCode};
    /// use metering_core::{Catalogue, MemoryStore, MeteringLayer, Service, ServiceConfig};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let catalogue = Catalogue::from_json(
    /// #     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/chat", "method": "POST", "metered": true}]}"#,
    /// # )?;
    /// # let service = Arc::new(Service::start(Arc::new(MemoryStore::new()), catalogue, ServiceConfig::default()));
    /// let layer = MeteringLayer::new(service);
    /// let (mut head, _unread) = Request::post("/chat").body("a large body")?.into_parts();
    /// let Err(refusal) = layer.precheck::<String>(&mut head).await else { return Err("it has no key".into()) };
    /// assert_eq!(refusal.status(), StatusCode::UNAUTHORIZED);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The response to a request that is refused.
    pub async fn precheck<R: From<String>>(&self, head: &mut Parts) -> Result<(), Response<R>> {
        let received = Received::of(&head.headers);
        let mut outgoing = Outgoing::new(head, received, || self.service.access().now());
        let head = &*head;
        let values = |name: &'static str| received.values(&head.headers, name);
        let credentials = Credentials::read(values);
        let found =
            self.service.find(request_head((&head.method, &head.uri), &credentials, address(&head.extensions), None));
        if self.passes_others && found.is_uncovered() {
            return Ok(());
        }
        outgoing.is_for(found.route(), || self.service.catalogue().errors_near(head.uri.path()));
        // Read for refusals only: it hashes the key.
        let client = || ChallengeClient::read(values, credentials.key.as_ref());
        let route = found.route();
        let offers = self.service.offers();
        let presented = match offers.read(values) {
            Ok(presented) => presented,
            Err(error) => return Err(outgoing.finish(self.refusal(&head.uri, route, &error, client(), None))),
        };
        // As in `admit`: a client that sends a key means to use that key.
        let is_sound = credentials.fault.is_none();
        let found = found.paid_with(presented.as_deref().filter(|_| is_sound)).at_most(credentials.max_cost);
        let found = found.signed_in_with(offers.sign_in(values).filter(|_| is_sound));
        match found.precheck(Retry::read(values)).await {
            Ok(()) => Ok(()),
            Err(error) => {
                let error = credentials.explain(error);
                Err(outgoing.finish(self.refusal(&head.uri, route, &error, client(), presented.as_deref())))
            }
        }
    }
}
