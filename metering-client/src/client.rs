//! Sends requests with a key, and separates responses from errors.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, header};
use metering_core::access::ClientAddress;
use metering_core::charging::IdempotencyKey;
use metering_core::operators::OperatorToken;
use metering_core::wire::call::{Call, has_body, target};
use metering_core::wire::{
    ACCEPT_PAYMENT_HEADER, AUTHORIZATION_HEADER, BILLING_SECRET_HEADER, IDEMPOTENCY_HEADER, SOURCE_HEADER,
};
use metering_core::{ApiKey, ClientSource};
use serde::Serialize;

use crate::error::ClientError;
use crate::events::Events;
use crate::response::{OpenResponse, Response, accepted};
use crate::transport::Transport;

/// Calls a service as one kind of client, with or without a key.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    source: ClientSource,
    key: Option<ApiKey>,
    operator: Option<OperatorToken>,
    idempotency_key: Option<IdempotencyKey>,
    address: Option<ClientAddress>,
    /// More headers of every request; their values are not printed.
    headers: HeaderMap,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { transport, source, key, operator, idempotency_key, address, headers } = self;
        f.debug_struct("Client")
            .field("transport", transport)
            .field("source", source)
            .field("key", &key.as_ref().map(ApiKey::hash))
            .field("operator", operator)
            .field("idempotency_key", idempotency_key)
            .field("address", address)
            .field("headers", headers)
            .finish()
    }
}

impl Client {
    /// A client without a key; usage records name it `source`.
    #[must_use]
    pub fn new(transport: Arc<dyn Transport>, source: ClientSource) -> Self {
        let headers = HeaderMap::new();
        Self { transport, source, key: None, operator: None, idempotency_key: None, address: None, headers }
    }

    /// This client, with a key.
    #[must_use]
    pub fn with_key(&self, key: ApiKey) -> Self {
        Self { key: Some(key), ..self.clone() }
    }

    /// This client, for the operators' API.
    #[must_use]
    pub fn with_operator(&self, token: OperatorToken) -> Self {
        Self { operator: Some(token), ..self.clone() }
    }

    /// This client, for calls that need a secret of the service instead of a key, such as the payments secret.
    ///
    /// # Errors
    /// When the secret cannot be sent as a header.
    pub fn with_billing_secret(&self, secret: &str) -> Result<Self, ClientError> {
        self.with_header(BILLING_SECRET_HEADER, secret)
    }

    /// This client, for one request that may have to be sent again: it is charged once.
    #[must_use]
    pub fn with_idempotency_key(&self, key: IdempotencyKey) -> Self {
        Self { idempotency_key: Some(key), ..self.clone() }
    }

    /// This client, on behalf of one at this address, which becomes an extension of every request. A transport within
    /// the process passes it on; [`HttpTransport`](crate::HttpTransport) does not.
    #[must_use]
    pub fn with_address(&self, address: ClientAddress) -> Self {
        Self { address: Some(address), ..self.clone() }
    }

    /// This client, under another name in usage records.
    pub(crate) fn with_source(&self, source: ClientSource) -> Self {
        Self { source, ..self.clone() }
    }

    /// This client, with another header, whose value is a secret.
    pub(crate) fn with_header(&self, name: &'static str, value: &str) -> Result<Self, ClientError> {
        let value = HeaderValue::try_from(value);
        let mut value = value.map_err(|_| ClientError::Garbled(format!("{name} cannot be sent as a header")))?;
        value.set_sensitive(true);
        let mut client = self.clone();
        client.headers.insert(name, value);
        Ok(client)
    }

    /// Whether it has a key.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Makes a call. The response has the call's `Reply`, as the service wrote it.
    ///
    /// A request that issues a secret may have to be sent again, since its response can get lost. With
    /// [`Client::with_idempotency_key`] it then returns the same secret. That idempotency key must be secret too, and have
    /// at least 32 characters.
    ///
    /// ```
    /// use metering_client::calls::keys::CreateKey;
    /// use metering_client::{Client, ClientError};
    /// use metering_core::wire::CreateKeyRequest;
    ///
    /// /// A key for a helper, which may spend half a credit.
    /// async fn delegate(client: &Client) -> Result<String, ClientError> {
    ///     #[derive(serde::Deserialize)]
    ///     struct Made {
    ///         key: String,
    ///     }
    ///     let limit = "0.5".parse().ok();
    ///     let request = CreateKeyRequest { name: Some("helper".to_owned()), limit, ..Default::default() };
    ///     Ok(client.call::<CreateKey>(&(), &request).await?.json::<Made>()?.key)
    /// }
    /// ```
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn call<C: Call>(&self, parameters: &C::Parameters, body: &C::Body) -> Result<Response, ClientError> {
        let target = target::<C>(parameters);
        if has_body::<C>() {
            return self.send(C::METHOD, &target, body).await;
        }
        self.open(C::METHOD, &target, None).await?.read_to_end().await
    }

    /// `GET` of a target (`/path?query`).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn get(&self, target: &str) -> Result<Response, ClientError> {
        self.open(Method::GET, target, None).await?.read_to_end().await
    }

    /// `POST` of a JSON document.
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn post(&self, target: &str, document: &impl Serialize) -> Result<Response, ClientError> {
        self.send(Method::POST, target, document).await
    }

    /// Sends a JSON document.
    pub(crate) async fn send(
        &self,
        method: Method,
        target: &str,
        document: &impl Serialize,
    ) -> Result<Response, ClientError> {
        let body = serde_json::to_vec(document);
        let body = body.map_err(|error| ClientError::Garbled(format!("cannot serialize the request: {error}")))?;
        self.open(method, target, Some(body.into())).await?.read_to_end().await
    }

    /// Subscribes to an event stream. Resumes after `last_event_id` if the stream supports event ids.
    ///
    /// # Errors
    /// When the service rejects the request, does not respond, or responds with something other than an event stream.
    pub async fn events(&self, target: &str, last_event_id: Option<&str>) -> Result<Events, ClientError> {
        Events::read(self.open_stream(Method::GET, target, None, last_event_id).await?)
    }

    /// Requests events; the response may be something else. `body` is JSON.
    pub(crate) async fn open_stream(
        &self,
        method: Method,
        target: &str,
        body: Option<Bytes>,
        last_event_id: Option<&str>,
    ) -> Result<OpenResponse, ClientError> {
        let mut request = self.request(method, target, body)?;
        let headers = request.headers_mut();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = last_event_id {
            let id = HeaderValue::try_from(id);
            let id = id.map_err(|_| ClientError::Garbled("the event id is not a valid header value".to_owned()))?;
            headers.insert("last-event-id", id);
        }
        accepted(self.transport.send(request).await?).await
    }

    /// Sends any request and returns as soon as the status is known. `body` is JSON.
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn open(&self, method: Method, target: &str, body: Option<Bytes>) -> Result<OpenResponse, ClientError> {
        let request = self.request(method, target, body)?;
        accepted(self.transport.send(request).await?).await
    }

    fn request(&self, method: Method, target: &str, body: Option<Bytes>) -> Result<Request<Bytes>, ClientError> {
        let mut request = Request::builder().method(method).uri(target).header(SOURCE_HEADER, self.source.as_str());
        let operator = self.operator.as_ref().map(OperatorToken::expose);
        if let Some(secret) = operator.or(self.key.as_ref().map(ApiKey::expose)) {
            // A payment may need `Authorization` for itself: now, or with the next request.
            let may_pay =
                [ACCEPT_PAYMENT_HEADER, AUTHORIZATION_HEADER].iter().any(|name| self.headers.contains_key(*name));
            let (name, value) = match may_pay {
                true => (HeaderName::from_static("x-api-key"), HeaderValue::try_from(secret)),
                false => (header::AUTHORIZATION, HeaderValue::try_from(format!("Bearer {secret}"))),
            };
            let mut value =
                value.map_err(|_| ClientError::Garbled("the key is not a valid header value".to_owned()))?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        if let Some(key) = &self.idempotency_key {
            request = request.header(IDEMPOTENCY_HEADER, key.to_header());
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(address) = self.address {
            request = request.extension(address);
        }
        let request = request.body(body.unwrap_or_default());
        let mut request =
            request.map_err(|_| ClientError::Garbled(format!("{target:?} is not a valid path and query")))?;
        request.headers_mut().extend(self.headers.clone());
        Ok(request)
    }
}
