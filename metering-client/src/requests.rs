//! Looks up requests whose credits are or were held.

use metering_core::charging::HoldId;

use crate::client::Client;
use crate::error::ClientError;
use crate::response::Response;

/// Requests whose cost is known only after they were served. The responses are documents of [`metering_core::wire`], as
/// the service wrote them.
impl Client {
    /// `GET /requests`: the account's requests whose credits are held now, newest first, at most 100. The response is a
    /// [`RequestsDocument`](metering_core::wire::RequestsDocument).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn held_requests(&self) -> Result<Response, ClientError> {
        self.get("/requests").await
    }

    /// `GET /requests/{id}`: a request whose credits are held, or were held until a day ago. The header
    /// `X-BDS-Request-Id` of its response has the id. The response is a
    /// [`RequestDocument`](metering_core::wire::RequestDocument).
    ///
    /// ```
    /// use metering_client::{Client, ClientError};
    /// use metering_core::Credits;
    /// use metering_core::charging::HoldId;
    /// use metering_core::wire::RequestDocument;
    ///
    /// /// What a request has cost so far.
    /// async fn cost(client: &Client, id: &HoldId) -> Result<Credits, ClientError> {
    ///     let request: RequestDocument = client.request_by_id(id).await?.json()?;
    ///     Ok(request.charged)
    /// }
    /// ```
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn request_by_id(&self, id: &HoldId) -> Result<Response, ClientError> {
        self.get(&format!("/requests/{id}")).await
    }
}
