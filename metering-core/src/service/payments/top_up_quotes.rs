//! Top-up quotes: sell a plan to an account for an exact amount, which any wallet may pay (ADR 27).

use std::collections::BTreeSet;

use crate::access::account::{Account, AccountId};
use crate::access::credentials::Caller;
use crate::access::scope::Scope;
use crate::chains::chain::{Chain, Evidence};
use crate::chains::transaction::TxRef;
use crate::chains::units::TokenUnits;
use crate::error::Error;
use crate::payments::payment::{PaymentError, PaymentFault};
use crate::payments::plan::Plan;
use crate::payments::quote::{Quote, QuoteNonce, QuoteState, TagKind, may_be_drawn, may_be_tagged};
use crate::random::SystemRandomness;
use crate::service::Payments;
use crate::service::fields::Fields;
use crate::service::payments::quotes::{Buyer, MAX_DRAWS};
use crate::service::payments::state::Claimant;
use crate::service::payments::top_up_status::{Arrived, TokenFacts};
use crate::store::QuoteOpened;
use crate::wire::{ChainIdInput, TopUpQuoteDocument, TopUpQuoteRequest, TopUpResponse};

/// An open quote is returned again while at least this share of its lifetime is left.
const REUSED_WHILE_LEFT: u32 = 6;

impl Payments<'_> {
    /// Promises a plan to an account for an exact amount, which identifies the payment: any wallet may send it. An
    /// account that requests another soon gets the same quote.
    ///
    /// This uses the shop and the chain of the example `sell_a_plan`:
    ///
    /// ```
    /// use metering_core::wire::{ChainIdInput, TopUpQuoteRequest, TopUpQuoteStatus};
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sell_a_plan/doc_test.rs"));
    /// # use in_memory::{CHAIN_ID, MemoryChain, Wallet};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let chain = Arc::new(MemoryChain::default());
    /// # let (shop, stranger) = (shop::open(&chain).await?, Wallet::of(9));
    /// let (_, key) = shop.open_account("my-agent", "0".parse()?).await?;
    /// let request =
    ///     TopUpQuoteRequest { plan_id: Some("starter".to_owned()), chain_id: Some(ChainIdInput(CHAIN_ID)) };
    /// let quote = shop.payments().top_up_quote(Some(&key), &request).await?;
    /// chain.pay(stranger.address(), quote.recipient.parse()?, quote.amount_atomic.parse()?);
    /// assert_eq!(shop.payments().watch(CHAIN_ID, Some(1)).await?.credited, 1);
    /// let quote = shop.payments().top_up_quote_by_id(Some(&key), &quote.quote_id).await?;
    /// assert_eq!(quote.status, TopUpQuoteStatus::Paid);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unauthorized`], [`Error::ValidationFailed`], [`Error::Payment`] when the plan cannot be sold or the
    /// account has too many unpaid quotes, or when the store fails.
    pub async fn top_up_quote(
        self,
        caller: impl Into<Caller<'_>>,
        request: &TopUpQuoteRequest,
    ) -> Result<TopUpQuoteDocument, Error> {
        let account = self.access.authorize(caller, Scope::TopUp).await?;
        let (plan_id, chain_id) = read(request)?;
        let (plan, chain) = self.plan_on_sale(&plan_id, chain_id).await?;
        self.state.confirm_token(&plan).await?;
        let own = self.state.store()?.top_up_quotes(&account.id).await?;
        let open = || own.iter().filter(|quote| quote.state == QuoteState::Open);
        for quote in open().rev().filter(|quote| self.is_current(quote, &plan, chain)) {
            // A customer who requests another after paying wants to pay once more, and the same amount would be
            // credited only once.
            if self.sighting_of(quote).await?.is_none() {
                return Ok(self.quote_document(quote, chain, &TokenFacts::of(&plan), Arrived::Nothing));
            }
        }
        let plans = self.state.store()?.plans().await?;
        let is_price = |quote: &Quote| {
            plans.iter().any(|plan| plan.target(chain) == quote.target && plan.price() == Some(quote.amount))
        };
        let first = self.draw_top_up(&account, &plan, chain)?;
        let mut again = amounts_again(&own, &first, &plan).into_iter();
        for _ in 0..MAX_DRAWS {
            let drawn = self.draw_top_up(&account, &plan, chain)?;
            let quote = Quote { amount: again.next().unwrap_or(drawn.amount), ..drawn };
            // Paying a plan's plain price must never pay another account's quote.
            if is_price(&quote) {
                continue;
            }
            match self.state.store()?.open_quote(quote.clone()).await? {
                QuoteOpened::Opened => {
                    return Ok(self.quote_document(&quote, chain, &TokenFacts::of(&plan), Arrived::Nothing));
                }
                QuoteOpened::AmountTaken => {}
                QuoteOpened::TooManyTopUps => return Err(too_many(open(), &quote).into()),
                QuoteOpened::EmailTaken | QuoteOpened::PayerTaken => return Err(Error::Internal),
            }
        }
        Err(PaymentError::QuotesExhausted.into())
    }

    /// Credits a transaction that pays an open quote of the account, even if the quote's plan has changed or is off
    /// sale. `None` when it pays no quote.
    pub(super) async fn pay_own_quote(
        self,
        account: &Account,
        tx: TxRef,
        claimant: Claimant,
    ) -> Result<Option<TopUpResponse>, Error> {
        let mut open = self.state.store()?.top_up_quotes(&account.id).await?;
        open.retain(|quote| quote.state == QuoteState::Open && quote.target.chain_id == tx.chain_id);
        let Some(newest) = open.last() else { return Ok(None) };
        let pays = |judged: &Result<_, _>| matches!(judged, Ok(_) | Err(PaymentFault::Unconfirmed(_)));
        let first = self.configured_not_before(tx.chain_id);
        let judge = |evidence: &Evidence| {
            let judged = open.iter().map(|quote| quote.judge(tx, evidence)).find(pays);
            let judged = judged.unwrap_or_else(|| newest.judge(tx, evidence));
            match first {
                Some(first) => first.after(judged, &evidence.block),
                None => judged,
            }
        };
        let payment = match self.state.await_payment(claimant, tx, newest.target, judge).await {
            Ok(payment) => payment,
            Err(Error::Payment(refused)) if matches!(&*refused, PaymentError::Unfit(fault) if !matches!(fault, PaymentFault::Unconfirmed(_))) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let Some(quote) = open.iter().find(|quote| quote.is_paid_by(&payment)) else { return Ok(None) };
        self.credit_quote(account, quote, payment).await.map(Some)
    }

    /// Whether an open quote can be returned again to its account.
    fn is_current(self, quote: &Quote, plan: &Plan, chain: &Chain) -> bool {
        let left = self.state.settings.quote_lifetime / REUSED_WHILE_LEFT;
        quote.expires_at > self.access.now().saturating_add(left)
            && (quote.plan_id.as_str(), quote.target) == (plan.id.as_str(), plan.target(chain))
            && (quote.credits, quote.bonus_credits) == (plan.credits, plan.bonus_credits)
            && plan.price().is_some_and(|price| may_be_tagged(price, plan.token_decimals, quote.amount))
    }

    fn draw_top_up(self, account: &Account, plan: &Plan, chain: &Chain) -> Result<Quote, Error> {
        // The nonce is never issued, so the quote cannot be claimed.
        let nonce = QuoteNonce::generate(&SystemRandomness);
        self.draw_quote(Buyer::Account(account), plan, chain, &nonce)
    }

    /// The account of a top-up quote, if it is not revoked.
    pub(super) async fn account_to_top_up(self, id: &AccountId) -> Result<Option<Account>, Error> {
        Ok(self.access.store.account(id).await?.filter(|account| account.revoked_at.is_none()))
    }
}

fn read(request: &TopUpQuoteRequest) -> Result<(String, u64), Error> {
    let mut fields = Fields::default();
    let plan_id = fields.required("plan_id", request.plan_id.clone());
    let chain_id = fields.required("chain_id", request.chain_id);
    let (Some(plan_id), Some(ChainIdInput(chain_id))) = (plan_id, chain_id) else { return Err(fields.into_error()) };
    Ok((plan_id, chain_id))
}

/// The amounts that an account had before and may have again, the newest first. They are preferred: an account then
/// holds few amounts over time, and a late payment of one is still its own.
fn amounts_again(own: &[Quote], new: &Quote, plan: &Plan) -> Vec<TokenUnits> {
    let drawn =
        |amount| plan.price().is_some_and(|price| may_be_drawn(price, plan.token_decimals, TagKind::TopUp, amount));
    let (mut looked_at, mut again) = (BTreeSet::new(), Vec::new());
    for old in own.iter().rev().filter(|old| old.target == new.target && drawn(old.amount)) {
        let renewed = Quote { amount: old.amount, ..new.clone() };
        if looked_at.insert(old.amount) && !own.iter().any(|old| old.reserves_amount_of(&renewed)) {
            again.push(old.amount);
        }
    }
    again.truncate(Quote::MAX_TOP_UPS);
    again
}

/// The refusal of a quote because of the account's unpaid ones.
fn too_many<'a>(unpaid: impl Iterator<Item = &'a Quote>, new: &Quote) -> PaymentError {
    let until = unpaid.filter(|quote| quote.counts_against(new)).map(Quote::reserved_until).min();
    let left = until.map_or(0, |until| until.unix_millis() - new.created_at.unix_millis());
    // The moment itself still counts.
    PaymentError::TooManyTopUpQuotes { retry_after_sec: u64::try_from(left).unwrap_or(0) / 1_000 + 1 }
}
