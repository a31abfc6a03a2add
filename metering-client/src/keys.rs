//! Requests of the keys API, one method per endpoint.

use http::Method;
use metering_core::ApiKey;
use metering_core::access::KeyId;
use metering_core::wire::{ChangeKeyRequest, CreateKeyRequest, RotateKeyRequest};
use serde::Serialize;

use crate::client::Client;
use crate::error::ClientError;
use crate::response::Response;

/// The keys API. The responses are documents of [`metering_core::wire`], as the service wrote them.
///
/// A request that issues a secret may have to be sent again, since its response can get lost. With
/// [`Client::with_idempotency_key`] it then returns the same secret. That idempotency key must be secret too, and have
/// at least 32 characters.
impl Client {
    /// `POST /keys`: makes a child of the client's own key. The response is an
    /// [`IssuedKeyResponse`](metering_core::wire::IssuedKeyResponse).
    ///
    /// ```
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
    ///     Ok(client.create_key(&request).await?.json::<Made>()?.key)
    /// }
    /// ```
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn create_key(&self, request: &CreateKeyRequest) -> Result<Response, ClientError> {
        self.post("/keys", request).await
    }

    /// `GET /keys`: the client's own key and its child keys, oldest first, at most `limit` (1 to 100) of them.
    /// `after` is the `next` of the page before. The response is a
    /// [`KeysDocument`](metering_core::wire::KeysDocument).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn keys(&self, limit: Option<u32>, after: Option<&str>) -> Result<Response, ClientError> {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        if let Some(limit) = limit {
            query.append_pair("limit", &limit.to_string());
        }
        if let Some(after) = after {
            query.append_pair("after", after);
        }
        let query = query.finish();
        self.get(&if query.is_empty() { "/keys".to_owned() } else { format!("/keys?{query}") }).await
    }

    /// `GET /keys/{id}`: one key. The response is a [`KeyResponse`](metering_core::wire::KeyResponse).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn key(&self, id: &KeyId) -> Result<Response, ClientError> {
        self.get(&format!("/keys/{id}")).await
    }

    /// `GET /keys/current`: the client's own key, which needs no scope. The response is a
    /// [`KeyResponse`](metering_core::wire::KeyResponse).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn current_key(&self) -> Result<Response, ClientError> {
        self.get("/keys/current").await
    }

    /// `PATCH /keys/{id}`: changes a key. The response is a [`KeyResponse`](metering_core::wire::KeyResponse).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn change_key(&self, id: &KeyId, request: &ChangeKeyRequest) -> Result<Response, ClientError> {
        self.send(Method::PATCH, &format!("/keys/{id}"), request).await
    }

    /// `DELETE /keys/{id}`: deletes a key permanently, and stops its child keys. The response is a
    /// [`DeletedKeyResponse`](metering_core::wire::DeletedKeyResponse).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn delete_key(&self, id: &KeyId) -> Result<Response, ClientError> {
        self.open(Method::DELETE, &format!("/keys/{id}"), None).await?.read_to_end().await
    }

    /// `POST /keys/{id}/rotate`: replaces the secret of a key. The response is an
    /// [`IssuedKeyResponse`](metering_core::wire::IssuedKeyResponse).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn rotate_key(&self, id: &KeyId, request: &RotateKeyRequest) -> Result<Response, ClientError> {
        self.post(&format!("/keys/{id}/rotate"), request).await
    }

    /// `POST /keys/current/rotate`: replaces the secret of the client's own key, which then no longer works. The
    /// response is a [`VerifyResponse`](metering_core::wire::VerifyResponse).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn rotate_current_key(&self) -> Result<Response, ClientError> {
        self.open(Method::POST, "/keys/current/rotate", None).await?.read_to_end().await
    }

    /// `POST /keys/leaked`: disables a leaked key. It needs no other key. The response is a
    /// [`LeakedKeyResponse`](metering_core::wire::LeakedKeyResponse).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn report_leaked(&self, key: &ApiKey) -> Result<Response, ClientError> {
        #[derive(Serialize)]
        struct Leaked<'k> {
            key: &'k str,
        }
        self.post("/keys/leaked", &Leaked { key: key.expose() }).await
    }
}
