//! Accepts payments that come with requests: everything that is checked before one is stored.

use std::time::Duration;

use metering_core::access::{Account, AgentName, KeyHash, Payer};
use metering_core::chains::{AccountCode, Address, ChainError, WalletSignature};
use metering_core::store::{AuthorizationOpened, Created, NewAuthorization};
use metering_core::{AccountId, ApiKey, Credits, Error, NewAccount, SystemRandomness};

use crate::offers::{
    AuthorizationFault, AuthorizationRecord, AuthorizationState, Exposure, FacilitatorError, Offer, PayRefusal,
    PaymentAttempt, RevertPause, RevertSubject, SettlementFailure, SignedAuthorization,
};
use crate::settling::{LEASE, OfferChain, Settler};
use crate::signed_payments::{PayRequest, SignedPayments};

/// For how long the same request may be sent again with the same payment and without a key.
const REPEATS: Duration = Duration::from_secs(15 * 60);

impl SignedPayments {
    /// Checks a new payment, and stores it.
    pub(crate) async fn open(
        &self,
        paying: &PayRequest<'_>,
        own: Option<&(Account, KeyHash)>,
    ) -> Result<AuthorizationOpened, Error> {
        let signed = paying.signed;
        let (chain, offer) = self.offer_of(signed)?;
        let now = self.clock.now();
        let checked = signed.authorization.check(offer.expected(), now);
        // It may have been executed before it expired.
        checked.or_else(|fault| if fault.is_about_time() { Ok(()) } else { Err(PayRefusal::Invalid(fault)) })?;
        check_limit(self, paying, Some(offer))?;
        let is_contract = self.check_signature(chain, signed, offer).await?;
        let is_used = chain.tokens.is_used(&signed.id()).await.map_err(unreadable)?;
        if !is_used {
            paying.answer.map_or(Ok(()), |answer| answer.check_expiry(now))?;
            checked.map_err(PayRefusal::Invalid)?;
            self.check_covers(paying, own.map(|(account, _)| account), offer).await?;
            self.check_wallet(chain, signed).await?;
            check_settler(chain, paying, offer).await?;
        }
        // Who shows a payment that was executed already may have read it on the chain. Its credits are the payer's,
        // unless the payer signed for this account.
        let account = match own {
            Some((account, _)) if !is_used || paying.answer.is_some() => account.id.clone(),
            _ => self.account_of_wallet(signed, is_contract).await?,
        };
        if own.is_none() && self.settling.store.first_key(&account).await?.is_none() {
            // Nothing can be charged to this account without a key.
            return Err(Error::Unauthorized);
        }
        let new = NewAuthorization {
            signed: signed.clone(),
            account,
            credits: offer.credits,
            request: paying.caller.key.is_none().then_some(paying.request),
            identifier: paying.identifier,
            received_at: now,
            usage: None,
        };
        Ok(self.settling.store.open_authorization(new, LEASE).await?)
    }

    /// Checks whether a payment buys enough for its request. A request is accepted with less than its price in the
    /// account; anyone can create wallets, so the smallest payment must not buy that.
    async fn check_covers(&self, paying: &PayRequest<'_>, own: Option<&Account>, offer: &Offer) -> Result<(), Error> {
        let of_wallet = match own {
            Some(_) => None,
            None => self.settling.store.account_by_payer(&paying.signed.authorization.from).await?,
        };
        let balance = own.or(of_wallet.as_ref()).map_or(Credits::ZERO, |account| account.totals.balance);
        let missing = paying.price.checked_sub(balance).unwrap_or(Credits::MAX);
        let credits = offer.credits;
        let buys_enough = |offer: &Offer| offer.credits >= missing;
        if !buys_enough(offer) && self.offers().iter().any(buys_enough) {
            return Err(PayRefusal::TooLittle { credits, missing }.into());
        }
        Ok(())
    }

    /// Resumes a failed payment if it can be executed after all, or was.
    pub(crate) async fn reopen(
        &self,
        paying: &PayRequest<'_>,
        record: AuthorizationRecord,
    ) -> Result<AuthorizationRecord, Error> {
        let (signed, store) = (paying.signed, &self.settling.store);
        let AuthorizationState::Failed { failure, .. } = record.state else { return Ok(record) };
        let chain = self.settling.chains.get(&signed.chain_id).ok_or(PayRefusal::NotOffered)?;
        check_limit(self, paying, self.offer_of(signed).ok().map(|(_, offer)| offer))?;
        if !chain.tokens.is_used(&signed.id()).await.map_err(unreadable)? {
            // One of its transactions may have reverted, and the next would, too.
            let was_sent = !record.submissions.is_empty();
            if failure != SettlementFailure::Refused || was_sent {
                return Err(PayRefusal::Failed(failure).into());
            }
            let (_, offer) = self.offer_of(signed)?;
            signed.authorization.check(offer.expected(), self.clock.now()).map_err(PayRefusal::Invalid)?;
            self.check_signature(chain, signed, offer).await?;
            self.check_wallet(chain, signed).await?;
            check_settler(chain, paying, offer).await?;
        }
        let reopened = store.reopen_authorization(&signed.id(), self.clock.now().saturating_add(LEASE)).await?;
        // Another request created it first.
        Ok(match reopened {
            Some(record) => record,
            None => store.authorization(&signed.id()).await?.unwrap_or(record),
        })
    }

    /// Checks who signed. Whether it is a wallet that is a contract.
    async fn check_signature(
        &self,
        chain: &OfferChain,
        signed: &SignedAuthorization,
        offer: &Offer,
    ) -> Result<bool, Error> {
        let (authorization, domain) = (&signed.authorization, &offer.asset.domain);
        let payer = authorization.from;
        if authorization.is_signed_by_key(domain, &signed.signature) {
            return Ok(false);
        }
        let is_contract = chain.reader.code(payer).await.map_err(unreadable)? != AccountCode::Empty;
        let digest = authorization.digest(domain);
        let accepts = chain.reader.accepts_signature(payer, digest, signed.signature.as_bytes());
        if is_contract && accepts.await.map_err(unreadable)? {
            return Ok(true);
        }
        let may_be_of_key = signed.signature.as_bytes().len() == WalletSignature::KEY_BYTES;
        Err(PayRefusal::Invalid(match is_contract || may_be_of_key {
            true => AuthorizationFault::Signature { payer },
            false => AuthorizationFault::NotDeployed { payer },
        })
        .into())
    }

    /// Checks whether the service executes payments of the payer's wallet at its own cost now.
    pub(crate) async fn check_wallet(&self, chain: &OfferChain, signed: &SignedAuthorization) -> Result<(), Error> {
        let Settler::Own(_) = &chain.settler else { return Ok(()) };
        let (chain_id, payer) = (signed.chain_id, signed.authorization.from);
        let code = chain.reader.code_hash(payer).await.map_err(unreadable)?;
        if code.is_some() && !self.settling.contract_wallets {
            return Err(PayRefusal::ContractWallet.into());
        }
        let pause = self.settling.guard.pause(&Exposure { chain_id, payer, code });
        let Some(RevertPause { subject, until }) = pause else { return Ok(()) };
        Err(match subject {
            RevertSubject::Chain(_) => PayRefusal::Unavailable,
            RevertSubject::Payer(..) | RevertSubject::Code(..) => {
                let millis = until.unix_millis().saturating_sub(self.clock.now().unix_millis());
                let retry_after_seconds = u64::try_from(millis).unwrap_or_default().div_ceil(1_000).max(1);
                PayRefusal::Paused { subject, retry_after_seconds }
            }
        }
        .into())
    }

    /// The account of a wallet, made now if it has none.
    pub(crate) async fn account_of_wallet(
        &self,
        signed: &SignedAuthorization,
        is_contract: bool,
    ) -> Result<AccountId, Error> {
        let payer = Payer { address: signed.authorization.from, chain_id: signed.chain_id };
        let store = &self.settling.store;
        for _ in 0..2 {
            if let Some(account) = store.account_by_payer(&payer.address).await? {
                return match account.payer {
                    Some(Payer { chain_id, .. }) if is_contract && chain_id != payer.chain_id => {
                        Err(PayRefusal::OtherChain { chain_id }.into())
                    }
                    _ => Ok(account.id),
                };
            }
            // This key is never issued: the wallet's owner proves the wallet and gets a new one.
            let (id, key) = (AccountId::generate(&SystemRandomness), ApiKey::generate(&SystemRandomness));
            let name = wallet_name(payer.address)?;
            let account = NewAccount { payer: Some(payer), ..NewAccount::new(id, name, key.hash(), self.clock.now()) };
            match store.create_account(account).await? {
                Created::Account(account) => return Ok(account.id),
                // Another request of this wallet created it first.
                Created::PayerTaken => {}
                Created::EmailTaken | Created::OutOfRange => return Err(Error::Internal),
            }
        }
        Err(Error::Internal)
    }

    /// Whether a request without a key may be sent again with its payment.
    pub(crate) fn may_repeat(&self, record: &AuthorizationRecord, paying: &PayRequest<'_>) -> bool {
        let is_recent = self.clock.now() < record.received_at.saturating_add(REPEATS);
        let is_credited = record.state == AuthorizationState::Credited;
        record.request == Some(paying.request) && (is_recent || !is_credited)
    }
}

/// Counts a payment before anything is read from a chain for it. `offer` is the offer that it takes, if it is still
/// made.
fn check_limit(payments: &SignedPayments, paying: &PayRequest<'_>, offer: Option<&Offer>) -> Result<(), PayRefusal> {
    let Some(limit) = &payments.limit else { return Ok(()) };
    let SignedAuthorization { authorization, signature, .. } = paying.signed;
    let is_signed = offer.is_some_and(|offer| authorization.is_signed_by_key(&offer.asset.domain, signature));
    let attempt = PaymentAttempt { client: paying.caller.address, payer: authorization.from, is_signed };
    limit.count(&attempt).map_err(PayRefusal::TooMany)
}

/// Checks whether a payment would be executed.
async fn check_settler(chain: &OfferChain, paying: &PayRequest<'_>, offer: &Offer) -> Result<(), Error> {
    let (signed, listing) = (paying.signed, paying.listing.map(|listing| &**listing));
    match &chain.settler {
        Settler::Own(submitter) => match submitter.check(signed, None).await {
            Ok(()) => Ok(()),
            Err(problem) => Err(match problem.refusal() {
                Some(reason) => PayRefusal::WouldFail(reason),
                None => {
                    tracing::error!(wallet = %submitter.wallet(), %problem, "the gas wallet cannot execute payments");
                    PayRefusal::Unavailable
                }
            }
            .into()),
        },
        Settler::Facilitator(facilitator) => match facilitator.verify(signed, offer, listing).await {
            Ok(()) => Ok(()),
            Err(FacilitatorError::Refused(reason)) => Err(PayRefusal::WouldFail(reason).into()),
            Err(problem) => {
                tracing::error!(%problem, "the facilitator cannot execute payments");
                Err(PayRefusal::Unavailable.into())
            }
        },
    }
}

fn unreadable(error: ChainError) -> Error {
    tracing::warn!(%error, "a payment could not be checked");
    PayRefusal::Unavailable.into()
}

fn wallet_name(wallet: Address) -> Result<AgentName, Error> {
    format!("wallet-{wallet}").parse().map_err(|_| Error::Internal)
}
