//! The effects of Stripe's events. They come in any order and any number of times; each payment, refund and dispute
//! counts once.
//!
//! On any failure, the response is an error, and Stripe sends the event again, for three days.

use std::collections::BTreeMap;

use metering_core::payments::{PaymentError, ProcessorRef, TopUpChargeId, TopUpStop};
use metering_core::service::Payments;
use metering_core::store::TopUpEnd;
use metering_core::wire::{ErrorCode, ProcessorPaymentRequest, ProcessorReversalRequest};
use metering_core::{Credits, Error, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::api::{Dispute, PaymentIntent, Refund, Session};
use super::checkout::{ACCOUNT, AMOUNT, CREDITS, CURRENCY, PLAN, SAVE_CARD, Stripe, TOP_UP, unavailable};
use super::{cards, top_ups};
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

/// The amount that a refund or dispute takes back.
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

/// The outcome of a session, or of a payment with a saved card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sale {
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
            "payment_intent.succeeded" | "payment_intent.payment_failed" | "payment_intent.canceled" => {
                self.topped_up(payments, &read(object)?, now).await.map(drop)
            }
            "charge.refunded" => self.refunded(payments, &read(object)?, now).await,
            "refund.created" | "refund.updated" | "refund.failed" | "charge.refund.updated" => {
                self.refund(payments, &read(object)?, now).await
            }
            "charge.dispute.created"
            | "charge.dispute.updated"
            | "charge.dispute.closed"
            | "charge.dispute.funds_withdrawn"
            | "charge.dispute.funds_reinstated" => self.dispute(payments, read(object)?, now).await,
            _ => Ok(()),
        };
        outcome
            .inspect_err(|_| tracing::error!(event = id, kind, "an event of Stripe is not settled; it is sent again"))
    }

    /// Credits what a session sold, if it is paid, and saves its card if the session was for that.
    async fn credit(&self, payments: Payments<'_>, session: &Session) -> Result<Sale, Problem> {
        let Some(terms) = Terms::read(session.metadata.as_ref()) else { return Ok(Sale::Foreign) };
        if session.payment_status.as_deref() != Some("paid") {
            return Ok(Sale::Unpaid);
        }
        let (amount, currency) = (session.amount_total.unwrap_or_default(), session.currency.as_deref());
        let payment = session.payment_intent.as_deref();
        let payment = payment.filter(|_| session.client_reference_id.as_deref() == Some(terms.account));
        sold(payments, &terms, payment, amount, currency.unwrap_or_default(), &session.id).await?;
        let saves_card = session.metadata.as_ref().is_some_and(|metadata| metadata.contains_key(SAVE_CARD));
        if let (true, Some(payment), Some(customer)) = (saves_card, payment, &session.customer) {
            self.save_card(terms.account, payment, customer).await?;
        }
        Ok(Sale::Credited)
    }

    /// Credits a payment with a saved card, or ends its charge if it failed.
    pub(super) async fn topped_up(
        &self,
        payments: Payments<'_>,
        payment: &PaymentIntent,
        now: Timestamp,
    ) -> Result<Sale, Problem> {
        let metadata = payment.metadata.as_ref();
        let id = metadata.and_then(|metadata| metadata.get(TOP_UP)).and_then(|id| id.parse::<TopUpChargeId>().ok());
        let (Some(id), Some(terms)) = (id, Terms::read(metadata)) else { return Ok(Sale::Foreign) };
        let reason = match payment.status.as_str() {
            "succeeded" => {
                let PaymentIntent { id: payment, amount, currency, .. } = payment;
                sold(payments, &terms, Some(payment), *amount, currency, payment).await?;
                let reference = ProcessorRef::new(PROCESSOR, payment).map_err(|_| Problem::internal())?;
                if self.store.end_top_up(id, TopUpEnd::Paid(reference), now).await.map_err(Error::from)? {
                    top_ups::count("paid");
                }
                return Ok(Sale::Credited);
            }
            // Not yet.
            "processing" => return Ok(Sale::Unpaid),
            "canceled" => TopUpStop::Refused,
            "requires_action" => TopUpStop::AuthenticationRequired,
            _ => payment.last_payment_error.as_ref().map_or(TopUpStop::Declined, cards::stop),
        };
        self.not_topped_up(id, reason, now).await.map_err(Error::from)?;
        Ok(Sale::Unpaid)
    }

    /// A charge was refunded. The event has no refunds, so request them from Stripe.
    async fn refunded(&self, payments: Payments<'_>, charge: &Charge, now: Timestamp) -> Result<(), Problem> {
        let Some(payment) = &charge.payment_intent else { return Ok(()) };
        let refunds = self.api.refunds_of(payment).await.map_err(|error| unavailable(&error))?;
        for refund in &refunds {
            self.refund(payments, refund, now).await?;
        }
        Ok(())
    }

    async fn refund(&self, payments: Payments<'_>, refund: &Refund, now: Timestamp) -> Result<(), Problem> {
        let Some(payment) = &refund.payment_intent else { return Ok(()) };
        let reason = refund.reason.as_deref().unwrap_or("refund").to_owned();
        // A refund that failed or was cancelled has ended, even if this store has nothing else of it.
        let restored = matches!(refund.status.as_deref(), Some("failed" | "canceled"));
        let (id, amount, currency) = (&refund.id, refund.amount, &refund.currency);
        let (is_dispute, again) = (false, false);
        let reversal = Reversal { id, payment, amount, currency, reason, is_dispute, restored, again };
        self.reverse(payments, reversal, now).await
    }

    /// A dispute may be lost after it was won, and events come in any order. So request the current status of a closed
    /// dispute from Stripe.
    async fn dispute(&self, payments: Payments<'_>, dispute: Dispute, now: Timestamp) -> Result<(), Problem> {
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
        let reversal = Reversal { id, payment, amount, currency, reason, is_dispute, restored, again };
        self.reverse(payments, reversal, now).await
    }

    /// Takes back the credits of a payment, or restores them. An unknown payment is looked up at Stripe first, because
    /// its own event may arrive later.
    async fn reverse(&self, payments: Payments<'_>, reversal: Reversal<'_>, now: Timestamp) -> Result<(), Problem> {
        match recorded(payments, &reversal).await {
            Err(Error::Payment(error)) if matches!(*error, PaymentError::NoProcessorPayment(_)) => {}
            outcome => return Ok(outcome?),
        }
        let session = self.api.session_of(reversal.payment).await.map_err(|error| unavailable(&error))?;
        let sale = match session {
            Some(session) => self.credit(payments, &session).await?,
            None => match self.api.payment(reversal.payment).await.map_err(|error| unavailable(&error))? {
                Some(payment) => self.topped_up(payments, &payment, now).await?,
                None => Sale::Foreign,
            },
        };
        match sale {
            Sale::Credited => Ok(recorded(payments, &reversal).await?),
            Sale::Unpaid | Sale::Foreign => Ok(()),
        }
    }
}

/// What was sold, from the metadata of a session or of a payment with a saved card.
struct Terms<'m> {
    account: &'m str,
    plan: &'m str,
    credits: &'m str,
    amount: Option<&'m str>,
    currency: Option<&'m str>,
}

impl<'m> Terms<'m> {
    /// `None` if it was not made here.
    fn read(metadata: Option<&'m BTreeMap<String, String>>) -> Option<Self> {
        let of = |name: &str| metadata?.get(name).map(String::as_str);
        let (account, plan, credits) = (of(ACCOUNT)?, of(PLAN)?, of(CREDITS)?);
        Some(Self { account, plan, credits, amount: of(AMOUNT), currency: of(CURRENCY) })
    }
}

/// Credits the plan that a payment bought, if it was paid on these terms. `of` names the object that has them.
async fn sold(
    payments: Payments<'_>,
    terms: &Terms<'_>,
    payment: Option<&str>,
    amount: u64,
    currency: &str,
    of: &str,
) -> Result<(), Problem> {
    let is_as_sold = terms.amount == Some(amount.to_string().as_str()) && terms.currency == Some(currency);
    let (Some(payment), Ok(credits), true) = (payment, terms.credits.parse::<Credits>(), is_as_sold) else {
        tracing::error!(of, amount, currency, "something was paid on other terms than it was sold");
        let message = "This was not paid on the terms on which it was sold. Nothing was credited; see the log.";
        return Err(Problem::new(ErrorCode::Conflict, message));
    };
    let request = ProcessorPaymentRequest {
        processor: Some(PROCESSOR.to_owned()),
        id: Some(payment.to_owned()),
        org_id: Some(terms.account.to_owned()),
        amount: None,
        amount_minor: Some(amount),
        currency: Some(currency.to_owned()),
        plan_id: Some(terms.plan.to_owned()),
        credits: Some(credits),
    };
    counted("processor", payments.credit_from_processor(&request).await)?;
    Ok(())
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
