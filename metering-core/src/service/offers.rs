//! Payments that come with requests: accepts a signed authorization, has it settled, and says whose credits pay.

mod accepting;
mod payer;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::access::account::Account;
use crate::access::credentials::Caller;
use crate::access::key::KeyHash;
use crate::chains::transaction::TxRef;
use crate::charging::delivery::Fingerprint;
use crate::charging::request_id::RequestId;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::offers::{
    AuthorizationRecord, AuthorizationState, IdentifierHash, Offers, PayRefusal, PaymentLimit, RevertLimits,
    SettlementPolicy, SignedAuthorization, Submitter,
};
use crate::service::Service;
use crate::service::challenges::{ChallengeCredential, ChallengeSettings};
use crate::service::offer_settlement::OfferSettlement;
use crate::service::settling::{OfferChain, Settler, Settling, SettlingStatus};
use crate::store::{AuthorizationOpened, AuthorizationStore};

/// Settings for payable 402s.
#[derive(Debug, Clone)]
pub struct OfferSettings {
    /// What is offered; empty if that is not known yet ([`Service::offer`]).
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
    /// Whether the service itself executes payments of wallets with code: contracts (EIP-1271), and delegations
    /// (EIP-7702). Their code decides whether a transaction succeeds, and can let a simulation succeed and the
    /// transaction revert at the service's cost. `false` by default. Payments that a facilitator executes are not
    /// affected.
    pub contract_wallets: bool,
    /// How many payments may revert at the service's cost. Counted by this process, in memory.
    pub reverts: RevertLimits,
    /// Limits new payments. No limit by default.
    pub limit: Option<Arc<dyn PaymentLimit>>,
    /// What challenges of MPP are made with. Without it, payments are offered to clients of x402 only.
    pub challenges: Option<ChallengeSettings>,
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
            contract_wallets: false,
            reverts: RevertLimits::default(),
            limit: None,
            challenges: None,
        }
    }
}

/// A payment that came with a request.
#[derive(Debug, Clone, Copy)]
pub struct PayRequest<'r> {
    /// The signed authorization.
    pub signed: &'r SignedAuthorization,
    /// Who sent the request. With a key, its account is credited; without one, the account of the wallet that pays.
    pub caller: Caller<'r>,
    /// What tells the request apart from others.
    pub request: Fingerprint,
    /// What the request costs, or may cost.
    pub price: Credits,
    /// The id that its client gave the payment.
    pub identifier: Option<IdentifierHash>,
    /// The challenge that it is for ([`RequestPayment::answer`](crate::service::RequestPayment::answer)).
    pub answer: Option<&'r ChallengeCredential>,
}

/// A payment that was credited.
#[derive(Debug, Clone)]
pub struct Paid {
    /// The account.
    pub account: Account,
    /// The key that the request is charged to.
    pub key: KeyHash,
    /// The id to charge a request without a key by, so that the same payment cannot pay for another one.
    pub request_id: Option<RequestId>,
    /// The transaction that executed the payment.
    pub tx: Option<TxRef>,
    /// What it bought.
    pub credits: Credits,
    /// When it was received.
    pub received_at: Timestamp,
}

impl Service {
    /// Offers payments in refusals for lack of credits, and accepts them with requests. `store` must be the service's
    /// own store. Call [`Service::settle_authorizations`] regularly.
    #[must_use]
    pub fn with_offers(mut self, store: Arc<dyn AuthorizationStore>, settings: OfferSettings) -> Self {
        let OfferSettings { offers, chains, confirmations, wait, poll, replace_after, keyless, limit, .. } = settings;
        let OfferSettings { contract_wallets, reverts, challenges, .. } = settings;
        let policy = SettlementPolicy { confirmations: confirmations.into(), replace_after };
        let settling = Settling::new(store, chains, Arc::clone(&self.clock), policy, poll, (contract_wallets, reverts));
        let known = OnceLock::new();
        if !offers.is_empty() {
            known.get_or_init(|| offers);
        }
        let site = self.config.public_url.parse().ok();
        self.shop = Some(Arc::new(OfferSettlement { settling, offers: known, site, wait, keyless, limit, challenges }));
        self
    }

    /// Sets what is offered, once, after [`Service::with_offers`] without offers: a server may start while the tokens'
    /// contracts cannot be read. Does nothing when there are offers already.
    pub fn offer(&self, offers: Offers) {
        if let Some(shop) = &self.shop {
            let _ = shop.offers.set(offers);
        }
    }

    /// What is offered; empty if nothing is.
    #[must_use]
    pub fn offers(&self) -> &Offers {
        static NONE: Offers = Offers::NONE;
        self.shop.as_ref().and_then(|shop| shop.offers.get()).unwrap_or(&NONE)
    }

    /// The protocols in which requests can be paid.
    #[must_use]
    pub fn payment_protocols(&self) -> &'static [&'static str] {
        match self.challenge_settings() {
            Some(_) => &["x402", "mpp"],
            None => &["x402"],
        }
    }

    /// What challenges are made with, if they are.
    pub(super) fn challenge_settings(&self) -> Option<&ChallengeSettings> {
        self.shop.as_ref()?.challenges.as_ref()
    }

    /// Whether requests without a key can pay.
    #[must_use]
    pub fn accepts_keyless_payments(&self) -> bool {
        self.shop
            .as_ref()
            .is_some_and(|shop| shop.keyless && shop.offers.get().is_some_and(|offers| !offers.is_empty()))
    }

    /// The wallets that pay the gas of payments, by chain id; none if a facilitator executes them.
    pub fn gas_wallets(&self) -> impl Iterator<Item = (u64, &Arc<dyn Submitter>)> {
        let chains = self.shop.iter().flat_map(|shop| &shop.settling.chains);
        chains.filter_map(|(chain_id, chain)| match &chain.settler {
            Settler::Own(submitter) => Some((*chain_id, submitter)),
            Settler::Facilitator(_) => None,
        })
    }

    /// How many payments on a chain reverted within the last hour at the cost of the wallet that pays the gas, and
    /// until when no payments are executed on it, if that was too many. Of this process, since its start.
    #[must_use]
    pub fn reverted_payments(&self, chain_id: u64) -> (usize, Option<Timestamp>) {
        self.shop.as_ref().map(|shop| shop.settling.guard.on_chain(chain_id)).unwrap_or_default()
    }

    /// Resumes payments whose process has ended. Returns how many it took over.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn settle_authorizations(&self) -> Result<usize, Error> {
        match &self.shop {
            Some(shop) => Ok(shop.settling.take_over().await?),
            None => Ok(0),
        }
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
        let Some(shop) = &self.shop else { return Err(PayRefusal::NotOffered.into()) };
        let own = self.paying_for(paying.caller, paying.answer).await?;
        if own.is_none() && !shop.keyless {
            return Err(Error::Unauthorized);
        }
        let paying = PayRequest {
            request: paying.answer.map_or(paying.request, |answer| answer.bind(paying.request)),
            ..paying
        };
        let id = paying.signed.id();
        if let Some(identifier) = &paying.identifier {
            let known = shop.settling.store.authorization_by_identifier(&id.payer, identifier).await?;
            if known.is_some_and(|known| known.signed.id() != id) {
                return Err(PayRefusal::IdentifierUsed.into());
            }
        }
        let known = shop.settling.store.authorization(&id).await?;
        if let Some(answer) = paying.answer {
            let own = own.as_ref().map(|(account, _)| account);
            if let Err(fault) = self.check_answer(answer, paying.caller, own).await {
                return Err(known.map_or(fault, |record| belongs_to_others(shop, record)));
            }
        }
        let record = match known {
            Some(record) if matches!(record.state, AuthorizationState::Failed { .. }) => {
                self.reopen(shop, &paying, record).await?
            }
            Some(record) => record,
            None => match self.open(shop, &paying, own.as_ref()).await? {
                AuthorizationOpened::Opened(record) | AuthorizationOpened::Known(record) => record,
                AuthorizationOpened::IdentifierUsed => return Err(PayRefusal::IdentifierUsed.into()),
                AuthorizationOpened::NoSuchAccount => return Err(Error::Unauthorized),
            },
        };
        let is_others = own.as_ref().is_some_and(|(account, _)| account.id != record.account);
        if is_others || (paying.caller.key.is_none() && !self.may_repeat(&record, &paying)) {
            return Err(belongs_to_others(shop, record));
        }
        let record = await_end(shop, record).await?;
        let (account, key) = match own {
            Some((account, key)) => (self.store.account(&account.id).await?.unwrap_or(account), key),
            None => {
                let account = self.store.account(&record.account).await?.ok_or(Error::Unauthorized)?;
                let key = shop.settling.store.first_key(&account.id).await?.ok_or(Error::Unauthorized)?;
                (account, key)
            }
        };
        let request_id = paying.caller.key.is_none().then(|| id.request_id());
        let AuthorizationRecord { tx, credits, received_at, .. } = record;
        Ok(Paid { account, key, request_id, tx, credits, received_at })
    }
}

/// Waits until a payment is credited or has failed.
async fn await_end(shop: &OfferSettlement, record: AuthorizationRecord) -> Result<AuthorizationRecord, Error> {
    let record = match record.state {
        AuthorizationState::Pending => {
            let newest = record.submissions.last().map(|submission| submission.hash);
            let id = record.signed.id();
            let mut status = shop.settling.settle(record);
            let over = status.wait_for(|status| matches!(status, SettlingStatus::Finished(_)));
            let over = tokio::time::timeout(shop.wait, over).await;
            let over = over.ok().and_then(Result::ok).map(|over| over.clone());
            let Some(SettlingStatus::Finished(record)) = over else {
                let known = shop.settling.store.authorization(&id).await?;
                let tx = known.and_then(|record| record.submissions.last().map(|newest| newest.hash)).or(newest);
                return Err(PayRefusal::Pending { tx }.into());
            };
            *record
        }
        AuthorizationState::Credited | AuthorizationState::Failed { .. } => record,
    };
    match record.state {
        AuthorizationState::Credited => Ok(record),
        AuthorizationState::Failed { failure, .. } => Err(PayRefusal::Failed(failure).into()),
        AuthorizationState::Pending => Err(PayRefusal::Pending { tx: None }.into()),
    }
}

/// Refuses a payment to callers who do not get its credits. It is settled anyway, because no request may be waiting for
/// it.
fn belongs_to_others(shop: &OfferSettlement, record: AuthorizationRecord) -> Error {
    match record.state {
        AuthorizationState::Failed { failure, .. } => return PayRefusal::Failed(failure).into(),
        AuthorizationState::Pending => drop(shop.settling.settle(record)),
        AuthorizationState::Credited => {}
    }
    PayRefusal::AlreadyCredited.into()
}
