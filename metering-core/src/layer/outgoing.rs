//! The last changes to every response of a route: a request id, errors in the shape of the route, and a `Cache-Control`
//! that keeps shared caches from storing it.

use http::request::Parts;
use http::{Extensions, HeaderName, HeaderValue, Response, header};

use super::anthropic_limits::set_anthropic_limits;
use super::header_value::header_value;
use super::privacy::Privacy;
use super::received::Received;
use crate::access::key::KeyHash;
use crate::catalogue::{ErrorShape, Route};
use crate::charging::{HoldId, RateStatus};
use crate::clock::Timestamp;
use crate::random::SystemRandomness;
use crate::service::AdmissionKind;
use crate::wire::{ErrorBody, REQUEST_ID_HEADER};

/// The response headers that carry a request's id, from us or from an upstream.
const ID_HEADERS: [&str; 2] = ["x-request-id", "request-id"];

/// The known facts about the response to a request.
pub(super) struct Outgoing {
    /// The id of the request. What is held for it has the same.
    pub(super) id: HoldId,
    /// `None` if the response is passed on unchanged.
    shape: Option<ErrorShape>,
    privacy: Privacy,
}

impl Outgoing {
    /// Uses the given id of the request, and generates one if there is none.
    pub(super) fn new(head: &mut Parts, received: Received, now: impl FnOnce() -> Timestamp) -> Self {
        let id = *head.extensions.get_or_insert_with(|| HoldId::at(now(), &SystemRandomness));
        Self { id, shape: Some(ErrorShape::Own), privacy: Privacy::of_received(received) }
    }

    /// The request matches this route, or none with `near` as the shape of its errors.
    pub(super) fn is_for(&mut self, route: Option<&Route>, near: impl FnOnce() -> ErrorShape) {
        self.shape = Some(route.map_or_else(near, |route| route.errors));
    }

    /// Call it once the request is admitted: its id then names the charge, unless it has an id of another kind. `before` is
    /// a time before the charge.
    pub(super) fn is_charged(
        &mut self,
        (kind, route): (&AdmissionKind, &Route),
        key: &KeyHash,
        before: Timestamp,
        extensions: &mut Extensions,
    ) {
        let receipt = match kind {
            AdmissionKind::Charged(receipt) => Some(receipt),
            AdmissionKind::Early(early) => Some(early.receipt()),
            AdmissionKind::Expected(_) => None,
            AdmissionKind::Held(_) | AdmissionKind::Free => return,
        };
        // A hold has an id of its own. A repeated response was charged to an earlier request.
        if self.id.names_charge() || receipt.is_some_and(|receipt| receipt.repeated || receipt.hold.is_some()) {
            return;
        }
        let at = receipt.map_or(before, |receipt| receipt.rate.at);
        self.id = self.id.of_charge(key, &route.template, at, receipt.is_some());
        if let Some(id) = extensions.get_mut::<HoldId>() {
            *id = self.id;
        }
    }

    /// The response does not come from a route of the catalogue.
    pub(super) fn pass(&mut self) {
        self.shape = None;
    }

    pub(super) fn finish<R: From<String>>(&self, response: Response<R>) -> Response<R> {
        match self.shape {
            Some(shape) => {
                let mut response = shape.finish(response, self.id);
                self.privacy.protect(response.headers_mut());
                if shape != ErrorShape::Own {
                    // For the time after the head: a stream may be cut off.
                    response.extensions_mut().insert(shape);
                    response.extensions_mut().insert(self.id);
                }
                response
            }
            None => response,
        }
    }
}

impl ErrorShape {
    /// Finishes a response: an error of this service gets this shape, and every response the id of its request, in the
    /// header that clients of this shape read. An id of the service behind the route is logged and left out.
    ///
    /// [`MeteringLayer`](crate::MeteringLayer) does so for its own responses. Call it for errors of a neighbouring
    /// handler.
    ///
    /// ```
    /// use metering_core::Error;
    /// use metering_core::catalogue::ErrorShape;
    /// use metering_core::charging::HoldId;
    /// # use metering_core::SystemRandomness;
    ///
    /// let id = HoldId::generate(&SystemRandomness);
    /// let response: http::Response<String> = ErrorShape::Problem.finish(Error::Overloaded.to_response(), id);
    /// assert_eq!(response.headers()["content-type"], "application/problem+json");
    /// assert_eq!(response.headers()["x-request-id"], id.to_string());
    /// assert!(response.body().contains(r#""title":"Service Unavailable""#));
    /// ```
    #[must_use]
    pub fn finish<R: From<String>>(self, mut response: Response<R>, id: HoldId) -> Response<R> {
        let status = response.status().as_u16();
        // A repeated request has the id of the one that holds its credits.
        let held = response.headers().get(REQUEST_ID_HEADER).filter(|held| held.to_str().is_ok()).cloned();
        let id = held.map_or_else(|| header_value(&id), Ok);
        let text = id.as_ref().ok().and_then(|id| id.to_str().ok()).unwrap_or_default();
        let theirs = ID_HEADERS.map(|name| response.headers_mut().remove(name));
        let theirs = theirs.iter().flatten().next();
        tracing::debug!(request_id = text, status, upstream_request_id = ?theirs, "responded to a request");
        if let Some(error) = response.extensions_mut().remove::<ErrorBody>() {
            if status >= 500 {
                tracing::info!(request_id = text, code = error.error.as_str(), "a request was not served");
            }
            if self == Self::Own {
                // For outer layers, which may add to it.
                response.extensions_mut().insert(error);
            } else {
                response = response.map(|_| R::from(self.document(&error, Some(text))));
                let kind = HeaderValue::from_static(self.content_type());
                response.headers_mut().insert(header::CONTENT_TYPE, kind);
                response.headers_mut().remove(header::CONTENT_LENGTH);
            }
        }
        if self == Self::Anthropic
            && let Some(rate) = response.extensions_mut().remove::<RateStatus>()
        {
            set_anthropic_limits(response.headers_mut(), &rate);
        }
        if let Ok(id) = id {
            response.headers_mut().insert(HeaderName::from_static(self.request_id_header()), id);
        }
        response
    }
}
