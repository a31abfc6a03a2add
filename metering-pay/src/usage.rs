//! Payments for the usage of a request (the scheme `upto` of x402): accepts a signed permit for the maximum, and
//! transfers the used amount once the request's hold is settled.
//!
//! Nothing is credited before that, so the permit backs the hold instead of a balance. It is on disk before the request
//! is forwarded, and pays for this request only.

use std::sync::Arc;

use metering_core::access::{Account, Caller};
use metering_core::chains::{AccountCode, Address, ChainError, TokenUnits, WalletSignature};
use metering_core::charging::{Fingerprint, HoldId};
use metering_core::service::Paid;
use metering_core::store::{AuthorizationOpened, NewAuthorization};
use metering_core::{AccountId, Credits, Error, SystemRandomness, Timestamp};

use crate::offers::{
    AuthorizationFault, AuthorizationRecord, AuthorizationState, PayRefusal, PaymentAttempt, Permit,
    SignedAuthorization, Submitter, UPTO_PROXY, UsageOffer,
};
use crate::received_payment::{ReceivedPayment, UsagePaid};
use crate::settling::{LEASE, OfferChain, Settler};
use crate::signed_payments::SignedPayments;

/// A permit whose deadline is sooner than this is refused: the request must end before it, and its payment must be
/// executed. Half of the time that offers request, so clocks may differ.
const LEAST_SECONDS: u64 = 1_800;

/// A request that came with a payment for its usage.
pub(crate) struct UsageRequest<'r> {
    pub(crate) payment: &'r ReceivedPayment,
    /// The facilitator that may execute it.
    pub(crate) facilitator: Address,
    pub(crate) caller: Caller<'r>,
    pub(crate) request: Fingerprint,
    /// The most that it may cost.
    pub(crate) price: Credits,
    /// Whether that is held.
    pub(crate) is_held: bool,
}

impl SignedPayments {
    /// The offers for usage with this error: with each token that the service itself executes payments of.
    pub(crate) fn usage_offered(&self, error: &Error, has_payment: bool, is_held: bool) -> Vec<UsageOffer> {
        match error {
            Error::PaymentRequired { price } | Error::SignIn { price: Some(price), .. } if !has_payment && is_held => {
                self.usage_offers(*price).into_iter().map(|(_, _, offer)| offer).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The offers for a request that costs this at most, one for each token, and who executes each.
    fn usage_offers(&self, price: Credits) -> Vec<(&OfferChain, &Arc<dyn Submitter>, UsageOffer)> {
        let mut offers: Vec<(&OfferChain, &Arc<dyn Submitter>, UsageOffer)> = Vec::new();
        for offer in self.offers().iter().filter(|_| self.usage && self.keyless) {
            let Some(chain) = self.settling.chains.get(&offer.network().0) else { continue };
            let Settler::Own(submitter) = &chain.settler else { continue };
            let is_known = offers.iter().any(|(_, _, known)| known.most.asset == offer.asset);
            if let Some(most) = offer.for_credits(price).filter(|_| !is_known) {
                offers.push((chain, submitter, UsageOffer { most, facilitator: submitter.wallet() }));
            }
        }
        offers
    }

    /// Accepts a payment for the usage of a request. Its hold is then to be placed under [`Paid::hold`].
    pub(crate) async fn authorize_usage(&self, asked: UsageRequest<'_>) -> Result<Paid, Error> {
        let UsageRequest { payment, facilitator, caller, request, price, is_held } = asked;
        let (signed, store) = (&payment.signed, &self.settling.store);
        if let Some(known) = store.authorization(&signed.id()).await? {
            return Err(of_known(&known).into());
        }
        let is_it = |offer: &UsageOffer| {
            let domain = &offer.most.asset.domain;
            (domain.chain_id, domain.contract) == (signed.chain_id, signed.token)
        };
        let offered = self.usage_offers(price).into_iter().find(|(_, _, offer)| is_it(offer));
        let offered = offered.filter(|_| is_held && caller.key.is_none());
        let (chain, submitter, offer) = offered.ok_or(PayRefusal::UsageNotOffered)?;
        if facilitator != offer.facilitator {
            return Err(PayRefusal::OtherFacilitator { expected: offer.facilitator, found: facilitator }.into());
        }
        let now = self.clock.now();
        check_terms(signed, &offer, now)?;
        let permit = Permit { signed, facilitator };
        let is_signed = permit.is_signed_by_key();
        if let Some(limit) = &self.limit {
            let attempt = PaymentAttempt { client: caller.address, payer: signed.authorization.from, is_signed };
            limit.count(&attempt).map_err(PayRefusal::TooMany)?;
        }
        let is_contract = !is_signed && is_signed_by_contract(chain, permit).await?;
        if chain.tokens.is_permit_used(&signed.id()).await.map_err(unreadable)? {
            return Err(PayRefusal::AlreadyCredited.into());
        }
        self.check_wallet(chain, signed).await?;
        check_execution(chain, &**submitter, signed).await?;
        let account = self.account_of_wallet(signed, is_contract).await?;
        let (account, key) = match store.account(&account).await?.zip(store.first_key(&account).await?) {
            Some(found) => found,
            // Nothing can be charged to this account without a key.
            None => return Err(Error::Unauthorized),
        };
        // Not before the checks, which may take long: its hold must follow soon, and until then nobody else settles it.
        let (hold, received_at) = (HoldId::generate(&SystemRandomness), self.clock.now());
        let new = NewAuthorization {
            signed: signed.clone(),
            account: account.id.clone(),
            credits: price,
            request: Some(request),
            identifier: payment.identifier,
            received_at,
            usage: Some(hold),
        };
        match store.open_authorization(new, LEASE).await? {
            AuthorizationOpened::Opened(_) => {}
            AuthorizationOpened::Known(known) => return Err(of_known(&known).into()),
            AuthorizationOpened::IdentifierUsed => return Err(PayRefusal::IdentifierUsed.into()),
            AuthorizationOpened::NoSuchAccount => return Err(Error::Unauthorized),
        }
        if let Err(error) = self.check_others(chain, signed, &account).await {
            self.usage_not_charged(payment).await;
            return Err(error);
        }
        let request_id = Some(signed.id().request_id());
        Ok(Paid { account, key, request_id, tx: None, credits: price, received_at, hold: Some(hold) })
    }

    /// Checks whether the payer can pay for all of its requests in progress and has paid for earlier ones. Called once
    /// the new payment is stored: of two that arrive together, at least one sees the other. The chain is read last, so
    /// it shows the transfers for payments that are no longer pending.
    async fn check_others(
        &self,
        chain: &OfferChain,
        signed: &SignedAuthorization,
        account: &Account,
    ) -> Result<(), Error> {
        let others = self.settling.store.unsettled_usage(&signed.authorization.from).await?;
        let owed = account.totals.balance.checked_neg().filter(|owed| owed.is_positive());
        if let Some(owed) = owed.filter(|_| others.iter().any(AuthorizationRecord::is_unpaid)) {
            return Err(PayRefusal::Owes { owed }.into());
        }
        let is_pending = |other: &&AuthorizationRecord| {
            other.state == AuthorizationState::Pending && other.signed.chain_id == signed.chain_id
        };
        // Permit2 has one set of nonces for all tokens: it executes only one of two permits with the same nonce.
        let (nonce, token) = (signed.authorization.nonce, signed.token);
        let has_nonce =
            |other: &AuthorizationRecord| other.signed.authorization.nonce == nonce && other.signed.token != token;
        if others.iter().filter(is_pending).any(has_nonce) {
            return Err(PayRefusal::AlreadyCredited.into());
        }
        let shares_tokens = |other: &&AuthorizationRecord| is_pending(other) && other.signed.token == token;
        let need = others.iter().filter(shares_tokens).fold(0_u128, |need, other| {
            need.saturating_add(other.due().unwrap_or(other.signed.authorization.value).get())
        });
        let spendable = chain.tokens.spendable(token, signed.authorization.from).await.map_err(unreadable)?;
        let (have, need) = (spendable.balance.min(spendable.allowance), TokenUnits::new(need));
        if need > have { Err(PayRefusal::Outstanding { have, need }.into()) } else { Ok(()) }
    }

    /// The request of a payment was not charged, so nothing is to be paid.
    pub(crate) async fn usage_not_charged(&self, payment: &ReceivedPayment) {
        let (id, now) = (payment.signed.id(), self.clock.now());
        if let Err(error) = self.settling.store.use_authorization(&id, Credits::ZERO, now).await {
            // The task that settles it finds no hold.
            tracing::warn!(payer = %id.payer, %error, "a payment of a request that was not charged is still pending");
        }
    }

    /// Executes the payment of a request whose hold is settled, and waits for it. Returns the balance after it.
    pub(crate) async fn settle_usage_of(&self, payment: &ReceivedPayment) -> Option<Credits> {
        let (id, store) = (payment.signed.id(), &self.settling.store);
        let record = match store.authorization(&id).await {
            Ok(record) => record?,
            Err(error) => {
                tracing::warn!(payer = %id.payer, %error, "a payment for usage cannot be read; it is settled later");
                return None;
            }
        };
        let account = record.account.clone();
        let outcome = match self.await_settled(record, None).await {
            Ok(record) => outcome(&record),
            Err(error) => Err(PayRefusal::of(&error)?.clone()),
        };
        let is_settled = outcome.is_ok();
        payment.ended(outcome);
        if is_settled { self.balance_of(&account).await } else { None }
    }

    async fn balance_of(&self, account: &AccountId) -> Option<Credits> {
        let account = self.settling.store.account(account).await.ok()??;
        Some(account.totals.balance)
    }
}

/// How a payment for usage ended.
fn outcome(record: &AuthorizationRecord) -> Result<UsagePaid, PayRefusal> {
    let used = record.usage.and_then(|usage| usage.used);
    match record.state {
        AuthorizationState::Credited => {
            let amount = record.due().unwrap_or(TokenUnits::ZERO);
            Ok(UsagePaid { tx: record.tx.map(|tx| tx.hash), amount })
        }
        AuthorizationState::Failed { .. } if used == Some(Credits::ZERO) => {
            Ok(UsagePaid { tx: None, amount: TokenUnits::ZERO })
        }
        AuthorizationState::Failed { failure, .. } => Err(PayRefusal::Failed(failure)),
        AuthorizationState::Pending => Err(PayRefusal::Pending { tx: None }),
    }
}

/// Why a payment that was accepted before is refused: it pays for one request, once.
fn of_known(known: &AuthorizationRecord) -> PayRefusal {
    match known.state {
        AuthorizationState::Pending => PayRefusal::Pending { tx: known.submissions.last().map(|newest| newest.hash) },
        AuthorizationState::Failed { failure, .. } => PayRefusal::Failed(failure),
        AuthorizationState::Credited => PayRefusal::AlreadyCredited,
    }
}

/// Checks recipient, amount and times.
fn check_terms(signed: &SignedAuthorization, offer: &UsageOffer, now: Timestamp) -> Result<(), PayRefusal> {
    let authorization = &signed.authorization;
    authorization.check(offer.most.expected(), now).map_err(PayRefusal::Invalid)?;
    let seconds = u64::try_from(now.unix_millis() / 1_000).unwrap_or(0);
    let valid_before = authorization.valid_before;
    match valid_before < seconds.saturating_add(LEAST_SECONDS) {
        true => Err(PayRefusal::Invalid(AuthorizationFault::Expired { valid_before })),
        false => Ok(()),
    }
}

/// Whether the payer is a contract that accepts the signature; otherwise, it is refused.
async fn is_signed_by_contract(chain: &OfferChain, permit: Permit<'_>) -> Result<bool, Error> {
    let (payer, signature) = (permit.signed.authorization.from, permit.signed.signature.as_bytes());
    let is_contract = chain.reader.code(payer).await.map_err(unreadable)? != AccountCode::Empty;
    let accepts = chain.reader.accepts_signature(payer, permit.digest(), signature);
    if is_contract && accepts.await.map_err(unreadable)? {
        return Ok(true);
    }
    let may_be_of_key = signature.len() == WalletSignature::KEY_BYTES;
    Err(PayRefusal::Invalid(match is_contract || may_be_of_key {
        true => AuthorizationFault::Signature { payer },
        false => AuthorizationFault::NotDeployed { payer },
    })
    .into())
}

/// Checks whether the most could be transferred now.
async fn check_execution(
    chain: &OfferChain,
    submitter: &dyn Submitter,
    signed: &SignedAuthorization,
) -> Result<(), Error> {
    let (token, need) = (signed.token, signed.authorization.value);
    let spendable = chain.tokens.spendable(token, signed.authorization.from).await.map_err(unreadable)?;
    if spendable.allowance < need {
        return Err(PayRefusal::Allowance { token, have: spendable.allowance, need }.into());
    }
    if spendable.balance < need {
        let have = spendable.balance.get();
        return Err(PayRefusal::WouldFail(format!("insufficient balance: the wallet has {have} units")).into());
    }
    // A call of an address without code succeeds, and does nothing.
    if chain.reader.code(UPTO_PROXY).await.map_err(unreadable)? != AccountCode::Contract {
        tracing::error!(chain_id = signed.chain_id, proxy = %UPTO_PROXY, "x402's proxy for upto is not on this chain; set pay.upto = false");
        return Err(PayRefusal::Unavailable.into());
    }
    match submitter.check(signed, Some(need)).await {
        Ok(()) => Ok(()),
        Err(problem) => Err(match problem.refusal() {
            Some(reason) => PayRefusal::WouldFail(reason),
            None => {
                tracing::error!(wallet = %submitter.wallet(), %problem, "the gas wallet cannot execute payments");
                PayRefusal::Unavailable
            }
        }
        .into()),
    }
}

fn unreadable(error: ChainError) -> Error {
    tracing::warn!(%error, "a payment for usage could not be checked");
    PayRefusal::Unavailable.into()
}
