//! Webhooks, their deliveries and balance alerts, as a server lists and changes them.

use http::Method;
use metering_core::events::{DeliveryFilter, DeliveryId};
use metering_core::wire::admin::AccountAlertRequest;
use metering_core::wire::{
    BalanceAlertDocument, DeliveriesDocument, DeliveryDocument, DeliveryResponse, WebhooksDocument,
};
use metering_core::{AccountId, Credits};

use super::{Remote, escaped};
use crate::failure::Failure;

impl Remote {
    pub(super) async fn webhooks_of(&self, id: Option<&AccountId>) -> Result<WebhooksDocument, Failure> {
        let account = id.map(|id| format!("?account={id}")).unwrap_or_default();
        Ok(self.get(&format!("/admin/webhooks{account}")).await?.json()?)
    }

    pub(super) async fn deliveries_of(
        &self,
        id: Option<&AccountId>,
        filter: DeliveryFilter,
        after: Option<&str>,
        limit: u32,
    ) -> Result<DeliveriesDocument, Failure> {
        let account = id.map(|id| format!("&account={id}")).unwrap_or_default();
        let webhook = filter.webhook.map(|webhook| format!("&webhook={webhook}")).unwrap_or_default();
        let state = filter.state.map(|state| format!("&state={}", state.as_str())).unwrap_or_default();
        let after = after.map(|after| format!("&after={}", escaped(after))).unwrap_or_default();
        let query = format!("limit={limit}{account}{webhook}{state}{after}");
        Ok(self.get(&format!("/admin/webhooks/deliveries?{query}")).await?.json()?)
    }

    pub(super) async fn resend(&self, id: DeliveryId) -> Result<DeliveryDocument, Failure> {
        self.sent(&format!("/admin/webhooks/deliveries/{}/resend", id.get())).await
    }

    pub(super) async fn test(&self) -> Result<DeliveryDocument, Failure> {
        self.sent("/admin/webhooks/test").await
    }

    pub(super) async fn set_alert(
        &self,
        id: &AccountId,
        below: Option<Credits>,
    ) -> Result<BalanceAlertDocument, Failure> {
        let request = AccountAlertRequest { below: Some(below), reason: self.reason.clone() };
        Ok(self.send(Method::PUT, &format!("/admin/accounts/{id}/alert"), &request).await?.json()?)
    }

    /// An action that sends a delivery.
    async fn sent(&self, target: &str) -> Result<DeliveryDocument, Failure> {
        let DeliveryResponse { data } = self.send(Method::POST, target, &self.bare()).await?.json()?;
        Ok(data)
    }
}
