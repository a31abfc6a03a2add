//! Events of the caller's account, its webhooks and their deliveries.

use metering_core::events::DeliveryId;
use metering_core::store::Cursor;
use metering_core::wire::call::Bounded;
use metering_core::wire::{
    BalanceAlertDocument, BalanceAlertRequest, ChangeWebhookRequest, CreateWebhookRequest, DeletedWebhookResponse,
    DeliveriesDocument, DeliveryPayloadResponse, DeliveryResponse, EventsDocument, IssuedWebhookResponse,
    RotateWebhookRequest, WebhookResponse, WebhooksDocument,
};
use metering_core::{call, parameters};

use super::access::KEY;

parameters! {
    /// Which events.
    EventsPage {
        /// Maximum number of events, 20 by default
        limit: Bounded<20, 100> = 20,
        /// The value of `next` in the previous response
        after: Option<Cursor>,
    }

    /// A webhook.
    OfWebhook {
        /// The webhook's id
        id: String = "we_0123456789abcdef0123456789abcdef",
    }

    /// Which deliveries to a webhook.
    DeliveriesPage {
        /// The webhook's id
        id: String = "we_0123456789abcdef0123456789abcdef",
        /// Only deliveries in this state: `pending`, `delivered` or `parked`
        state: Option<String>,
        /// Only deliveries of events of this type, such as `balance.low`
        event: Option<String>,
        /// Maximum number of deliveries, 20 by default
        limit: Bounded<20, 100> = 20,
        /// The value of `next` in the previous response
        after: Option<Cursor>,
    }

    /// A delivery to a webhook.
    OfDelivery {
        /// The webhook's id
        id: String = "we_0123456789abcdef0123456789abcdef",
        /// The delivery's id
        delivery: DeliveryId = 17,
    }
}

call! {
    /// The balance below which the event `balance.low` is sent
    GetBalanceAlert("balance_alert") = GET "/credits/alert" in "account" for KEY;
    returns(200, "The threshold": BalanceAlertDocument);

    /// Set the balance below which the event `balance.low` is sent
    ///
    /// The event is sent once, when the balance falls below the threshold, and again only after credits were added. If the
    /// service sends mail, it is also mailed to the account's verified address, unless `email` is false.
    SetBalanceAlert("set_balance_alert") = PUT "/credits/alert" in "account" for KEY;
    takes((), BalanceAlertRequest);
    returns(200, "The threshold as it is now": BalanceAlertDocument) or(RateLimited, OutcomeUnknown);

    /// The account's events, newest first
    ///
    /// Events are kept for 30 days, with or without webhooks. If `next` is not null, more follow: send it as `after`.
    ListEvents("events") = GET "/events" in "webhooks" for KEY;
    takes(EventsPage, ());
    returns(200, "Events": EventsDocument) or(ValidationFailed);

    /// Create a webhook
    ///
    /// It gets the account's events, signed as [Standard Webhooks](https://www.standardwebhooks.com) specifies. The
    /// secret is shown only once. If the response is lost, list the webhooks, and rotate the secret of the new one.
    /// `mailto:` and the account's verified address is a webhook, too, for `balance.low`, `balance.exhausted`,
    /// `budget.exhausted` and `top_up.stopped`, if the service sends mail.
    CreateWebhook("create_webhook") = POST "/webhooks" in "webhooks" for KEY;
    takes((), CreateWebhookRequest);
    returns(201, "The webhook and its secret": IssuedWebhookResponse)
        or(ValidationFailed: "also if the URL is not https, or its host is not public",
            NotFound: "this service does not offer webhooks", TooManyWebhooks, RateLimited, OutcomeUnknown);

    /// The account's webhooks, oldest first
    ListWebhooks("webhooks") = GET "/webhooks" in "webhooks" for KEY;
    returns(200, "Webhooks": WebhooksDocument);

    /// One webhook
    GetWebhook("webhook") = GET "/webhooks/{id}" in "webhooks" for KEY;
    takes(OfWebhook, ());
    returns(200, "The webhook": WebhookResponse) or(WebhookNotFound);

    /// Change a webhook
    ///
    /// Omitted fields are unchanged. Takes effect with the next attempt of each delivery.
    ChangeWebhook("change_webhook") = PATCH "/webhooks/{id}" in "webhooks" for KEY;
    takes(OfWebhook, ChangeWebhookRequest);
    returns(200, "The webhook as it is now": WebhookResponse)
        or(ValidationFailed: "also if the URL is not https, or its host is not public", WebhookNotFound, RateLimited,
            OutcomeUnknown);

    /// Delete a webhook
    ///
    /// Deletes its deliveries too. An attempt in progress may still arrive.
    DeleteWebhook("delete_webhook") = DELETE "/webhooks/{id}" in "webhooks" for KEY;
    takes(OfWebhook, ());
    returns(200, "Deleted": DeletedWebhookResponse) or(WebhookNotFound, RateLimited, OutcomeUnknown);

    /// Replace the secret of a webhook
    ///
    /// For `grace_seconds`, a day by default, requests have two signatures: with the new secret and with the old one.
    /// The new secret is shown only once; if the response is lost, rotate again.
    RotateWebhook("rotate_webhook") = POST "/webhooks/{id}/rotate" in "webhooks" for KEY;
    takes(OfWebhook, RotateWebhookRequest, optional);
    returns(200, "The webhook and its new secret": IssuedWebhookResponse)
        or(WebhookNotFound, RateLimited, OutcomeUnknown);

    /// Send a test event to a webhook
    ///
    /// Even if it does not subscribe to that event. The event is sent after the deliveries that are pending.
    TestWebhook("test_webhook") = POST "/webhooks/{id}/test" in "webhooks" for KEY;
    takes(OfWebhook, ());
    returns(202, "The delivery of the event": DeliveryResponse)
        or(WebhookNotFound, Conflict: "the webhook is disabled or gone", RateLimited, OutcomeUnknown);

    /// The deliveries to a webhook, newest first
    ///
    /// Deliveries are kept for 30 days. If `next` is not null, more follow: send it as `after`.
    ListDeliveries("deliveries") = GET "/webhooks/{id}/deliveries" in "webhooks" for KEY;
    takes(DeliveriesPage, ());
    returns(200, "Deliveries": DeliveriesDocument) or(ValidationFailed, WebhookNotFound);

    /// One delivery, with the body of its requests
    ///
    /// The body is the sent or future one, byte for byte; the signature is for these bytes. If the last attempt failed,
    /// `response` is the beginning of the webhook's response.
    GetDelivery("delivery") = GET "/webhooks/{id}/deliveries/{delivery}" in "webhooks" for KEY;
    takes(OfDelivery, ());
    returns(200, "The delivery": DeliveryPayloadResponse) or(WebhookNotFound, DeliveryNotFound);

    /// Send a delivery again
    ///
    /// Regardless of its state: a parked or delivered one, or a pending one that waits for its next attempt. It keeps
    /// its place in the account's order, so later events wait for it. If an attempt is in progress, the webhook may get
    /// the event twice at the same time.
    ResendDelivery("resend_delivery") = POST "/webhooks/{id}/deliveries/{delivery}/resend" in "webhooks" for KEY;
    takes(OfDelivery, ());
    returns(202, "The delivery as it is now": DeliveryResponse)
        or(WebhookNotFound, DeliveryNotFound, Conflict: "the webhook is disabled or gone", RateLimited, OutcomeUnknown);
}
