//! One step of settling an authorization: look at the chain, decide, act.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use metering_core::chains::{ChainError, Evidence, TransactionStatus};
use metering_core::chains::{TokenUnits, TxHash, TxRef};
use metering_core::charging::HoldId;
use metering_core::clock::Timestamp;
use metering_core::money::{Credits, LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::payments::{Payment, PaymentTarget, PaymentUse, PaymentValue, Plan};
use metering_core::store::{AuthorizationCredited, PaymentCredit, QuotePrecedence, StoreError};

use crate::offers::{
    AuthorizationRecord, AuthorizedUsage, FacilitatorError, Listing, NextStep, Observation, Offer, OwnTransaction,
    SettlementFailure, SignedAuthorization, Submission, SubmitError, Submitter, next_step,
};
use crate::settling::guard::{Permit, Turn};
use crate::settling::state::{OfferChain, Settler, Settling};

/// How far back to search for a transaction that executed an authorization before the service knew it.
const LOOK_BACK: Duration = Duration::from_secs(24 * 60 * 60);
/// By when the request of an authorization for usage must have its hold. The hold is opened as soon as the
/// authorization is stored.
const HELD_BY: Duration = Duration::from_secs(2 * 60);
/// How often in a row an authorization must be refused. Sources may lag: one may refuse an authorization because it is
/// used, and the next may not show that yet.
const REFUSALS: u32 = 3;

/// One task's record of its steps.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The resource of the payment, if this process accepted it.
    pub(super) listing: Option<Arc<Listing>>,
    /// When a facilitator was last requested to execute it, and did not refuse.
    asked_at: Option<Timestamp>,
    /// How often in a row it was refused.
    refusals: u32,
    /// Counts it as in flight, from before its first transaction is signed until it was executed or has failed.
    pub(super) permit: Option<Permit>,
    /// Whether a transaction was signed for it.
    has_signed: bool,
    /// Whether its revert was counted.
    pub(super) has_counted: bool,
}

impl Memory {
    pub(super) fn of(listing: Option<Arc<Listing>>) -> Self {
        Self { listing, ..Self::default() }
    }
}

/// One step.
pub(super) struct Step<'s> {
    pub(super) settling: &'s Settling,
    pub(super) chain: &'s OfferChain,
    pub(super) record: &'s AuthorizationRecord,
    pub(super) memory: &'s mut Memory,
}

/// Why a step could not be taken. It is tried again.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Submit(SubmitError),
    #[error(transparent)]
    Facilitator(FacilitatorError),
    #[error("{0}")]
    Credit(&'static str),
    #[error("its transaction cannot be read yet")]
    NotReadYet,
    #[error("it would fail now: {0}")]
    Refused(String),
}

impl Step<'_> {
    /// Takes the next step. Whether to wait before the next step.
    pub(super) async fn take(mut self) -> Result<bool, StepError> {
        if let Some(AuthorizedUsage { hold, used: None }) = self.record.usage {
            return self.await_usage(&hold).await;
        }
        let seen = self.observe().await?;
        self.keep_count(&seen).await?;
        let now = self.settling.clock.now();
        match next_step(self.record, &seen, self.settling.policy, now) {
            NextStep::Credit(payment) => self.credit(*payment).await.map(|()| false),
            NextStep::Wait => Ok(true),
            NextStep::Execute => self.execute(seen.is_place_used).await,
            NextStep::FreePlace => self.free_place().await.map(|()| true),
            NextStep::Fail(SettlementFailure::Refused) if self.record.usage.is_none() => {
                self.refused("its transaction did not execute it").await
            }
            NextStep::Fail(failure) => self.fail(failure).await.map(|()| false),
        }
    }

    /// Waits until the hold that it backs is settled: it pays the captured amount.
    async fn await_usage(&self, hold: &HoldId) -> Result<bool, StepError> {
        let (store, now) = (&self.settling.store, self.settling.clock.now());
        let used = match store.hold(hold).await? {
            Some(hold) => hold.settled.map(|settled| settled.captured),
            // The request was never charged.
            None if now >= self.record.received_at.saturating_add(HELD_BY) => Some(Credits::ZERO),
            None => None,
        };
        let Some(used) = used else { return Ok(true) };
        store.use_authorization(&self.record.signed.id(), used, now).await?;
        Ok(false)
    }

    /// The amount of a permit to transfer. `None` if it is not a permit.
    fn used(&self) -> Option<TokenUnits> {
        self.record.usage.and(self.record.due())
    }

    async fn observe(&self) -> Result<Observation, StepError> {
        let mut own = None;
        for submission in self.record.submissions.iter().rev() {
            let status = self.chain.reader.transaction(&submission.hash).await?;
            let TransactionStatus::Mined(evidence) = status else { continue };
            if let Some(executed) = self.payment_of(submission.hash, &evidence) {
                return Ok(Observation { executed: Some(executed), is_used: true, is_place_used: true, own });
            }
            own = own.max(Some(match evidence.succeeded {
                true => OwnTransaction::DidNothing,
                false => OwnTransaction::Reverted(evidence.depth.confirmations),
            }));
        }
        // Read before the place: in the other order, a transaction could be mined in between.
        let is_place_used = match (&self.chain.settler, self.record.gas) {
            (Settler::Own(submitter), Some(place)) => submitter.mined().await.map_err(StepError::Submit)? > place.nonce,
            _ => false,
        };
        let is_used = self.is_used().await?;
        // Nobody else can execute a permit.
        let executed = if is_used && self.record.usage.is_none() { self.executed().await? } else { None };
        Ok(Observation { executed, is_used, is_place_used, own })
    }

    /// Whether it was executed or cancelled.
    async fn is_used(&self) -> Result<bool, ChainError> {
        let (id, tokens) = (self.record.signed.id(), &self.chain.tokens);
        match self.record.usage {
            Some(_) => tokens.is_permit_used(&id).await,
            None => tokens.is_used(&id).await,
        }
    }

    /// The payment of this authorization in another party's transaction. `None` if it was cancelled, or its nonce was
    /// used for another transfer.
    async fn executed(&self) -> Result<Option<(Payment, u64)>, StepError> {
        let (id, chain) = (self.record.signed.id(), self.chain);
        let authorization = &self.record.signed.authorization;
        let at =
            |seconds| Timestamp::from_unix_millis(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000));
        let latest = self.record.received_at.min(at(authorization.valid_before));
        let since = latest.saturating_sub(LOOK_BACK).max(at(authorization.valid_after)).min(latest);
        let Some(hash) = chain.tokens.executed_in(&id, since).await? else { return Ok(None) };
        match chain.reader.transaction(&hash).await? {
            TransactionStatus::Mined(evidence) => Ok(self.payment_of(hash, &evidence)),
            TransactionStatus::Pending { .. } | TransactionStatus::Unknown => Err(StepError::NotReadYet),
        }
    }

    /// The payment of this authorization in a transaction, with its confirmations.
    fn payment_of(&self, hash: TxHash, evidence: &Evidence) -> Option<(Payment, u64)> {
        let SignedAuthorization { chain_id, token, authorization, .. } = self.record.signed;
        let target = PaymentTarget { chain_id, token, recipient: authorization.to };
        let paid = (authorization.from, self.record.due()?);
        let payment = target.transfer(TxRef { chain_id, hash }, evidence, paid)?;
        Some((payment, evidence.depth.confirmations))
    }

    async fn credit(&self, payment: Payment) -> Result<(), StepError> {
        let (record, now) = (self.record, self.settling.clock.now());
        let tx = payment.tx;
        let value = self.value_of(&payment, now).await;
        let Some(amount) = record.credited() else { return Err(StepError::Credit("the used amount is not known")) };
        let entry = NewLedgerEntry {
            kind: LedgerKind::PurchaseTopup,
            amount,
            description: format!("Paid by {} with a signed authorization", payment.payer),
            payment: Some(PaymentRef { tx, plan_id: None }),
        };
        let credit = PaymentCredit {
            account: record.account.clone(),
            payment,
            used_as: PaymentUse::Authorization,
            entry,
            sold: None,
            value,
            link_payer: false,
            quotes: QuotePrecedence::Account,
            now,
        };
        let id = record.signed.id();
        match self.settling.store.credit_authorization(&id, credit).await? {
            AuthorizationCredited::Account(_) | AuthorizationCredited::NotPending(_) => Ok(()),
            AuthorizationCredited::TxUsed => {
                tracing::error!(%tx, account = %record.account, "a payment was credited before, not by its authorization");
                Err(StepError::Credit("its transaction was credited before"))
            }
            AuthorizationCredited::NoSuchAccount => {
                tracing::error!(%tx, account = %record.account, "a payment cannot be credited: its account is revoked");
                Err(StepError::Credit("its account is revoked"))
            }
            AuthorizationCredited::OutOfRange => {
                tracing::error!(%tx, account = %record.account, "a payment cannot be credited: the balance would be too large");
                Err(StepError::Credit("the balance would be too large"))
            }
        }
    }

    /// The current value of the payment, if the operator has set a currency. Plans name its token.
    async fn value_of(&self, payment: &Payment, now: Timestamp) -> Option<PaymentValue> {
        let rates = self.settling.rates.as_ref()?;
        // Without plans there is no value, and the payment is credited all the same.
        let plans = self.settling.store.plans().await.unwrap_or_default();
        let same = |plan: &&Plan| plan.chain_id == payment.tx.chain_id && plan.token_contract == payment.token;
        let token = plans.iter().find(same).map(|plan| (plan.token_symbol.as_str(), plan.token_decimals));
        Some(rates.value(payment.amount, token, now))
    }

    /// Executes it. Returns whether to wait before the next step.
    async fn execute(&mut self, is_place_used: bool) -> Result<bool, StepError> {
        match &self.chain.settler {
            Settler::Own(submitter) => self.execute_itself(&**submitter, is_place_used).await,
            Settler::Facilitator(_) if self.record.usage.is_some() => Err(StepError::Credit(
                "only the wallet that paid the gas can execute it; set pay.settle = \"self\" again",
            )),
            Settler::Facilitator(facilitator) => {
                let now = self.settling.clock.now();
                let again_at = self.memory.asked_at.map(|at| at.saturating_add(self.settling.policy.replace_after));
                if again_at.is_some_and(|at| now < at) {
                    return Ok(true);
                }
                let asset = self.chain.tokens.asset(self.record.signed.token).await?;
                let asset = asset.ok_or(StepError::Credit("there is no such token"))?;
                let authorization = self.record.signed.authorization;
                let (pay_to, amount, credits) = (authorization.to, authorization.value, self.record.credits);
                let offer = Offer { asset, pay_to, amount, credits };
                let listing = self.memory.listing.clone();
                match facilitator.settle(&self.record.signed, &offer, listing.as_deref()).await {
                    Ok(_) => {
                        self.memory.asked_at = Some(now);
                        Ok(true)
                    }
                    // It may refuse a payment that it executed before.
                    Err(FacilitatorError::Refused(_)) if self.memory.asked_at.is_some() => Ok(true),
                    Err(FacilitatorError::Refused(reason)) => self.refused(&reason).await,
                    Err(error) => {
                        if matches!(error, FacilitatorError::Unfinished(_)) {
                            self.memory.asked_at = Some(now);
                        }
                        Err(StepError::Facilitator(error))
                    }
                }
            }
        }
    }

    /// Executes it at the service's cost, if that keeps the limits on reverts.
    async fn execute_itself(&mut self, submitter: &dyn Submitter, is_place_used: bool) -> Result<bool, StepError> {
        let (record, has_open_place) = (self.record, self.record.has_open_place(is_place_used));
        let place = record.gas.filter(|_| !is_place_used).map(|gas| gas.nonce);
        match (self.turn(place.is_some()).await?, place) {
            (Turn::Now, _) => {}
            (Turn::Later, _) => return Ok(true),
            (Turn::Never(_), Some(place)) if has_open_place => {
                return self.use_up(submitter, place, &record.submissions).await.map(|()| true);
            }
            (Turn::Never(reason), _) if record.usage.is_some() => return Err(StepError::Refused(reason)),
            (Turn::Never(reason), _) => return self.give_up(&reason).await.map(|()| false),
        }
        let submitted = self.submit(submitter).await;
        if !has_open_place && !self.memory.has_signed {
            // Nothing is in flight: other payments do not wait for it.
            self.memory.permit = None;
        }
        submitted
    }

    async fn submit(&mut self, submitter: &dyn Submitter) -> Result<bool, StepError> {
        let (store, id) = (&self.settling.store, self.record.signed.id());
        let mined = submitter.mined().await.map_err(StepError::Submit)?;
        let wallet = submitter.wallet();
        let has_place = self.record.gas.is_some_and(|gas| gas.wallet == wallet && gas.nonce >= mined);
        if !has_place {
            // It may have waited for others of its payer. A returned place delays those after it, and one with
            // transactions cannot be returned.
            match submitter.check(&self.record.signed, self.used()).await {
                Ok(()) => {}
                Err(error) => return self.not_executed(error).await,
            }
        }
        let Some(place) = store.assign_gas_place(&id, submitter.wallet(), mined).await? else { return Ok(false) };
        let is_same_place = self.record.gas.is_some_and(|gas| gas.nonce == place);
        let replaced = if is_same_place { self.record.submissions.as_slice() } else { &[] };
        let now = self.settling.clock.now();
        let submission = match submitter.sign(&self.record.signed, self.used(), place, replaced, now).await {
            Ok(submission) => submission,
            Err(error) if frees_place(&error) && !self.record.submissions.is_empty() => {
                return self.use_up(submitter, place, replaced).await.map(|()| true);
            }
            Err(error) => return self.not_executed(error).await,
        };
        (self.memory.refusals, self.memory.has_signed) = (0, true);
        if store.add_submission(&id, submission.clone()).await? {
            submitter.send(&submission).await.map_err(StepError::Submit)?;
        }
        Ok(true)
    }

    async fn not_executed(&mut self, error: SubmitError) -> Result<bool, StepError> {
        match error.refusal() {
            Some(reason) => self.refused(&reason).await,
            None => Err(StepError::Submit(error)),
        }
    }

    async fn free_place(&self) -> Result<(), StepError> {
        let (Settler::Own(submitter), Some(place)) = (&self.chain.settler, self.record.gas) else { return Ok(()) };
        self.use_up(&**submitter, place.nonce, &self.record.submissions).await
    }

    /// Fills a place with an empty transaction, because later places wait for it.
    async fn use_up(&self, submitter: &dyn Submitter, place: u64, replaced: &[Submission]) -> Result<(), StepError> {
        let now = self.settling.clock.now();
        let signed = submitter.sign_nothing(place, replaced, now).await;
        let submission = signed.map_err(StepError::Submit)?;
        if self.settling.store.add_submission(&self.record.signed.id(), submission.clone()).await? {
            submitter.send(&submission).await.map_err(StepError::Submit)?;
        }
        Ok(())
    }

    /// It will not be executed. Gives up, unless it was executed after all. A payment for usage is tried again until its
    /// deadline, because its request was served.
    async fn refused(&mut self, reason: &str) -> Result<bool, StepError> {
        if self.record.usage.is_some() {
            return Err(StepError::Refused(reason.to_owned()));
        }
        self.memory.refusals += 1;
        if self.memory.refusals < REFUSALS || self.is_used().await? {
            return Ok(true);
        }
        self.give_up(reason).await.map(|()| false)
    }

    async fn give_up(&self, reason: &str) -> Result<(), StepError> {
        let id = self.record.signed.id();
        tracing::info!(payer = %id.payer, nonce = %id.nonce, reason, "an authorization is refused; nothing was taken");
        self.fail(SettlementFailure::Refused).await
    }

    async fn fail(&self, failure: SettlementFailure) -> Result<(), StepError> {
        let now = self.settling.clock.now();
        let id = self.record.signed.id();
        let has_failed = self.settling.store.fail_authorization(&id, failure, now).await?;
        if let Some(used) = self.record.usage.and_then(|usage| usage.used).filter(|_| has_failed) {
            let (account, failure) = (&self.record.account, failure.as_str());
            tracing::error!(payer = %id.payer, %account, %used, failure, "a request was served, and its payment failed; the account owes it");
            self.settling.unpaid.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Whether a transaction that replaces others is not signed for now; those with later places would then wait.
fn frees_place(error: &SubmitError) -> bool {
    error.refusal().is_some() || matches!(error, SubmitError::FeesAboveLimit { .. })
}
