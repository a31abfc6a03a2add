//! What Stripe's events do. They come in any order and any number of times; each payment, refund and dispute counts once.
//!
//! On any failure, the response is an error, and Stripe sends the event again, for three days.

use metering_core::payments::PaymentError;
use metering_core::service::Payments;
use metering_core::wire::{ErrorCode, ProcessorPaymentRequest, ProcessorReversalRequest};
use metering_core::{Credits, Error, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::api::{Dispute, Refund, Session};
use super::checkout::{ACCOUNT, AMOUNT, CREDITS, CURRENCY, PLAN, Stripe, unavailable};
use crate::http::Problem;
use crate::operations::metrics::counted;

const PROCESSOR: &str = "stripe";

#[derive(Deserialize)]
struct Event {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    data: EventData,
}

#[derive(Deserialize)]
struct EventData {
    object: Box<RawValue>,
}

/// The part of a charge that is used.
#[derive(Deserialize)]
struct Charge {
    payment_intent: Option<String>,
}

/// What a refund or dispute takes back.
struct Reversal<'a> {
    id: &'a str,
    payment: &'a str,
    amount: u64,
    currency: &'a str,
    reason: String,
    is_dispute: bool,
    /// Whether it has ended.
    restored: bool,
    /// Whether it takes back even if it has ended.
    again: bool,
}

/// What became of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sale {
    /// It was paid, and is credited.
    Credited,
    /// It is not paid, or not yet.
    Unpaid,
    /// It was not created here.
    Foreign,
}

impl Stripe {
    /// Acts on an event with its signatures.
    pub(crate) async fn receive(
        &self,
        payments: Payments<'_>,
        signatures: &str,
        body: &[u8],
        now: Timestamp,
    ) -> Result<(), Problem> {
        self.verify(signatures, body, now)?;
        let Event { id, kind, data } = read(body)?;
        let object = data.object.get().as_bytes();
        let outcome = match kind.as_str() {
            "checkout.session.completed" | "checkout.session.async_payment_succeeded" => {
                self.credit(payments, &read(object)?).await.map(drop)
            }
            "checkout.session.async_payment_failed" => {
                let session: Session = read(object)?;
                tracing::info!(session = session.id, "a payment by Stripe failed; nothing was credited");
                Ok(())
            }
            "charge.refunded" => self.refunded(payments, &read(object)?).await,
            "refund.created" | "refund.updated" | "refund.failed" | "charge.refund.updated" => {
                self.refund(payments, &read(object)?).await
            }
            "charge.dispute.created"
            | "charge.dispute.updated"
            | "charge.dispute.closed"
            | "charge.dispute.funds_withdrawn"
            | "charge.dispute.funds_reinstated" => self.dispute(payments, read(object)?).await,
            _ => Ok(()),
        };
        outcome
            .inspect_err(|_| tracing::error!(event = id, kind, "an event of Stripe is not settled; it is sent again"))
    }

    /// Credits what a session sold, if it is paid.
    async fn credit(&self, payments: Payments<'_>, session: &Session) -> Result<Sale, Problem> {
        let metadata = session.metadata.clone().unwrap_or_default();
        let of = |name: &str| metadata.get(name).cloned();
        let (Some(account), Some(plan), Some(credits)) = (of(ACCOUNT), of(PLAN), of(CREDITS)) else {
            return Ok(Sale::Foreign);
        };
        if session.payment_status.as_deref() != Some("paid") {
            return Ok(Sale::Unpaid);
        }
        let (amount, currency) =
            (session.amount_total.unwrap_or_default(), session.currency.clone().unwrap_or_default());
        let is_as_sold = of(AMOUNT) == Some(amount.to_string())
            && of(CURRENCY).as_ref() == Some(&currency)
            && session.client_reference_id.as_ref() == Some(&account);
        let (Some(payment), Ok(credits), true) = (&session.payment_intent, credits.parse::<Credits>(), is_as_sold)
        else {
            tracing::error!(
                session = session.id,
                amount,
                currency,
                "a Checkout session is paid on other terms than it was made"
            );
            let message =
                "The session is not paid on the terms on which it was made. Nothing was credited; see the log.";
            return Err(Problem::new(ErrorCode::Conflict, message));
        };
        let request = ProcessorPaymentRequest {
            processor: Some(PROCESSOR.to_owned()),
            id: Some(payment.clone()),
            org_id: Some(account),
            amount: None,
            amount_minor: Some(amount),
            currency: Some(currency),
            plan_id: Some(plan),
            credits: Some(credits),
        };
        counted("processor", payments.credit_from_processor(&request).await)?;
        Ok(Sale::Credited)
    }

    /// A charge was refunded. The event has no refunds, so Stripe is asked for them.
    async fn refunded(&self, payments: Payments<'_>, charge: &Charge) -> Result<(), Problem> {
        let Some(payment) = &charge.payment_intent else { return Ok(()) };
        let refunds = self.api.refunds_of(payment).await.map_err(|error| unavailable(&error))?;
        for refund in &refunds {
            self.refund(payments, refund).await?;
        }
        Ok(())
    }

    async fn refund(&self, payments: Payments<'_>, refund: &Refund) -> Result<(), Problem> {
        let Some(payment) = &refund.payment_intent else { return Ok(()) };
        let reason = refund.reason.as_deref().unwrap_or("refund").to_owned();
        // A refund that failed or was cancelled has ended, even if nothing else of it is known here.
        let restored = matches!(refund.status.as_deref(), Some("failed" | "canceled"));
        let (id, amount, currency) = (&refund.id, refund.amount, &refund.currency);
        let (is_dispute, again) = (false, false);
        self.reverse(payments, Reversal { id, payment, amount, currency, reason, is_dispute, restored, again }).await
    }

    /// A dispute may be lost after it was won, and events come in any order. So Stripe is asked how one that has closed
    /// stands now.
    async fn dispute(&self, payments: Payments<'_>, dispute: Dispute) -> Result<(), Problem> {
        let dispute = match dispute.status.as_str() {
            "won" | "lost" => self.api.dispute(&dispute.id).await.map_err(|error| unavailable(&error))?,
            _ => dispute,
        };
        let (restored, again) = match dispute.status.as_str() {
            "needs_response" | "under_review" => (false, false),
            "lost" => (false, true),
            "won" => (true, false),
            // An inquiry, or a dispute that was prevented: no money is withdrawn.
            _ => return Ok(()),
        };
        let Some(payment) = &dispute.payment_intent else { return Ok(()) };
        let reason = format!("dispute: {}", dispute.reason.as_deref().unwrap_or("no reason given"));
        let (id, amount, currency, is_dispute) = (&dispute.id, dispute.amount, &dispute.currency, true);
        self.reverse(payments, Reversal { id, payment, amount, currency, reason, is_dispute, restored, again }).await
    }

    /// Takes back what was credited for a payment, or gives it back. A payment that is not known is looked up at Stripe
    /// first, because its own event may arrive later.
    async fn reverse(&self, payments: Payments<'_>, reversal: Reversal<'_>) -> Result<(), Problem> {
        match recorded(payments, &reversal).await {
            Err(Error::Payment(error)) if matches!(*error, PaymentError::NoProcessorPayment(_)) => {}
            outcome => return Ok(outcome?),
        }
        let session = self.api.session_of(reversal.payment).await.map_err(|error| unavailable(&error))?;
        let Some(session) = session else { return Ok(()) };
        match self.credit(payments, &session).await? {
            Sale::Credited => Ok(recorded(payments, &reversal).await?),
            Sale::Unpaid | Sale::Foreign => Ok(()),
        }
    }
}

/// Records a reversal. A dispute may exceed the payment or be in another currency: then it takes back all of the payment. If
/// its amount changes later, it stays as recorded. A refund that does not fit its payment is an error, and takes nothing back.
async fn recorded(payments: Payments<'_>, reversal: &Reversal<'_>) -> Result<(), Error> {
    let whole = ProcessorReversalRequest {
        processor: Some(PROCESSOR.to_owned()),
        id: Some(reversal.id.to_owned()),
        payment_id: Some(reversal.payment.to_owned()),
        reason: Some(reversal.reason.clone()),
        restored: reversal.restored,
        again: reversal.again,
        ..ProcessorReversalRequest::default()
    };
    let (amount_minor, currency) = (Some(reversal.amount), Some(reversal.currency.to_owned()));
    let part = ProcessorReversalRequest { amount_minor, currency, ..whole.clone() };
    let is_other = |error: &Error| match error {
        Error::ValidationFailed(_) => true,
        Error::Payment(error) => matches!(**error, PaymentError::OtherTerms { .. }),
        _ => false,
    };
    match payments.reverse_from_processor(&part).await {
        Err(error) if reversal.is_dispute && is_other(&error) => {
            payments.reverse_from_processor(&whole).await.map(drop)
        }
        outcome => outcome.map(drop),
    }
}

fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(json).map_err(|error| {
        tracing::error!(%error, "an event of Stripe has an unexpected form");
        Problem::new(ErrorCode::ValidationFailed, format!("The event has an unexpected form: {error}."))
    })
}
