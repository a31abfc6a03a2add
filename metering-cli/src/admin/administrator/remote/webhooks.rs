//! Webhooks, their deliveries and balance alerts, as a server lists and changes them.

use http::Method;
use metering_core::events::{DeliveryId, DeliveryState};
use metering_core::wire::admin::AccountAlertRequest;
use metering_core::wire::{
    BalanceAlertDocument, DeliveriesDocument, DeliveryDocument, DeliveryResponse, WebhooksDocument,
};
use metering_core::{AccountId, Credits};

use super::Remote;
use crate::failure::Failure;

impl Remote {
    pub(super) async fn webhooks_of(&self, id: Option<&AccountId>) -> Result<WebhooksDocument, Failure> {
        let account = id.map(|id| format!("?account={id}")).unwrap_or_default();
        Ok(self.get(&format!("/admin/webhooks{account}")).await?.json()?)
    }

    pub(super) async fn deliveries_of(
        &self,
        id: Option<&AccountId>,
        state: Option<DeliveryState>,
        limit: u32,
    ) -> Result<DeliveriesDocument, Failure> {
        let state = state.map(|state| format!("&state={}", state.as_str())).unwrap_or_default();
        let account = id.map(|id| format!("&account={id}")).unwrap_or_default();
        Ok(self.get(&format!("/admin/webhooks/deliveries?limit={limit}{state}{account}")).await?.json()?)
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
