//! Requests that are served before their charge is decided, because the store will clearly accept it.

use std::pin::Pin;
use std::task::{Context, Poll};

use tracing::field::Empty;
use tracing::{Span, info_span};

use super::reply::{Reply, started_slot};
use super::views::Started;
use super::{Meter, MeterError};
use crate::access::account::AccountId;
use crate::charging::charge::{Charge, Decision};
use crate::charging::posting::{Outcome, Posting};
use crate::money::credits::Credits;
use crate::shown_fields::shown_fields;
use crate::trace;

/// A charge that the store has not decided yet, and is expected to accept: a future of its decision, which is then on
/// disk.
///
/// Serve the request, and pass nothing of its response on before the decision. If the charge is refused after all, drop
/// the response, and send the refusal. Before that, there is no receipt: no balance, no rate limits.
///
/// If this is dropped, the charge stays recorded once it is accepted.
#[must_use = "nothing may be passed on before the charge is decided"]
pub struct ExpectedCharge {
    account: AccountId,
    amount: Credits,
    span: Span,
    reply: Reply,
}

impl Meter {
    pub(super) fn post_started(&self, charge: Charge, started: Started) -> Result<ExpectedCharge, MeterError> {
        let (account, amount) = (started.account().clone(), charge.price);
        let span = info_span!(target: trace::TARGET, "charge", metering.decision = Empty);
        let posted = span.in_scope(|| self.queue.try_post(Posting::Charge(charge), started_slot(started)));
        let reply = self.count_overload(posted)?;
        Ok(ExpectedCharge { account, amount, span, reply })
    }
}

impl ExpectedCharge {
    /// Who will be charged. The account of a key never changes.
    #[must_use]
    pub const fn account(&self) -> &AccountId {
        &self.account
    }

    /// The price of the request.
    #[must_use]
    pub const fn amount(&self) -> Credits {
        self.amount
    }
}

impl Future for ExpectedCharge {
    /// Nothing was charged after an error, unless [`MeterError::outcome_is_unknown`].
    type Output = Result<Decision, MeterError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let decision = std::task::ready!(self.reply.poll_outcome(context)).map(|outcome| match outcome {
            Outcome::Decided(decision) => decision,
            other => unreachable!("a store decides a charge, but the outcome was {other:?}"),
        });
        if let Ok(decision) = &decision {
            self.span.record("metering.decision", decision.name());
        }
        Poll::Ready(decision)
    }
}

shown_fields!(ExpectedCharge: account, amount);
