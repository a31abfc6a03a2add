//! Top-up quotes: sell a plan to an account for an exact amount, which any wallet may pay (ADR 27).

use crate::access::account::{Account, AccountId};
use crate::access::key::ApiKey;
use crate::chains::chain::{Chain, Evidence};
use crate::chains::explorer::transaction_url;
use crate::chains::transaction::TxRef;
use crate::error::Error;
use crate::payments::not_before::NotBefore;
use crate::payments::payment::{Payment, PaymentError, PaymentFault};
use crate::payments::plan::{PaymentKind, Plan};
use crate::payments::quote::{NonceHash, Quote, QuoteNonce, QuoteState, TagKind, draw_amount, may_be_tagged};
use crate::payments::receipt::ReceiptNumber;
use crate::service::Service;
use crate::service::fields::Fields;
use crate::service::payments::{Caller, find_chain};
use crate::service::quotes::MAX_DRAWS;
use crate::service::sightings::Sighting;
use crate::store::QuoteOpened;
use crate::wire::{ChainIdInput, TopUpQuoteDocument, TopUpQuoteRequest, TopUpQuoteStatus, TopUpResponse};

/// What the id of a top-up quote begins with.
const ID_PREFIX: &str = "tuq_";
/// An open quote is returned again while at least this share of its lifetime is left.
const REUSED_WHILE_LEFT: u32 = 6;

impl Service {
    /// Promises a plan to an account for an exact amount, which identifies the payment: any wallet may send it. An
    /// account that asks again soon gets the same quote.
    ///
    /// This uses the shop and the chain of the example `sell_a_plan`:
    ///
    /// ```
    /// use metering_core::wire::{ChainIdInput, TopUpQuoteRequest, TopUpQuoteStatus};
    /// # mod in_memory {
    /// #     include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sell_a_plan/in_memory.rs"));
    /// # }
    /// # mod shop {
    /// #     include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sell_a_plan/shop.rs"));
    /// # }
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
    /// let quote = shop.top_up_quote(Some(&key), &request).await?;
    /// chain.pay(stranger.address(), quote.recipient.parse()?, quote.amount_atomic.parse()?);
    /// assert_eq!(shop.watch(CHAIN_ID, Some(1)).await?.credited, 1);
    /// let quote = shop.top_up_quote_by_id(Some(&key), &quote.quote_id).await?;
    /// assert_eq!(quote.status, TopUpQuoteStatus::Paid);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unauthorized`], [`Error::ValidationFailed`], [`Error::Payment`] when the plan cannot be sold or the
    /// account has too many unpaid quotes, or when the store fails.
    pub async fn top_up_quote(
        &self,
        key: Option<&ApiKey>,
        request: &TopUpQuoteRequest,
    ) -> Result<TopUpQuoteDocument, Error> {
        let account = self.authenticate(key).await?;
        let (plan_id, chain_id) = read(request)?;
        let (plan, chain) = self.plan_on_sale(&plan_id, chain_id).await?;
        self.payments.confirm_token(&plan).await?;
        let mut open = self.payments.store()?.top_up_quotes(&account.id).await?;
        open.retain(|quote| quote.state == QuoteState::Open);
        for quote in open.iter().rev().filter(|quote| self.is_current(quote, &plan, chain)) {
            // Who asks again after paying wants to pay once more, and the same amount would be credited only once.
            if self.sighting_of(quote).await?.is_none() {
                return self.quote_document(quote, &plan, chain, None).await;
            }
        }
        let plans = self.payments.store()?.plans().await?;
        let is_price = |quote: &Quote| {
            plans.iter().any(|plan| plan.target(chain) == quote.target && plan.price() == Some(quote.amount))
        };
        for _ in 0..MAX_DRAWS {
            let quote = self.draw_top_up(&account, &plan, chain)?;
            // Whoever pays a plan's plain price must never pay somebody's quote.
            if is_price(&quote) {
                continue;
            }
            match self.payments.store()?.open_quote(quote.clone()).await? {
                QuoteOpened::Opened => return self.quote_document(&quote, &plan, chain, None).await,
                QuoteOpened::AmountTaken => {}
                QuoteOpened::TooManyTopUps => return Err(too_many(&open, &quote).into()),
                QuoteOpened::EmailTaken | QuoteOpened::PayerTaken => return Err(Error::Internal),
            }
        }
        Err(PaymentError::QuotesExhausted.into())
    }

    /// The account's top-up quote with this id, and what has arrived for it. Reads the chain's newest blocks, so that a
    /// payment is seen before it is confirmed, and credits it once it is.
    ///
    /// # Errors
    /// [`Error::Unauthorized`], [`Error::Payment`] when the account has no such quote or nothing describes its token
    /// any more, or when the store fails. A chain that cannot be read is not an error: what was seen on it stays seen.
    pub async fn top_up_quote_by_id(&self, key: Option<&ApiKey>, id: &str) -> Result<TopUpQuoteDocument, Error> {
        let account = self.authenticate(key).await?;
        let nonce = parse_id(id).ok_or(PaymentError::UnknownTopUpQuote)?;
        let quote = self.payments.store()?.quote(&nonce).await?;
        let quote = quote.filter(|quote| quote.top_up.as_ref() == Some(&account.id));
        let mut quote = quote.ok_or(PaymentError::UnknownTopUpQuote)?;
        let sighting = if quote.state == QuoteState::Open { self.sighting_of(&quote).await? } else { None };
        if let Some(confirmed) = sighting.as_ref().filter(|sighting| sighting.depth.is_enough()) {
            quote = self.credit_sighting(&account, quote, confirmed.payment.clone()).await?;
        }
        let chain = find_chain(&self.config.chains, quote.target.chain_id)?;
        let plans = self.payments.store()?.plans().await?;
        let same_token =
            |plan: &&Plan| (plan.chain_id, plan.token_contract) == (quote.target.chain_id, quote.target.token);
        let plan = plans.iter().filter(same_token).max_by_key(|plan| plan.id == quote.plan_id);
        let plan = plan.ok_or(PaymentError::UnknownPlan)?;
        let sighting = sighting.filter(|_| quote.state == QuoteState::Open);
        self.quote_document(&quote, plan, chain, sighting).await
    }

    /// Credits a confirmed payment of an open quote, so that nobody depends on the watcher. Returns the quote after it.
    async fn credit_sighting(&self, account: &Account, quote: Quote, payment: Payment) -> Result<Quote, Error> {
        let too_early = |first: NotBefore| first.check(payment.block_number, payment.mined_at).is_err();
        if self.configured_not_before(quote.target.chain_id).is_some_and(too_early) {
            return Ok(quote);
        }
        match self.credit_quote(account, &quote, payment).await {
            // Refused when another payment, or another account, was faster.
            Ok(_) | Err(Error::Payment(_)) => Ok(self.payments.store()?.quote(&quote.nonce).await?.unwrap_or(quote)),
            Err(error) => Err(error),
        }
    }

    /// Credits a transaction that pays an open quote of the account, even if the quote's plan has changed or is off
    /// sale. `None` when it pays none of them.
    pub(super) async fn pay_own_quote(&self, account: &Account, tx: TxRef) -> Result<Option<TopUpResponse>, Error> {
        let mut open = self.payments.store()?.top_up_quotes(&account.id).await?;
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
        let caller = Caller::Account(account.id.clone());
        let payment = match self.payments.await_payment(caller, tx, newest.target, judge).await {
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
    fn is_current(&self, quote: &Quote, plan: &Plan, chain: &Chain) -> bool {
        let left = self.payments.settings.quote_lifetime / REUSED_WHILE_LEFT;
        quote.expires_at > self.clock.now().saturating_add(left)
            && (quote.plan_id.as_str(), quote.target) == (plan.id.as_str(), plan.target(chain))
            && (quote.credits, quote.bonus_credits) == (plan.credits, plan.bonus_credits)
            && plan.price().is_some_and(|price| may_be_tagged(price, plan.token_decimals, quote.amount))
    }

    fn draw_top_up(&self, account: &Account, plan: &Plan, chain: &Chain) -> Result<Quote, Error> {
        let draw = |price| draw_amount(&*self.payments.randomness, price, plan.token_decimals, TagKind::TopUp);
        let now = self.clock.now();
        Ok(Quote {
            // Nobody gets the nonce, so nobody can claim the quote.
            nonce: QuoteNonce::generate(&*self.payments.randomness).hash(),
            agent_name: account.agent_name.clone(),
            email: None,
            payer: Quote::ANY_PAYER,
            top_up: Some(account.id.clone()),
            target: plan.target(chain),
            amount: plan.price().and_then(draw).ok_or(PaymentError::NotConfigured)?,
            plan_id: plan.id.clone(),
            credits: plan.credits,
            bonus_credits: plan.bonus_credits,
            created_at: now,
            expires_at: now.saturating_add(self.payments.settings.quote_lifetime),
            state: QuoteState::Open,
        })
    }

    /// The payment of an open quote in the chain's newest blocks.
    async fn sighting_of(&self, quote: &Quote) -> Result<Option<Sighting>, Error> {
        let reader = self.payments.reader(quote.target.chain_id)?;
        let sightings = self.payments.sightings.at(&**reader, quote.target).await;
        for sighting in sightings.iter().filter(|sighting| quote.is_paid_by(&sighting.payment)) {
            if self.payments.store()?.payment(&sighting.payment.tx).await?.is_none() {
                return Ok(Some(sighting.clone()));
            }
        }
        Ok(None)
    }

    async fn quote_document(
        &self,
        quote: &Quote,
        plan: &Plan,
        chain: &Chain,
        sighting: Option<Sighting>,
    ) -> Result<TopUpQuoteDocument, Error> {
        let credited = match &quote.state {
            QuoteState::Open => None,
            QuoteState::Paid { tx, .. } | QuoteState::Claimed { tx, .. } => Some(*tx),
        };
        let depth = sighting.as_ref().map(|sighting| sighting.depth);
        let tx: Option<TxRef> = credited.or(sighting.map(|sighting| sighting.payment.tx));
        let known = self.payments.reader(chain.chain_id).ok().and_then(|reader| reader.confirmations());
        let amount_human = quote.amount.to_human(plan.token_decimals);
        let recipient = quote.target.recipient.to_checksummed();
        let from = match plan.payment_kind {
            PaymentKind::NativeValue => "an account with a private key, not a contract",
            PaymentKind::Erc20 => "any wallet",
        };
        let notice = format!(
            "Send exactly {amount_human} {} to {recipient} on {} (chain {}) before {}, once, in one plain transfer from \
             {from}. Exactly this amount must arrive: it identifies your payment. To pay again, get a new quote once \
             this one is `paid`.",
            plan.token_symbol, chain.name, chain.chain_id, quote.expires_at,
        );
        Ok(TopUpQuoteDocument {
            quote_id: format_id(&quote.nonce),
            status: match (credited, depth) {
                (Some(_), _) => TopUpQuoteStatus::Paid,
                (None, Some(_)) => TopUpQuoteStatus::Seen,
                (None, None) => TopUpQuoteStatus::Open,
            },
            plan_id: quote.plan_id.clone(),
            chain_id: chain.chain_id,
            credits: quote.credits,
            bonus_credits: quote.bonus_credits,
            recipient,
            amount_atomic: quote.amount.to_string(),
            amount_human,
            token_contract: quote.target.token.to_string(),
            token_symbol: plan.token_symbol.clone(),
            token_decimals: plan.token_decimals,
            payment_kind: plan.payment_kind,
            payment_uri: quote.target.payment_uri(quote.amount),
            expires_at: quote.expires_at.to_string(),
            honoured_until: quote.honoured_until().to_string(),
            tx_hash: tx.map(|tx| tx.hash.to_string()),
            explorer_url: tx.and_then(|tx| transaction_url(&chain.explorer_url, &tx.hash)),
            confirmations: depth.map(|depth| depth.confirmations),
            required: depth.map_or(u64::from(known.unwrap_or(chain.confirmations)), |depth| depth.required),
            receipt_number: credited.map(|tx| ReceiptNumber::of(&tx).to_string()),
            notice,
        })
    }

    /// The account of a top-up quote, if it is not revoked.
    pub(super) async fn account_to_top_up(&self, id: &AccountId) -> Result<Option<Account>, Error> {
        Ok(self.store.account(id).await?.filter(|account| account.revoked_at.is_none()))
    }
}

fn read(request: &TopUpQuoteRequest) -> Result<(String, u64), Error> {
    let mut fields = Fields::default();
    let plan_id = fields.required("plan_id", request.plan_id.clone());
    let chain_id = fields.required("chain_id", request.chain_id);
    let (Some(plan_id), Some(ChainIdInput(chain_id))) = (plan_id, chain_id) else { return Err(fields.into_error()) };
    Ok((plan_id, chain_id))
}

/// The refusal of a quote because of the account's unpaid ones.
fn too_many(unpaid: &[Quote], new: &Quote) -> PaymentError {
    let until = unpaid.iter().filter(|quote| quote.counts_against(new)).map(Quote::reserved_until).min();
    let left = until.map_or(0, |until| until.unix_millis() - new.created_at.unix_millis());
    // The moment itself still counts.
    PaymentError::TooManyTopUpQuotes { retry_after_sec: u64::try_from(left).unwrap_or(0) / 1_000 + 1 }
}

/// The id is the hash of a nonce that nobody has. It is no secret: only the account can use it.
fn format_id(nonce: &NonceHash) -> String {
    format!("{ID_PREFIX}{}", hex::encode(nonce.as_bytes()))
}

fn parse_id(id: &str) -> Option<NonceHash> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(id.strip_prefix(ID_PREFIX)?, &mut bytes).ok()?;
    Some(NonceHash::from_bytes(bytes))
}
