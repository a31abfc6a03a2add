//! Claims: turn a paid quote into an account.

use crate::access::account::{AccountId, Payer, RateLimits};
use crate::access::key::ApiKey;
use crate::chains::chain::Evidence;
use crate::chains::signature::WalletSignature;
use crate::chains::transaction::{TxHash, TxRef};
use crate::clock::Timestamp;
use crate::decision::free_credits_entry;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::money::ledger::{LedgerKind, NewLedgerEntry, PaymentRef};
use crate::payments::payment::{Payment, PaymentError, PaymentUse, SoldPlan};
use crate::payments::quote::{Quote, QuoteState, nonce_hash};
use crate::payments::value::PaymentValue;
use crate::random::SystemRandomness;
use crate::service::Payments;
use crate::service::fields::Fields;
use crate::service::payments::state::Claimant;
use crate::store::{Claim, Claimed, KeyDelivery, NewAccount};
use crate::wire::{ClaimRequest, ClaimResponse};

impl Payments<'_> {
    /// Creates the account that a quote was paid for, and returns its key.
    ///
    /// Waits for confirmations for at most [`PaymentSettings::claim_wait`](crate::service::PaymentSettings). A claim
    /// that fails changes nothing.
    ///
    /// This uses the shop and the chain of the example `sell_a_plan`:
    ///
    /// ```
    /// use metering_core::wire::ClaimRequest;
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sell_a_plan/doc_test.rs"));
    /// # use in_memory::MemoryChain;
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let chain = Arc::new(MemoryChain::default());
    /// # let (shop, customer, quote) = shop::quoted(&chain).await?;
    /// let payment = chain.pay(customer.address(), quote.recipient.parse()?, quote.amount_atomic.parse()?);
    /// let (signup_nonce, tx_hash) = (Some(quote.signup_nonce.into()), Some(payment.to_string()));
    /// let claimed = shop.payments().claim(&ClaimRequest { signup_nonce, tx_hash, signature: None }).await?;
    /// assert_eq!(claimed.credit_balance.to_string(), "12"); // the plan's 10, and 2 free ones
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ValidationFailed`], [`Error::Payment`] when the payment does not pay the quote, or when the store
    /// fails.
    pub async fn claim(self, request: &ClaimRequest) -> Result<ClaimResponse, Error> {
        let (nonce, hash) = read(request)?;
        let proof = request.signature.as_deref().map(WalletSignature::parse).transpose();
        let proof = proof.map_err(PaymentError::MalformedProof)?;
        let nonce = nonce_hash(&nonce).ok_or(PaymentError::UnknownQuote)?;
        let quote = self.state.store()?.quote(&nonce).await?.ok_or(PaymentError::UnknownQuote)?;
        let named = TxRef { chain_id: quote.target.chain_id, hash };
        let key = ApiKey::generate(&SystemRandomness);
        let (quote, payment) = match self.payment_of(&quote, named).await {
            Ok(payment) => (quote, payment),
            Err(refusal) => {
                let other = self.other_quote(&quote, named, refusal, proof.as_ref()).await?;
                let payment = self.payment_of(&other, named).await?;
                (other, payment)
            }
        };
        let nonce = quote.nonce;
        let mut tx = payment.tx;
        let mut claimed = self.claim_by_nonce(self.claim_of(&quote, payment, &key, KeyDelivery::Now).await?).await?;
        if claimed == Claimed::AlreadyClaimed {
            // While this claim waited, the watcher may have used another payment from the same contract for the quote.
            let quote = self.state.store()?.quote(&nonce).await?.ok_or(PaymentError::UnknownQuote)?;
            let payment = self.payment_of(&quote, named).await?;
            tx = payment.tx;
            claimed = self.claim_by_nonce(self.claim_of(&quote, payment, &key, KeyDelivery::Now).await?).await?;
        }
        let account = match claimed {
            Claimed::Account(account) => account,
            Claimed::NoSuchQuote => return Err(PaymentError::UnknownQuote.into()),
            Claimed::AlreadyClaimed => return Err(PaymentError::AlreadyClaimed.into()),
            Claimed::TxUsed => return Err(PaymentError::TxUsed.into()),
            Claimed::PayerTaken => return Err(PaymentError::PayerTaken.into()),
            Claimed::OutOfRange => return Err(out_of_range(&quote)),
        };
        self.signups.welcome(&account);
        Ok(ClaimResponse {
            status: "approved",
            api_key: key.into(),
            org_id: account.id.to_string(),
            credit_balance: account.totals.balance,
            rate_limits: account.limits,
            plan_id: quote.plan_id,
            tx_hash: tx.hash.to_string(),
            chain_id: tx.chain_id,
        })
    }

    /// The payment of a claim: from the chain, or from the store if the watcher recorded it first.
    async fn payment_of(self, quote: &Quote, tx: TxRef) -> Result<Payment, Error> {
        let used = self.state.store()?.payment(&tx).await?;
        match (&quote.state, used) {
            (QuoteState::Paid { tx: paid_by, .. }, Some(record)) if *paid_by == tx => Ok(record.payment),
            (QuoteState::Paid { tx: paid_by, .. }, _) => self.shared_payment(paid_by).await,
            (QuoteState::Claimed { .. }, _) => Err(PaymentError::AlreadyClaimed.into()),
            (QuoteState::Open, Some(record)) => {
                // The watcher may have used the payment between the two reads; the quote's state then shows it.
                match self.state.store()?.quote(&quote.nonce).await?.map(|quote| quote.state) {
                    Some(QuoteState::Paid { tx: paid_by, .. }) if paid_by == tx => self.recorded(&tx).await,
                    Some(QuoteState::Paid { tx: paid_by, .. }) => self.shared_payment(&paid_by).await,
                    _ if record.used_as == PaymentUse::PaySignup && record.payment.payer == quote.payer => {
                        Err(PaymentError::OpenedAccount.into())
                    }
                    _ => Err(PaymentError::TxUsed.into()),
                }
            }
            (QuoteState::Open, None) => {
                let not_before = self.configured_not_before(tx.chain_id);
                let judge = |evidence: &Evidence| match (quote.judge(tx, evidence), not_before) {
                    (verdict, Some(first)) => first.after(verdict, &evidence.block),
                    (verdict, None) => verdict,
                };
                self.state.await_payment(Claimant::Quote(quote.nonce), tx, quote.target, judge).await
            }
        }
    }

    /// Claims a quote. A wallet has at most one account, but a contract may pay for many people. For a contract's
    /// payment the nonce alone decides: its holder gets an account even if the contract already paid for another one.
    pub(super) async fn claim_by_nonce(self, claim: Claim) -> Result<Claimed, Error> {
        let shared = Claim { account: NewAccount { payer: None, ..claim.account.clone() }, ..claim.clone() };
        let payment = shared.payment.clone();
        match self.state.store()?.claim_quote(claim).await? {
            Claimed::PayerTaken if self.is_from_contract(&payment).await? => {
                Ok(self.state.store()?.claim_quote(shared).await?)
            }
            claimed => Ok(claimed),
        }
    }

    /// The payment that paid a quote, for a claim that names another transaction. Anyone can send a quote's amount
    /// through a public contract before the quote's owner does. The contract cannot sign for them, so the owner could
    /// not rotate the key either: the nonce decides, whichever payment came first. If a wallet paid, its owner can
    /// rotate the key instead, so the claim is an error.
    async fn shared_payment(self, paid_by: &TxRef) -> Result<Payment, Error> {
        let payment = self.recorded(paid_by).await?;
        if self.is_from_contract(&payment).await? { Ok(payment) } else { Err(PaymentError::AlreadyClaimed.into()) }
    }

    async fn recorded(self, tx: &TxRef) -> Result<Payment, Error> {
        let record = self.state.store()?.payment(tx).await?;
        record.map(|record| record.payment).ok_or_else(|| PaymentError::TxUsed.into())
    }

    /// Builds the store's claim from a quote, its payment and a key.
    pub(super) async fn claim_of(
        self,
        quote: &Quote,
        payment: Payment,
        key: &ApiKey,
        delivery: KeyDelivery,
    ) -> Result<Claim, Error> {
        let now = self.access.now();
        let account = NewAccount {
            id: AccountId::generate(&SystemRandomness),
            agent_name: quote.agent_name.clone(),
            email: quote.email.clone(),
            // The payment has earned the free credits, so none come with the verification.
            email_status: self.signups.first_email(quote.email.as_ref(), Credits::ZERO).0,
            payer: Some(Payer { address: payment.payer, chain_id: payment.tx.chain_id }),
            limits: RateLimits::default(),
            key: key.hash(),
            entries: self.first_entries(quote, payment.tx).ok_or_else(|| out_of_range(quote))?,
            created_at: now,
        };
        let sold = self.sold_by(quote).await?;
        let value = self.value_of(&payment, sold.as_ref());
        let now = Timestamp::max(now, quote.created_at);
        Ok(Claim { nonce: quote.nonce, payment, account, sold, value, delivery, now })
    }

    /// The current value of a payment, if the operator has set a currency.
    pub(super) fn value_of(self, payment: &Payment, sold: Option<&SoldPlan>) -> Option<PaymentValue> {
        let token = sold.map(|sold| (sold.token_symbol.as_str(), sold.token_decimals));
        self.rates().map(|rates| rates.value(payment.amount, token, self.access.now()))
    }

    /// The plan of a quote as it is sold; `None` when it no longer exists.
    pub(super) async fn sold_by(self, quote: &Quote) -> Result<Option<SoldPlan>, Error> {
        let plans = self.state.store()?.plans().await?;
        let plan = plans.iter().find(|plan| plan.id == quote.plan_id && plan.chain_id == quote.target.chain_id);
        Ok(plan.map(|plan| SoldPlan::of(plan, quote.bonus_credits)))
    }

    fn first_entries(self, quote: &Quote, tx: TxRef) -> Option<Vec<NewLedgerEntry>> {
        let bought = quote.credits.checked_add(quote.bonus_credits)?;
        let mut entries = vec![NewLedgerEntry {
            kind: LedgerKind::PurchasePaySignup,
            amount: bought,
            description: format!("Plan {}", quote.plan_id),
            payment: Some(PaymentRef { tx, plan_id: Some(quote.plan_id.clone()) }),
        }];
        let bonus = self.state.settings.signup_bonus;
        if bonus.is_positive() {
            entries.push(free_credits_entry(bonus));
        }
        Some(entries)
    }
}

fn read(request: &ClaimRequest) -> Result<(zeroize::Zeroizing<String>, TxHash), Error> {
    let mut fields = Fields::default();
    let nonce = fields.required("signup_nonce", request.signup_nonce.clone());
    let text = fields.required("tx_hash", request.tx_hash.as_deref());
    let (Some(nonce), Some(text)) = (nonce, text) else { return Err(fields.into_error()) };
    let hash = text.parse().map_err(|_| PaymentError::InvalidTxHash)?;
    Ok((nonce, hash))
}

/// Cannot happen for a validated plan.
fn out_of_range(quote: &Quote) -> Error {
    tracing::error!(plan = quote.plan_id, "a plan has more credits than an account can hold");
    Error::Internal
}
