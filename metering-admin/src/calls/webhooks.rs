//! Webhooks and their deliveries, and balance alerts of accounts.

use metering_core::AccountId;
use metering_core::events::{DeliveryFilter, DeliveryId, DeliveryState, WebhookId};
use metering_core::parameters;
use metering_core::store::Cursor;
use metering_core::wire::call::Bounded;
use metering_core::wire::{BalanceAlertDocument, DeliveriesDocument, DeliveryResponse, WebhooksDocument};

use super::accounts::OfAccount;
use super::register::register;
use crate::action::Action;
use crate::call::{Viewer, call};
use crate::wire::{AccountAlertRequest, ReasonRequest};

register!(ListWebhooks, ListDeliveries, ResendDelivery, TestWebhook, RemoveWebhook, SetAlert);

parameters! {
    /// Whose webhooks.
    WebhooksOf {
        /// The account's id; without it, the operator's own webhook is listed
        account: Option<AccountId>,
    }

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

    /// A delivery.
    OfDelivery {
        /// The delivery's id
        id: DeliveryId,
    }
}

call! {
    /// Webhooks of an account, or the operator's own
    ListWebhooks("webhooks") = GET "/admin/webhooks" in "webhooks";
    returns(200, "Webhooks, oldest first") or(NotFound);
    async fn run(admin, _by: Viewer, of: WebhooksOf, _body: ()) -> WebhooksDocument {
        admin.webhooks(of.account.as_ref()).await
    }
}

call! {
    /// Deliveries to the webhooks of all accounts, newest first
    ///
    /// Filter by account, webhook or state. Parked deliveries are no longer retried. Includes the operator's own
    /// webhook.
    ListDeliveries("deliveries") = GET "/admin/webhooks/deliveries" in "webhooks";
    returns(200, "Deliveries") or(NotFound);
    async fn run(admin, _by: Viewer, page: DeliveriesPage, _body: ()) -> DeliveriesDocument {
        let filter = DeliveryFilter { webhook: page.webhook, state: page.state, kind: None };
        admin.deliveries(page.account.as_ref(), filter, page.after.as_ref(), page.limit.0).await
    }
}

call! {
    /// Send a delivery again
    ///
    /// Regardless of its state. Later events of its account wait for it. If an attempt is in progress, the webhook may
    /// get the event twice at the same time.
    ResendDelivery("resend") = POST "/admin/webhooks/deliveries/{id}/resend" in "webhooks";
    audit("webhook.resend", "Sent a delivery again");
    returns(202, "The delivery as it is now") or(NotFound, Conflict: "the webhook is disabled or gone");
    async fn run(admin, by: Action, of: OfDelivery, _body: ReasonRequest) -> DeliveryResponse {
        Ok(DeliveryResponse { data: admin.resend_delivery(by, of.id).await? })
    }
}

call! {
    /// Send a test event to the operator's own webhook
    TestWebhook("test") = POST "/admin/webhooks/test" in "webhooks";
    audit("webhook.test", "Sent a test event");
    returns(202, "The delivery of the event") or(NotFound: "the operator has no webhook");
    async fn run(admin, by: Action, _none: (), _body: ReasonRequest) -> DeliveryResponse {
        Ok(DeliveryResponse { data: admin.test_webhook(by).await? })
    }
}

call! {
    /// Remove the operator's own webhook
    ///
    /// Its deliveries are deleted with it. A server whose configuration has `webhooks.url` stores it again when it
    /// starts.
    RemoveWebhook("remove") = POST "/admin/webhooks/remove" in "webhooks";
    audit("webhook.remove", "Removed the operator's webhook");
    returns(204, "It was removed") or(NotFound: "the operator has no webhook");
    async fn run(admin, by: Action, _none: (), _body: ReasonRequest) -> () {
        admin.remove_operator_webhook(by).await
    }
}

call! {
    /// Set the balance below which an account's event `balance.low` is sent
    SetAlert("set_alert") = PUT "/admin/accounts/{id}/alert" in "accounts";
    audit("account.alert", "Set the balance alert");
    returns(200, "The threshold as it is now") or(NotFound);
    async fn run(admin, by: Action, of: OfAccount, wanted: AccountAlertRequest) -> BalanceAlertDocument {
        admin.set_balance_alert(by, &of.id, &wanted.alert()).await
    }
}
