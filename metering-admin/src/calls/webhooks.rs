//! Webhooks and their deliveries, and balance alerts of accounts.

use http::Method;
use metering_core::AccountId;
use metering_core::events::{DeliveryFilter, DeliveryId, DeliveryState, WebhookId};
use metering_core::store::Cursor;
use metering_core::wire::{BalanceAlertDocument, DeliveriesDocument, DeliveryResponse, ErrorCode, WebhooksDocument};

use super::accounts::OfAccount;
use super::{NOT_FOUND, register};
use crate::action::Action;
use crate::administration::Administration;
use crate::call::{Audit, Bounded, Call, Nothing, Viewer, parameters};
use crate::error::AdminError;
use crate::wire::{AccountAlertRequest, ReasonRequest};

register!(ListWebhooks, ListDeliveries, ResendDelivery, TestWebhook, RemoveWebhook, SetAlert);

parameters! {
    /// Whose webhooks.
    WebhooksOf {
        /// The account's id; without it, the operator's own webhook is listed
        account: Option<AccountId>,
    }
}

parameters! {
    /// Which deliveries.
    DeliveriesPage {
        /// Only deliveries to the webhooks of this account
        account: Option<AccountId>,
        /// Only deliveries to this webhook
        webhook: Option<WebhookId>,
        /// Only deliveries in this state: `pending`, `delivered` or `parked`
        state: Option<DeliveryState>,
        /// The value of `next` in the previous response
        after: Option<Cursor>,
        /// Maximum number of deliveries, 50 by default
        limit: Bounded<50, 1000>,
    }
}

parameters! {
    /// A delivery.
    OfDelivery {
        /// The delivery's id
        id: DeliveryId,
    }
}

/// Webhooks of an account, or the operator's own.
#[derive(Debug)]
pub struct ListWebhooks;

impl Call for ListWebhooks {
    const ID: &str = "webhooks";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/webhooks";
    const TAG: &str = "webhooks";
    const SUMMARY: &str = "Webhooks of an account, or the operator's own";
    const SUCCESS: (u16, &str) = (200, "Webhooks, oldest first");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND];
    type By = Viewer;
    type Parameters = WebhooksOf;
    type Body = Nothing;
    type Reply = WebhooksDocument;

    async fn run(
        admin: &Administration,
        _by: &Viewer,
        of: WebhooksOf,
        _body: Nothing,
    ) -> Result<WebhooksDocument, AdminError> {
        admin.webhooks(of.account.as_ref()).await
    }
}

/// Deliveries to the webhooks of all accounts, newest first.
#[derive(Debug)]
pub struct ListDeliveries;

impl Call for ListDeliveries {
    const ID: &str = "deliveries";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/webhooks/deliveries";
    const TAG: &str = "webhooks";
    const SUMMARY: &str = "Deliveries to the webhooks of all accounts, newest first";
    const DESCRIPTION: &str = "Filter by account, webhook or state. Parked deliveries are no longer retried. Includes the \
        operator's own webhook.";
    const SUCCESS: (u16, &str) = (200, "Deliveries");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND];
    type By = Viewer;
    type Parameters = DeliveriesPage;
    type Body = Nothing;
    type Reply = DeliveriesDocument;

    async fn run(
        admin: &Administration,
        _by: &Viewer,
        page: DeliveriesPage,
        _body: Nothing,
    ) -> Result<DeliveriesDocument, AdminError> {
        let filter = DeliveryFilter { webhook: page.webhook, state: page.state };
        admin.deliveries(page.account.as_ref(), filter, page.after.as_ref(), page.limit.0).await
    }
}

/// Send a delivery again.
#[derive(Debug)]
pub struct ResendDelivery;

impl Call for ResendDelivery {
    const ID: &str = "resend";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/webhooks/deliveries/{id}/resend";
    const TAG: &str = "webhooks";
    const SUMMARY: &str = "Send a delivery again";
    const DESCRIPTION: &str = "Regardless of its state. Later events of its account wait for it. If an attempt is in progress, the \
        webhook may get the event twice at the same time.";
    const AUDIT: Option<Audit> = Some(Audit { name: "webhook.resend", label: "Sent a delivery again" });
    const SUCCESS: (u16, &str) = (202, "The delivery as it is now");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND, (ErrorCode::Conflict, "the webhook is disabled or gone")];
    type By = Action;
    type Parameters = OfDelivery;
    type Body = ReasonRequest;
    type Reply = DeliveryResponse;

    async fn run(
        admin: &Administration,
        by: &Action,
        of: OfDelivery,
        _body: ReasonRequest,
    ) -> Result<DeliveryResponse, AdminError> {
        Ok(DeliveryResponse { data: admin.resend_delivery(by, of.id).await? })
    }
}

/// Send a test event to the operator's own webhook.
#[derive(Debug)]
pub struct TestWebhook;

impl Call for TestWebhook {
    const ID: &str = "test";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/webhooks/test";
    const TAG: &str = "webhooks";
    const SUMMARY: &str = "Send a test event to the operator's own webhook";
    const AUDIT: Option<Audit> = Some(Audit { name: "webhook.test", label: "Sent a test event" });
    const SUCCESS: (u16, &str) = (202, "The delivery of the event");
    const REFUSALS: &[(ErrorCode, &str)] = &[(ErrorCode::NotFound, "the operator has no webhook")];
    type By = Action;
    type Parameters = ();
    type Body = ReasonRequest;
    type Reply = DeliveryResponse;

    async fn run(
        admin: &Administration,
        by: &Action,
        (): (),
        _body: ReasonRequest,
    ) -> Result<DeliveryResponse, AdminError> {
        Ok(DeliveryResponse { data: admin.test_webhook(by).await? })
    }
}

/// Remove the operator's own webhook.
#[derive(Debug)]
pub struct RemoveWebhook;

impl Call for RemoveWebhook {
    const ID: &str = "remove";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/webhooks/remove";
    const TAG: &str = "webhooks";
    const SUMMARY: &str = "Remove the operator's own webhook";
    const DESCRIPTION: &str = "Its deliveries are deleted with it. A server whose configuration has `webhooks.url` stores it again \
        when it starts.";
    const AUDIT: Option<Audit> = Some(Audit { name: "webhook.remove", label: "Removed the operator's webhook" });
    const SUCCESS: (u16, &str) = (204, "It was removed");
    const REFUSALS: &[(ErrorCode, &str)] = &[(ErrorCode::NotFound, "the operator has no webhook")];
    type By = Action;
    type Parameters = ();
    type Body = ReasonRequest;
    type Reply = Nothing;

    async fn run(admin: &Administration, by: &Action, (): (), _body: ReasonRequest) -> Result<Nothing, AdminError> {
        admin.remove_operator_webhook(by).await.map(|()| Nothing)
    }
}

/// Set the balance below which an account's event `balance.low` is sent.
#[derive(Debug)]
pub struct SetAlert;

impl Call for SetAlert {
    const ID: &str = "set_alert";
    const METHOD: Method = Method::PUT;
    const PATH: &str = "/admin/accounts/{id}/alert";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "Set the balance below which an account's event `balance.low` is sent";
    const AUDIT: Option<Audit> = Some(Audit { name: "account.alert", label: "Set the balance alert" });
    const SUCCESS: (u16, &str) = (200, "The threshold as it is now");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND];
    type By = Action;
    type Parameters = OfAccount;
    type Body = AccountAlertRequest;
    type Reply = BalanceAlertDocument;

    async fn run(
        admin: &Administration,
        by: &Action,
        of: OfAccount,
        wanted: AccountAlertRequest,
    ) -> Result<BalanceAlertDocument, AdminError> {
        admin.set_balance_alert(by, &of.id, &wanted.alert()).await
    }
}
