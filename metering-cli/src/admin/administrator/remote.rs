//! A server, used over HTTP at its admin address.

mod failures;
mod payments;

use bytes::Bytes;
use http::Method;
use metering_admin::calls::accounts::{AccountsPage, ListAccounts};
use metering_admin::wire::{AccountDocument, ReasonRequest, ReloadDocument, VerificationDocument};
use metering_admin::{AdminCall, Authority, Body, Bounded, target};
use metering_client::{Client, ClientError, Response};
use metering_core::access::Email;
use metering_core::operators::Role;
use metering_core::store::Cursor;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(in crate::admin) use self::failures::refused;
use self::failures::unknown_outcome;
use crate::client::session::percent::push_encoded;
use crate::failure::Failure;

/// A server, an operator's token and the reason for the action.
#[derive(Debug)]
pub(in crate::admin) struct Remote {
    client: Client,
    /// The same, for requests that respond only after a long time.
    patient: Client,
    reason: String,
}

impl Remote {
    pub(in crate::admin) fn new(client: Client, patient: Client, reason: String) -> Self {
        Self { client, patient, reason }
    }

    pub(super) async fn call<C>(&self, parameters: &C::Parameters, body: C::Body) -> Result<C::Reply, Failure>
    where
        C: AdminCall<Reply: DeserializeOwned>,
    {
        let target = target::<C>(parameters);
        let response = match C::By::ROLE {
            Role::Viewer => self.get(&target).await?,
            Role::Manager => self.send(C::METHOD, &target, &body.with_reason(&self.reason)).await?,
        };
        // A response without a body is a reply without content.
        let body = if response.body.is_empty() { Bytes::from_static(b"null") } else { response.body };
        Ok(Response { body, ..response }.json()?)
    }

    /// Sends an action.
    async fn send(&self, method: Method, target: &str, document: &impl Serialize) -> Result<Response, Failure> {
        self.send_or(method, target, document, refused).await
    }

    /// Sends an action, with its own failures.
    async fn send_or(
        &self,
        method: Method,
        target: &str,
        document: &impl Serialize,
        failure: impl FnOnce(ClientError) -> Failure,
    ) -> Result<Response, Failure> {
        if self.reason.is_empty() {
            return Err(Failure::Usage(
                "--reason is missing: a server requires one for every change, for the audit log".to_owned(),
            ));
        }
        let body = serde_json::to_vec(document).map_err(|error| Failure::Failed(error.to_string()))?;
        let sent = async { self.client.open(method, target, Some(body.into())).await?.read_to_end().await };
        sent.await.map_err(|error| unknown_outcome(&error).unwrap_or_else(|| failure(error)))
    }

    async fn get(&self, target: &str) -> Result<Response, Failure> {
        self.client.get(target).await.map_err(refused)
    }

    pub(super) async fn account_by_email(&self, email: &Email) -> Result<AccountDocument, Failure> {
        let missing =
            || Failure::NotFound(format!("no account has the email address {email}; revoked accounts are ignored"));
        let (mut newest, mut after) = (None, None);
        loop {
            let page = AccountsPage {
                search: Some(email.to_string()),
                order: None,
                from: None,
                to: None,
                state: None,
                after,
                limit: Bounded::MAX,
            };
            let page = self.call::<ListAccounts>(&page, ()).await?;
            for account in page.accounts {
                let same = account.email.as_deref().and_then(|text| text.parse().ok()).as_ref() == Some(email);
                if !same || account.status != "active" {
                    continue;
                }
                if account.email_status.as_deref() != Some("pending") {
                    return Ok(account);
                }
                newest = Some(account);
            }
            match page.next {
                Some(next) => after = Some(Cursor::new(next)),
                None => return newest.ok_or_else(missing),
            }
        }
    }

    pub(super) async fn reload(&self) -> Result<ReloadDocument, Failure> {
        let reason = ReasonRequest { reason: self.reason.clone() };
        Ok(self.send(Method::POST, "/admin/reload", &reason).await?.json()?)
    }

    pub(super) async fn verify(&self) -> Result<VerificationDocument, Failure> {
        Ok(self.patient.post("/admin/verify", &serde_json::json!({})).await.map_err(refused)?.json()?)
    }
}

/// A text as a part of a path or query.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    push_encoded(text, &mut escaped);
    escaped
}
