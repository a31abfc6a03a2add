//! The status of a top-up quote: the payment that has arrived, whether it is credited, and whether it was reversed.
//!
//! A buyer polls every few seconds. Everything is read from the quote, its payment's record and the chain: the plan may
//! no longer exist by then.

use crate::access::account::Account;
use crate::access::credentials::Caller;
use crate::access::scope::Scope;
use crate::chains::address::Address;
use crate::chains::chain::{Chain, Depth};
use crate::chains::explorer::transaction_url;
use crate::chains::transaction::TxRef;
use crate::error::Error;
use crate::payments::not_before::NotBefore;
use crate::payments::payment::{Payment, PaymentError, PaymentRecord, SettlementStep};
use crate::payments::plan::{PaymentKind, Plan};
use crate::payments::quote::{NonceHash, Quote};
use crate::payments::receipt::ReceiptNumber;
use crate::service::Payments;
use crate::service::payments::seen_payments::SeenPayment;
use crate::service::payments::state::find_chain;
use crate::store::SettlementChange;
use crate::wire::{TopUpQuoteDocument, TopUpQuoteStatus};

/// The prefix of a top-up quote's id.
const ID_PREFIX: &str = "tuq_";
/// The decimals of a chain's own coin, in every EVM chain.
const COIN_DECIMALS: u8 = 18;

/// The payment that has arrived for a quote.
#[derive(Debug, Clone, Copy)]
pub(super) enum Arrived {
    /// Nothing yet, or nothing that is still in a block.
    Nothing,
    /// A payment that is not credited yet.
    Seen(TxRef, Depth),
    /// A payment that is credited.
    Credited(TxRef),
    /// A payment that was credited, until a reorganisation removed it.
    Reversed(TxRef),
}

impl Arrived {
    fn of(quote: &Quote, record: Option<&PaymentRecord>, sighting: Option<&SeenPayment>) -> Self {
        let is_reversed = record.is_some_and(|record| record.settlement.reversed_at().is_some());
        match (quote.state.tx(), sighting) {
            (Some(tx), _) if !is_reversed => Self::Credited(tx),
            (_, Some(sighting)) => Self::Seen(sighting.payment.tx, sighting.depth),
            (Some(tx), None) => Self::Reversed(tx),
            (None, None) => Self::Nothing,
        }
    }

    const fn status(self) -> TopUpQuoteStatus {
        match self {
            Self::Nothing => TopUpQuoteStatus::Open,
            Self::Seen(..) => TopUpQuoteStatus::Seen,
            Self::Credited(_) => TopUpQuoteStatus::Paid,
            Self::Reversed(_) => TopUpQuoteStatus::Reversed,
        }
    }

    const fn tx(self) -> Option<TxRef> {
        match self {
            Self::Nothing => None,
            Self::Seen(tx, _) | Self::Credited(tx) | Self::Reversed(tx) => Some(tx),
        }
    }
}

/// The known facts about a quote's token.
#[derive(Debug, Clone, Default)]
pub(super) struct TokenFacts {
    symbol: Option<String>,
    decimals: Option<u8>,
}

impl TokenFacts {
    pub(super) fn of(plan: &Plan) -> Self {
        Self { symbol: Some(plan.token_symbol.clone()), decimals: Some(plan.token_decimals) }
    }
}

impl Payments<'_> {
    /// The account's top-up quote with this id, and the payment that has arrived for it. Reads the chain's newest
    /// blocks, so a payment is seen before it is confirmed, and credits it once it is.
    ///
    /// # Errors
    /// [`Error::Unauthorized`], [`Error::Payment`] when the account has no such quote or its chain is no longer
    /// configured, or when the store fails. A chain that cannot be read is not an error: the last seen status is
    /// returned.
    pub async fn top_up_quote_by_id(
        self,
        caller: impl Into<Caller<'_>>,
        id: &str,
    ) -> Result<TopUpQuoteDocument, Error> {
        // Keys that may buy may also see the outcome.
        let holder = self.access.holder_with_any(caller.into(), &[Scope::TopUp, Scope::Read]).await?;
        let account = holder.account;
        let nonce = parse_id(id).ok_or(PaymentError::UnknownTopUpQuote)?;
        let quote = self.state.store()?.quote(&nonce).await?;
        let quote = quote.filter(|quote| quote.top_up.as_ref() == Some(&account.id));
        let mut quote = quote.ok_or(PaymentError::UnknownTopUpQuote)?;
        let chain = find_chain(&self.config.chains, quote.target.chain_id)?;
        let mut record = self.record_of(&quote).await?;
        let waits = quote.waits(record.as_ref().map(|record| record.settlement));
        let sighting = if waits { self.sighting_of(&quote).await? } else { None };
        if let Some(confirmed) = sighting.as_ref().filter(|sighting| sighting.depth.is_enough()) {
            quote = self.credit_sighting(&account, quote, record, confirmed.payment.clone()).await?;
            record = self.record_of(&quote).await?;
        }
        let token = self.token_facts(&quote, record.as_ref()).await?;
        Ok(self.quote_document(&quote, chain, &token, Arrived::of(&quote, record.as_ref(), sighting.as_ref())))
    }

    /// Credits a confirmed payment of an open quote, so crediting does not depend on the watcher. Returns the updated
    /// quote. `record` is the record of the quote's reversed payment: if this is the same payment, its credits return.
    async fn credit_sighting(
        self,
        account: &Account,
        quote: Quote,
        record: Option<PaymentRecord>,
        payment: Payment,
    ) -> Result<Quote, Error> {
        if let Some(record) = record.filter(|record| record.payment.tx == payment.tx) {
            let is_same = (record.payment.payer, record.payment.amount) == (payment.payer, payment.amount);
            if let Some(block) = payment.block().filter(|_| is_same) {
                let step = SettlementStep::Restore(block);
                // Refused when the watcher credited it first.
                self.state
                    .store()?
                    .settle_payment(SettlementChange { seen: record, step, now: self.access.now() })
                    .await?;
            }
            return Ok(quote);
        }
        let too_early = |first: NotBefore| first.check(payment.block_number, payment.mined_at).is_err();
        if self.configured_not_before(quote.target.chain_id).is_some_and(too_early) {
            return Ok(quote);
        }
        match self.credit_quote(account, &quote, payment).await {
            // Refused when another payment was first, or another account had this one.
            Ok(_) | Err(Error::Payment(_)) => Ok(self.state.store()?.quote(&quote.nonce).await?.unwrap_or(quote)),
            Err(error) => Err(error),
        }
    }

    /// The record of the payment that settled a quote.
    async fn record_of(self, quote: &Quote) -> Result<Option<PaymentRecord>, Error> {
        match quote.state.tx() {
            Some(tx) => Ok(self.state.store()?.payment(&tx).await?),
            None => Ok(None),
        }
    }

    /// The payment of a quote in the chain's newest blocks: one that is not used yet, or the quote's own that was
    /// reversed and is mined again.
    pub(super) async fn sighting_of(self, quote: &Quote) -> Result<Option<SeenPayment>, Error> {
        let reader = self.state.reader(quote.target.chain_id)?;
        let sightings = self.state.sightings.at(&**reader, quote.target).await;
        for sighting in sightings.iter().filter(|sighting| quote.is_paid_by(&sighting.payment)) {
            let tx = sighting.payment.tx;
            let record = self.state.store()?.payment(&tx).await?;
            let is_back =
                |record: PaymentRecord| quote.state.tx() == Some(tx) && record.settlement.reversed_at().is_some();
            if record.is_none_or(is_back) {
                return Ok(Some(sighting.clone()));
            }
        }
        Ok(None)
    }

    /// Symbol and decimals of a quote's token: of its plan, of another plan in the same token, of the recorded sale, or
    /// from the chain.
    async fn token_facts(self, quote: &Quote, record: Option<&PaymentRecord>) -> Result<TokenFacts, Error> {
        let plans = self.state.store()?.plans().await?;
        let same_token =
            |plan: &&Plan| (plan.chain_id, plan.token_contract) == (quote.target.chain_id, quote.target.token);
        if let Some(plan) = plans.iter().filter(same_token).max_by_key(|plan| plan.id == quote.plan_id) {
            return Ok(TokenFacts::of(plan));
        }
        if let Some(sold) = record.and_then(|record| record.sold.as_ref()) {
            return Ok(TokenFacts { symbol: Some(sold.token_symbol.clone()), decimals: Some(sold.token_decimals) });
        }
        if quote.target.token == Address::ZERO {
            return Ok(TokenFacts { symbol: None, decimals: Some(COIN_DECIMALS) });
        }
        let reader = self.state.reader(quote.target.chain_id)?;
        let decimals = reader.token_decimals(quote.target.token).await.unwrap_or_else(|error| {
            tracing::debug!(%error, token = %quote.target.token, "the decimals of a quote's token could not be read");
            None
        });
        Ok(TokenFacts { symbol: None, decimals })
    }

    pub(super) fn quote_document(
        self,
        quote: &Quote,
        chain: &Chain,
        token: &TokenFacts,
        arrived: Arrived,
    ) -> TopUpQuoteDocument {
        let (seen, tx) = (if let Arrived::Seen(_, depth) = arrived { Some(depth) } else { None }, arrived.tx());
        let known = self.state.reader(chain.chain_id).ok().and_then(|reader| reader.confirmations());
        let recorded = if let Arrived::Credited(tx) | Arrived::Reversed(tx) = arrived { Some(tx) } else { None };
        TopUpQuoteDocument {
            quote_id: format_id(&quote.nonce),
            status: arrived.status(),
            plan_id: quote.plan_id.clone(),
            chain_id: chain.chain_id,
            credits: quote.credits,
            bonus_credits: quote.bonus_credits,
            recipient: quote.target.recipient.to_checksummed(),
            amount_atomic: quote.amount.to_string(),
            amount_human: token.decimals.map(|decimals| quote.amount.to_human(decimals)),
            token_contract: quote.target.token.to_string(),
            token_symbol: token.symbol.clone(),
            token_decimals: token.decimals,
            payment_kind: payment_kind(quote),
            payment_uri: quote.target.payment_uri(quote.amount),
            expires_at: quote.expires_at.to_string(),
            honoured_until: quote.honoured_until().to_string(),
            tx_hash: tx.map(|tx| tx.hash.to_string()),
            explorer_url: tx.and_then(|tx| transaction_url(&chain.explorer_url, &tx.hash)),
            confirmations: seen.map(|depth| depth.confirmations),
            required: seen.map_or(u64::from(known.unwrap_or(chain.confirmations)), |depth| depth.required),
            receipt_number: recorded.map(|tx| ReceiptNumber::of(&tx).to_string()),
            notice: notice(quote, chain, token, arrived),
        }
    }
}

fn payment_kind(quote: &Quote) -> PaymentKind {
    if quote.target.token == Address::ZERO { PaymentKind::NativeValue } else { PaymentKind::Erc20 }
}

fn notice(quote: &Quote, chain: &Chain, token: &TokenFacts, arrived: Arrived) -> String {
    let amount = match (token.decimals, &token.symbol) {
        (Some(decimals), Some(symbol)) => format!("{} {symbol}", quote.amount.to_human(decimals)),
        (Some(decimals), None) => format!("{} of the token {}", quote.amount.to_human(decimals), quote.target.token),
        (None, _) => format!("{} of the smallest unit of the token {}", quote.amount, quote.target.token),
    };
    if let Arrived::Reversed(tx) = arrived {
        return format!(
            "A reorganisation of the chain removed the payment {}, and its credits were taken back. They return if it \
             is mined again: do not pay again unless your wallet shows that it failed. Another payment of exactly \
             {amount} is credited too if it is mined before {}.",
            tx.hash,
            quote.honoured_until(),
        );
    }
    let from = match payment_kind(quote) {
        PaymentKind::NativeValue => "an account with a private key, not a contract",
        PaymentKind::Erc20 => "any wallet",
    };
    format!(
        "Send exactly {amount} to {} on {} (chain {}) before {}, once, in one plain transfer from {from}. Exactly this \
         amount must arrive: it identifies your payment. To pay again, get a new quote once this one is `paid`.",
        quote.target.recipient.to_checksummed(),
        chain.name,
        chain.chain_id,
        quote.expires_at,
    )
}

/// The id is the hash of a nonce that was never issued. It is not secret: only the account can use it.
fn format_id(nonce: &NonceHash) -> String {
    format!("{ID_PREFIX}{}", hex::encode(nonce.as_bytes()))
}

fn parse_id(id: &str) -> Option<NonceHash> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(id.strip_prefix(ID_PREFIX)?, &mut bytes).ok()?;
    Some(NonceHash::from_bytes(bytes))
}
