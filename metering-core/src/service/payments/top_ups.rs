//! Top-ups: credit a payment to an existing account, after checking that the account may use it.

use crate::access::account::Account;
use crate::access::credentials::Caller;
use crate::access::scope::Scope;
use crate::chains::chain::Evidence;
use crate::chains::signature::WalletSignature;
use crate::chains::transaction::TxRef;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::money::ledger::{LedgerKind, NewLedgerEntry, PaymentRef};
use crate::payments::payment::{Payment, PaymentError, PaymentRecord, PaymentUse, SettlementStep, SoldPlan};
use crate::payments::plan::Plan;
use crate::payments::quote::Quote;
use crate::service::Payments;
use crate::service::fields::Fields;
use crate::service::payments::state::Claimant;
use crate::store::{PaymentCredit, PaymentCredited, PaymentSettled, QuotePrecedence, SettlementChange};
use crate::wire::{ChainIdInput, TopUpRequest, TopUpResponse};

/// How to credit a payment that an account may use.
pub(super) struct Entitlement {
    /// Whether to link the payer's wallet to the account.
    pub(super) links: bool,
    /// The account that gets a payment that an open quote expects.
    pub(super) quotes: QuotePrecedence,
}

impl Entitlement {
    /// The payer is known, or no proof is required. An open quote of the payer takes precedence.
    pub(super) const AFTER_QUOTES: Self = Self { links: false, quotes: QuotePrecedence::Quote };
    /// The payer is the account's own wallet, so its signup quotes can no longer be claimed. Another account's top-up
    /// quote still takes precedence: people with an account each may pay from one wallet, such as an exchange's.
    pub(super) const OWN_WALLET: Self = Self { links: false, quotes: QuotePrecedence::TopUpQuote };
    /// The payment has the amount of the account's own top-up quote.
    pub(super) const OWN_QUOTE: Self = Self { links: false, quotes: QuotePrecedence::OwnQuote };
}

impl Payments<'_> {
    /// Credits a payment to the account of a key.
    ///
    /// This uses the shop and the chain of the example `sell_a_plan`:
    ///
    /// ```
    /// use metering_core::Error;
    /// use metering_core::payments::PaymentError;
    /// use metering_core::wire::{ChainIdInput, TopUpRequest};
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sell_a_plan/doc_test.rs"));
    /// # use in_memory::{CHAIN_ID, MemoryChain, Wallet};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let chain = Arc::new(MemoryChain::default());
    /// # let (shop, customer) = (shop::open(&chain).await?, Wallet::of(7));
    /// let (account, key) = shop.open_account("my-agent", "2".parse()?).await?;
    /// let payment = chain.pay(customer.address(), chain.listed().recipient, "5000000".parse()?);
    /// let mut request = TopUpRequest {
    ///     plan_id: Some("starter".to_owned()),
    ///     chain_id: Some(ChainIdInput(8453)),
    ///     tx_hash: Some(payment.to_string()),
    ///     signature: None,
    /// };
    /// // The wallet is not known to be the account's own, so it must sign.
    /// let unsigned = shop.payments().top_up(Some(&key), &request).await;
    /// let Err(Error::Payment(refused)) = unsigned else { return Err("no signature was asked for".into()) };
    /// let PaymentError::ProofRequired { message, .. } = *refused else { return Err(refused.into()) };
    /// request.signature = Some(customer.sign(&message));
    /// assert_eq!(shop.payments().top_up(Some(&key), &request).await?.credit_balance.to_string(), "12");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unauthorized`], [`Error::Payment`] when the payment does not pay the plan or the account may not use
    /// it, or when the store fails.
    pub async fn top_up(self, caller: impl Into<Caller<'_>>, request: &TopUpRequest) -> Result<TopUpResponse, Error> {
        let account = self.access.authorize(caller, Scope::TopUp).await?;
        let claimant = Claimant::Account(account.id.clone());
        self.credit_paid(&account, request, claimant).await
    }

    /// Credits the payment of a request to an account. `claimant` waits for it.
    pub(super) async fn credit_paid(
        self,
        account: &Account,
        request: &TopUpRequest,
        claimant: Claimant,
    ) -> Result<TopUpResponse, Error> {
        let (plan_id, chain_id, tx_hash) = self.read_top_up(request)?;
        let hash = tx_hash.parse().map_err(|_| PaymentError::InvalidTxHash)?;
        let proof = request.signature.as_deref().map(WalletSignature::parse).transpose();
        let proof = proof.map_err(PaymentError::MalformedProof)?;
        let tx = TxRef { chain_id, hash };
        if let Some(record) = self.state.store()?.payment(&tx).await? {
            return self.top_up_again(account, record, claimant).await;
        }
        if let Some(credited) = self.pay_own_quote(account, tx, claimant.clone()).await? {
            return Ok(credited);
        }
        let (plan, chain) = self.plan_on_sale(&plan_id, chain_id).await?;
        self.state.confirm_token(&plan).await?;
        let target = plan.target(chain);
        let not_before = self.not_before(&target).await?;
        let judge = |evidence: &Evidence| not_before.after(plan.judge(chain, tx, evidence), &evidence.block);
        let payment = self.state.await_payment(claimant, tx, target, judge).await?;
        if let Some(quote) = self.state.store()?.quote_paid_by(&payment).await?
            && quote.top_up.as_ref() == Some(&account.id)
        {
            return self.credit_quote(account, &quote, payment).await;
        }
        let entitlement = self.entitlement(account, &plan.id, &payment, proof.as_ref()).await?;
        self.credit(account, &plan, payment, entitlement).await
    }

    /// Responds to an account that registers a payment again. If the payment was reversed but the chain has it again,
    /// it is credited again, however long ago it was reversed.
    async fn top_up_again(
        self,
        account: &Account,
        record: PaymentRecord,
        claimant: Claimant,
    ) -> Result<TopUpResponse, Error> {
        let is_own = record.account == account.id && record.used_as != PaymentUse::PaySignup;
        if record.settlement.reversed_at().is_none() || !is_own {
            return self.repeated(account, &record).await;
        }
        let tx = record.payment.tx;
        let found = {
            let target = record.payment.target();
            self.state.await_payment(claimant, tx, target, |evidence| record.judge_again(evidence)).await?
        };
        let Some(block) = found.block() else { return Err(Error::Internal) };
        let change = SettlementChange { seen: record, step: SettlementStep::Restore(block), now: self.access.now() };
        let settled = self.state.store()?.settle_payment(change).await?;
        let record = self.state.store()?.payment(&tx).await?.ok_or(PaymentError::TxUsed)?;
        match settled {
            PaymentSettled::Changed(after) => self.repeated(&after, &record).await,
            PaymentSettled::Stale => {
                let after = self.access.store.account(&account.id).await?.ok_or(Error::Unauthorized)?;
                self.repeated(&after, &record).await
            }
            PaymentSettled::OutOfRange => Err(Error::Internal),
        }
    }

    /// Credits a payment that was already checked, for `plan`.
    pub(super) async fn credit(
        self,
        account: &Account,
        plan: &Plan,
        payment: Payment,
        entitlement: Entitlement,
    ) -> Result<TopUpResponse, Error> {
        let amount = plan.credits_in_all().ok_or(Error::Internal)?;
        let sold = SoldPlan::of(plan, plan.bonus_credits);
        self.credit_plan(account, (&plan.id, Some(sold)), amount, payment, entitlement).await
    }

    /// Credits a payment that has the amount of the account's own top-up quote. The quote's terms apply, whatever the
    /// plan is now.
    pub(super) async fn credit_quote(
        self,
        account: &Account,
        quote: &Quote,
        payment: Payment,
    ) -> Result<TopUpResponse, Error> {
        let amount = quote.credits.checked_add(quote.bonus_credits).ok_or(Error::Internal)?;
        let sold = self.sold_by(quote).await?;
        self.credit_plan(account, (&quote.plan_id, sold), amount, payment, Entitlement::OWN_QUOTE).await
    }

    async fn credit_plan(
        self,
        account: &Account,
        (plan_id, sold): (&str, Option<SoldPlan>),
        amount: Credits,
        payment: Payment,
        entitlement: Entitlement,
    ) -> Result<TopUpResponse, Error> {
        let tx = payment.tx;
        let value = self.value_of(&payment, sold.as_ref());
        let entry = NewLedgerEntry {
            kind: LedgerKind::PurchaseTopup,
            amount,
            description: format!("Plan {plan_id}"),
            payment: Some(PaymentRef { tx, plan_id: Some(plan_id.to_owned()) }),
        };
        let credit = PaymentCredit {
            account: account.id.clone(),
            payment,
            used_as: PaymentUse::Topup,
            entry,
            sold,
            value,
            link_payer: entitlement.links,
            quotes: entitlement.quotes,
            now: self.access.now(),
        };
        match self.state.store()?.credit_payment(credit).await? {
            PaymentCredited::Account(after) => Ok(top_up_response(&after, tx, plan_id.to_owned(), amount, false)),
            PaymentCredited::Repeated(after, record) => self.repeated(&after, &record).await,
            PaymentCredited::TxUsed => Err(PaymentError::TxUsed.into()),
            PaymentCredited::BelongsToQuote => Err(PaymentError::Reserved.into()),
            // The account was revoked since its key was checked.
            PaymentCredited::NoSuchAccount => Err(Error::Unauthorized),
            PaymentCredited::OutOfRange => {
                tracing::error!(account = %account.id, plan = plan_id, "a top-up would put a balance out of range");
                Err(Error::Internal)
            }
        }
    }

    /// The response to an account that registers its own top-up again: the credits that the payment added when it was
    /// credited. For every other account the transaction is already used.
    async fn repeated(self, account: &Account, record: &PaymentRecord) -> Result<TopUpResponse, Error> {
        let tx = record.payment.tx;
        if record.account != account.id || record.used_as == PaymentUse::PaySignup {
            return Err(PaymentError::TxUsed.into());
        }
        let added = self.added_by(account, &tx).await?;
        Ok(top_up_response(account, tx, record.plan_id.clone().unwrap_or_default(), added, true))
    }

    fn read_top_up(self, request: &TopUpRequest) -> Result<(String, u64, String), Error> {
        let plans_url = self.config.links.plans.clone();
        let Some(tx_hash) = request.tx_hash.clone() else { return Err(PaymentError::NoCheckout { plans_url }.into()) };
        let mut fields = Fields::default();
        let plan_id = fields.required("plan_id", request.plan_id.clone());
        let chain_id = fields.required("chain_id", request.chain_id);
        match (plan_id, chain_id) {
            (Some(plan_id), Some(ChainIdInput(chain_id))) => Ok((plan_id, chain_id, tx_hash)),
            _ => Err(PaymentError::Incomplete { fields: fields.into_problems(), plans_url }.into()),
        }
    }
}

/// Whether the payer is the wallet that paid for the account's signup.
pub(super) fn is_own_wallet(account: &Account, payment: &Payment) -> bool {
    account.payer.is_some_and(|owner| owner.address == payment.payer)
}

fn top_up_response(
    account: &Account,
    tx: TxRef,
    plan_id: String,
    amount_added: Credits,
    already_credited: bool,
) -> TopUpResponse {
    TopUpResponse {
        credit_balance: account.totals.balance,
        amount_added,
        total_credits_purchased: account.totals.purchased,
        plan_id,
        tx_hash: tx.hash.to_string(),
        chain_id: tx.chain_id,
        already_credited,
    }
}
