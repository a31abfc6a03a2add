//! Payments that come with requests: accepts a signed authorization, has it settled, and returns the account whose
//! credits pay.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metering_core::access::Caller;
use metering_core::charging::Fingerprint;
use metering_core::payments::ExchangeRates;
use metering_core::service::{Paid, RequestedResource};
use metering_core::shown_fields;
use metering_core::store::{AuthorizationOpened, AuthorizationStore};
use metering_core::{Clock, Credits, Error, Timestamp};

use crate::challenges::{ChallengeCredential, ChallengeSettings};
use crate::offers::{
    AuthorizationRecord, AuthorizationState, IdentifierHash, Listing, Offer, Offers, PayRefusal, PaymentLimit,
    RevertLimits, SettlementPolicy, SignedAuthorization, StatementSigner, Submitter,
};
use crate::settling::{OfferChain, Settler, Settling, SettlingStatus};
use crate::wire::x402::Site;

/// Settings for payable 402s.
#[derive(Debug, Clone)]
pub struct OfferSettings {
    /// The offers; empty if they are not known yet ([`SignedPayments::offer`]).
    pub offers: Offers,
    /// The chains that it is paid on, by id.
    pub chains: BTreeMap<u64, OfferChain>,
    /// How many confirmations a payment needs. 1 by default: an agent waits for one block.
    pub confirmations: u32,
    /// How long a request waits for its payment. 25 seconds by default.
    pub wait: Duration,
    /// How often to look at the chain meanwhile. One second by default.
    pub poll: Duration,
    /// After how long a transaction that is in no block is replaced by one with higher fees. 20 seconds by default.
    pub replace_after: Duration,
    /// Whether requests without a key can pay.
    pub keyless: bool,
    /// Whether requests without a key can be paid for by usage, on routes priced by usage (the scheme `upto` of x402),
    /// on chains where the service itself executes payments. Such a request is served before it is paid, and its payer
    /// may have moved the tokens meanwhile. `false` by default.
    pub usage: bool,
    /// Whether the service itself executes payments of wallets with code: contracts (EIP-1271), and delegations
    /// (EIP-7702). Their code decides whether a transaction succeeds, and can let a simulation succeed and the
    /// transaction revert at the service's cost. `false` by default. Payments that a facilitator executes are not
    /// affected.
    pub contract_wallets: bool,
    /// How many payments may revert at the service's cost. Counted by this process, in memory.
    pub reverts: RevertLimits,
    /// Limits new payments. No limit by default.
    pub limit: Option<Arc<dyn PaymentLimit>>,
    /// The rates of the currency in which receipts express payments. `None` by default: receipts then have no values.
    pub rates: Option<Arc<ExchangeRates>>,
    /// The secret and terms of MPP challenges. Without it, payments are offered to clients of x402 only. Leave it out
    /// if clients reach the service over the internet without TLS: the draft forbids challenges there.
    pub challenges: Option<ChallengeSettings>,
    /// Signs offers and receipts, for clients of x402 that keep them as evidence. Without it, they are not signed.
    pub signer: Option<Arc<dyn StatementSigner>>,
}

impl Default for OfferSettings {
    fn default() -> Self {
        Self {
            offers: Offers::default(),
            chains: BTreeMap::new(),
            confirmations: 1,
            wait: Duration::from_secs(25),
            poll: Duration::from_secs(1),
            replace_after: Duration::from_secs(20),
            keyless: true,
            usage: false,
            contract_wallets: false,
            reverts: RevertLimits::default(),
            limit: None,
            rates: None,
            challenges: None,
            signer: None,
        }
    }
}

/// A payment that came with a request.
#[derive(Debug, Clone, Copy)]
pub struct PayRequest<'r> {
    /// The signed authorization.
    pub signed: &'r SignedAuthorization,
    /// The sender of the request. With a key, its account is credited; without one, the account of the wallet that
    /// pays.
    pub caller: Caller<'r>,
    /// The identity of the request.
    pub request: Fingerprint,
    /// The request's cost or maximum cost.
    pub price: Credits,
    /// The id that its client gave the payment.
    pub identifier: Option<IdentifierHash>,
    /// The challenge that it is for ([`ReceivedPayment::answer`](crate::ReceivedPayment::answer)).
    pub answer: Option<&'r ChallengeCredential>,
    /// Its resource, if it is executed by a facilitator, which may list it.
    pub listing: Option<&'r Arc<Listing>>,
}

/// Sells credits for payments that come with requests: the offers of a service, and the settlement of payments.
///
/// One is made for a store, and [`Service::with_request_payments`](metering_core::Service::with_request_payments) takes
/// it. Call [`SignedPayments::settle_authorizations`] regularly.
pub struct SignedPayments {
    pub(crate) settling: Arc<Settling>,
    pub(crate) clock: Arc<dyn Clock>,
    offers: OnceLock<Offers>,
    /// The service that wallets sign in to; `None` if the service has no configured URL.
    pub(crate) site: Option<Site>,
    wait: Duration,
    pub(crate) keyless: bool,
    pub(crate) usage: bool,
    pub(crate) limit: Option<Arc<dyn PaymentLimit>>,
    pub(crate) challenges: Option<ChallengeSettings>,
    pub(crate) signer: Option<Arc<dyn StatementSigner>>,
}

shown_fields!(SignedPayments: offers, keyless);

impl SignedPayments {
    /// Takes payments for the accounts of `store`, which must be the service's own store. `public_url` is where clients
    /// reach the service, without a trailing slash: wallets sign in to it.
    #[must_use]
    pub fn new(
        store: Arc<dyn AuthorizationStore>,
        clock: Arc<dyn Clock>,
        public_url: &str,
        settings: OfferSettings,
    ) -> Self {
        let OfferSettings { offers, chains, confirmations, wait, poll, replace_after, keyless, limit, .. } = settings;
        let OfferSettings { usage, contract_wallets, reverts, challenges, rates, signer, .. } = settings;
        let policy = SettlementPolicy { confirmations: confirmations.into(), replace_after };
        let settling =
            Settling::new(store, chains, Arc::clone(&clock), policy, poll, (contract_wallets, reverts), rates);
        let known = OnceLock::new();
        if !offers.is_empty() {
            known.get_or_init(|| offers);
        }
        let site = public_url.parse().ok();
        Self { settling, clock, offers: known, site, wait, keyless, usage, limit, challenges, signer }
    }

    /// Sets the offers, once, if they were not known before: a server may start while the tokens' contracts cannot be
    /// read. Does nothing when there are offers already.
    pub fn offer(&self, offers: Offers) {
        let _ = self.offers.set(offers);
    }

    /// The offers; empty if there are none.
    #[must_use]
    pub fn offers(&self) -> &Offers {
        static NONE: Offers = Offers::NONE;
        self.offers.get().unwrap_or(&NONE)
    }

    /// The protocols in which requests can be paid.
    #[must_use]
    pub const fn protocols(&self) -> &'static [&'static str] {
        match self.challenges {
            Some(_) => &["x402", "mpp"],
            None => &["x402"],
        }
    }

    /// The wallets that pay the gas of payments, by chain id; none if a facilitator executes them.
    pub fn gas_wallets(&self) -> impl Iterator<Item = (u64, &Arc<dyn Submitter>)> {
        self.settling.chains.iter().filter_map(|(chain_id, chain)| match &chain.settler {
            Settler::Own(submitter) => Some((*chain_id, submitter)),
            Settler::Facilitator(_) => None,
        })
    }

    /// How many payments on a chain reverted within the last hour at the cost of the wallet that pays the gas, and
    /// until when no payments are executed on it, if that was too many. Counted in this process, since its start.
    #[must_use]
    pub fn reverted_payments(&self, chain_id: u64) -> (usize, Option<Timestamp>) {
        self.settling.guard.on_chain(chain_id)
    }

    /// How many payments for usage failed although their requests were served. Counted in this process, since its
    /// start.
    #[must_use]
    pub fn unpaid_usage(&self) -> u64 {
        self.settling.unpaid.load(Ordering::Relaxed)
    }

    /// Resumes payments whose process has ended. Returns how many it took over.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn settle_authorizations(&self) -> Result<usize, Error> {
        Ok(self.settling.take_over().await?)
    }

    /// The resource that facilitators may list for a payment on this chain; `None` if none executes it.
    pub(crate) fn listing(&self, chain_id: u64, asked: &RequestedResource<'_>) -> Option<Arc<Listing>> {
        let chain = self.settling.chains.get(&chain_id)?;
        matches!(chain.settler, Settler::Facilitator(_)).then(|| Listing::of(asked).map(Arc::new)).flatten()
    }

    /// The offer that an authorization takes, and its chain.
    pub(crate) fn offer_of(&self, signed: &SignedAuthorization) -> Result<(&OfferChain, &Offer), PayRefusal> {
        let (chain_id, token, amount) = (signed.chain_id, signed.token, signed.authorization.value);
        let offer = self.offers().find(chain_id, token, amount);
        self.settling.chains.get(&signed.chain_id).zip(offer).ok_or(PayRefusal::NotOffered)
    }

    /// Credits a payment that came with a request, after its transaction is confirmed.
    ///
    /// The same payment sent again credits nothing more. With a key, the request is then simply charged. Without one,
    /// only the same request is accepted again, for 15 minutes, because payments are public on their chain. A payment
    /// for a key's challenge credits that key's account, also if the request lacks the key.
    ///
    /// # Errors
    /// [`Error::KeyRefused`] for a bad key; [`Error::Offer`] when the payment was not credited, or not yet; or when the
    /// store fails.
    pub async fn pay(&self, paying: PayRequest<'_>) -> Result<Paid, Error> {
        let store = &self.settling.store;
        let own = self.paying_for(paying.caller, paying.answer).await?;
        if own.is_none() && !self.keyless {
            return Err(Error::Unauthorized);
        }
        let paying = PayRequest {
            request: paying.answer.map_or(paying.request, |answer| answer.bind(paying.request)),
            ..paying
        };
        let id = paying.signed.id();
        if let Some(identifier) = &paying.identifier {
            let known = store.authorization_by_identifier(&id.payer, identifier).await?;
            if known.is_some_and(|known| known.signed.id() != id) {
                return Err(PayRefusal::IdentifierUsed.into());
            }
        }
        let known = store.authorization(&id).await?;
        if let Some(answer) = paying.answer {
            let own = own.as_ref().map(|(account, _)| account);
            if let Err(fault) = self.check_answer(answer, paying.caller, own).await {
                return Err(known.map_or(fault, |record| self.belongs_to_others(record)));
            }
        }
        let record = match known {
            // A permit that happens to have the same nonce.
            Some(record) if record.usage.is_some() => return Err(PayRefusal::AlreadyCredited.into()),
            Some(record) if matches!(record.state, AuthorizationState::Failed { .. }) => {
                self.reopen(&paying, record).await?
            }
            Some(record) => record,
            None => match self.open(&paying, own.as_ref()).await? {
                AuthorizationOpened::Opened(record) | AuthorizationOpened::Known(record) => record,
                AuthorizationOpened::IdentifierUsed => return Err(PayRefusal::IdentifierUsed.into()),
                AuthorizationOpened::NoSuchAccount => return Err(Error::Unauthorized),
            },
        };
        let is_others = own.as_ref().is_some_and(|(account, _)| account.id != record.account);
        if is_others || (paying.caller.key.is_none() && !self.may_repeat(&record, &paying)) {
            return Err(self.belongs_to_others(record));
        }
        let record = self.await_end(record, paying.listing.cloned()).await?;
        let (account, key) = match own {
            Some((account, key)) => (store.account(&account.id).await?.unwrap_or(account), key),
            None => {
                let account = store.account(&record.account).await?.ok_or(Error::Unauthorized)?;
                let key = store.first_key(&account.id).await?.ok_or(Error::Unauthorized)?;
                (account, key)
            }
        };
        let request_id = paying.caller.key.is_none().then(|| id.request_id());
        let AuthorizationRecord { tx, credits, received_at, .. } = record;
        Ok(Paid { account, key, request_id, tx, credits, received_at, hold: None })
    }

    /// Waits until a payment is credited.
    async fn await_end(
        &self,
        record: AuthorizationRecord,
        listing: Option<Arc<Listing>>,
    ) -> Result<AuthorizationRecord, Error> {
        let record = self.await_settled(record, listing).await?;
        match record.state {
            AuthorizationState::Credited => Ok(record),
            AuthorizationState::Failed { failure, .. } => Err(PayRefusal::Failed(failure).into()),
            AuthorizationState::Pending => Err(PayRefusal::Pending { tx: None }.into()),
        }
    }

    /// Waits until a payment is credited or has failed.
    pub(crate) async fn await_settled(
        &self,
        record: AuthorizationRecord,
        listing: Option<Arc<Listing>>,
    ) -> Result<AuthorizationRecord, Error> {
        Ok(match record.state {
            AuthorizationState::Pending => {
                let newest = record.submissions.last().map(|submission| submission.hash);
                let id = record.signed.id();
                let mut status = self.settling.settle(record, listing);
                let over = status.wait_for(|status| matches!(status, SettlingStatus::Finished(_)));
                let over = tokio::time::timeout(self.wait, over).await;
                let over = over.ok().and_then(Result::ok).map(|over| over.clone());
                let Some(SettlingStatus::Finished(record)) = over else {
                    let known = self.settling.store.authorization(&id).await?;
                    let tx = known.and_then(|record| record.submissions.last().map(|newest| newest.hash)).or(newest);
                    return Err(PayRefusal::Pending { tx }.into());
                };
                *record
            }
            AuthorizationState::Credited | AuthorizationState::Failed { .. } => record,
        })
    }

    /// Refuses a payment from callers who do not get its credits. It is settled anyway, because no request may be
    /// waiting for it.
    fn belongs_to_others(&self, record: AuthorizationRecord) -> Error {
        match record.state {
            AuthorizationState::Failed { failure, .. } => return PayRefusal::Failed(failure).into(),
            AuthorizationState::Pending => drop(self.settling.settle(record, None)),
            AuthorizationState::Credited => {}
        }
        PayRefusal::AlreadyCredited.into()
    }
}
