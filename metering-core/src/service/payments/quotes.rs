//! Quotes: sell a plan to a wallet that has no account.

use crate::access::account::{Account, AgentName};
use crate::access::email::Email;
use crate::chains::address::Address;
use crate::chains::chain::Chain;
use crate::error::Error;
use crate::payments::payment::PaymentError;
use crate::payments::plan::{PaymentKind, Plan};
use crate::payments::quote::{Quote, QuoteNonce, QuoteState, TagKind, draw_amount};
use crate::random::SystemRandomness;
use crate::service::Payments;
use crate::service::fields::Fields;
use crate::service::payments::state::find_chain;
use crate::store::QuoteOpened;
use crate::wire::{QuoteRequest, QuoteResponse};

/// How many amounts to try before giving up on a price. With nine of ten amounts in use, one quote in a thousand fails.
pub(super) const MAX_DRAWS: usize = 64;

/// A request with all fields present and valid.
pub(super) struct ValidQuoteRequest {
    agent_name: AgentName,
    plan_id: String,
    chain_id: u64,
    token_symbol: String,
    payer: Address,
    email: Option<Email>,
}

/// The owner of a quote.
pub(super) enum Buyer<'b> {
    /// A wallet that has no account.
    Wallet(&'b ValidQuoteRequest),
    /// An account, for which any wallet may pay.
    Account(&'b Account),
}

impl<'s> Payments<'s> {
    /// Promises a plan to a wallet for an exact amount.
    ///
    /// This uses the shop and the chain of the example `sell_a_plan`:
    ///
    /// ```
    /// use metering_core::wire::{ChainIdInput, QuoteRequest};
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sell_a_plan/doc_test.rs"));
    /// # use in_memory::{CHAIN_ID, MemoryChain, Wallet};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let chain = Arc::new(MemoryChain::default());
    /// # let (shop, customer) = (shop::open(&chain).await?, Wallet::of(7));
    /// let request = QuoteRequest {
    ///     agent_name: Some("my-agent".to_owned()),
    ///     plan_id: Some("starter".to_owned()),
    ///     chain_id: Some(ChainIdInput(8453)),
    ///     token_symbol: Some("USDC".to_owned()),
    ///     payer_address: Some(customer.address().to_string()),
    ///     email: None,
    /// };
    /// let quote = shop.payments().quote(&request).await?;
    /// assert!(quote.amount_human.starts_with("5.00")); // the price of 5 USDC, and a tag such as 0.003817
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ValidationFailed`], [`Error::Payment`] when the plan cannot be sold, or when the store fails.
    pub async fn quote(self, request: &QuoteRequest) -> Result<QuoteResponse, Error> {
        let valid = ValidQuoteRequest::read(request)?;
        let (plan, chain) = self.plan_on_sale(&valid.plan_id, valid.chain_id).await?;
        if !plan.token_symbol.eq_ignore_ascii_case(&valid.token_symbol) {
            let (expected, found) = (plan.token_symbol, valid.token_symbol);
            return Err(PaymentError::UnsupportedToken { expected, found }.into());
        }
        self.state.confirm_token(&plan).await?;
        self.confirm_payer(&plan, valid.payer).await?;
        for _ in 0..MAX_DRAWS {
            let nonce = QuoteNonce::generate(&SystemRandomness);
            let quote = self.draw_quote(Buyer::Wallet(&valid), &plan, chain, &nonce)?;
            let response = self.quote_response(&quote, &plan, chain, &nonce);
            match self.state.store()?.open_quote(quote).await? {
                QuoteOpened::Opened => return Ok(response),
                QuoteOpened::AmountTaken => {}
                QuoteOpened::TooManyTopUps => return Err(Error::Internal),
                QuoteOpened::EmailTaken => return Err(PaymentError::EmailTaken.into()),
                QuoteOpened::PayerTaken => return Err(PaymentError::PayerTaken.into()),
            }
        }
        Err(PaymentError::QuotesExhausted.into())
    }

    /// Refuses to sell native-coin plans to contracts, before any money moves. A contract sends the coin by an internal
    /// call, which nodes do not report, so the payment could not be credited.
    async fn confirm_payer(self, plan: &Plan, payer: Address) -> Result<(), PaymentError> {
        if plan.payment_kind != PaymentKind::NativeValue {
            return Ok(());
        }
        let is_contract = self.state.reader(plan.chain_id)?.has_code(payer).await.map_err(PaymentError::Chain)?;
        if is_contract { Err(PaymentError::ContractPayer { payer, chain_id: plan.chain_id }) } else { Ok(()) }
    }

    /// An active plan on a configured chain.
    pub(super) async fn plan_on_sale(self, id: &str, chain_id: u64) -> Result<(Plan, &'s Chain), Error> {
        let chain = find_chain(&self.config.chains, chain_id)?;
        let plans = self.state.store()?.plans().await?;
        self.register_recipients_of(&plans).await;
        let plan = plans.into_iter().find(|plan| plan.active && plan.id == id && plan.chain_id == chain_id);
        let plan = plan.ok_or(PaymentError::UnknownPlan)?;
        self.state.reader(chain_id)?;
        Ok((plan, chain))
    }

    /// A new quote of a plan, for an amount with a random tag.
    pub(super) fn draw_quote(
        self,
        buyer: Buyer<'_>,
        plan: &Plan,
        chain: &Chain,
        nonce: &QuoteNonce,
    ) -> Result<Quote, Error> {
        let (tag, agent_name, email, payer, top_up) = match buyer {
            Buyer::Wallet(new) => (TagKind::Signup, &new.agent_name, new.email.clone(), new.payer, None),
            Buyer::Account(account) => {
                (TagKind::TopUp, &account.agent_name, None, Quote::ANY_PAYER, Some(account.id.clone()))
            }
        };
        let draw = |price| draw_amount(&SystemRandomness, price, plan.token_decimals, tag);
        let drawn = plan.price().and_then(draw);
        let now = self.access.now();
        Ok(Quote {
            nonce: nonce.hash(),
            agent_name: agent_name.clone(),
            email,
            payer,
            top_up,
            target: plan.target(chain),
            // A validated plan's price has room for a tag.
            amount: drawn.ok_or(PaymentError::NotConfigured)?,
            plan_id: plan.id.clone(),
            credits: plan.credits,
            bonus_credits: plan.bonus_credits,
            created_at: now,
            expires_at: now.saturating_add(self.state.settings.quote_lifetime),
            state: QuoteState::Open,
        })
    }

    fn quote_response(self, quote: &Quote, plan: &Plan, chain: &Chain, nonce: &QuoteNonce) -> QuoteResponse {
        let amount_human = quote.amount.to_human(plan.token_decimals);
        let recipient = quote.target.recipient.to_checksummed();
        let notice = format!(
            "Send exactly {amount_human} {} from {} to {recipient} on chain {} before {}, in one plain transfer: not a \
             unit more or less, and from no other wallet. It must be a wallet whose key you hold, never an exchange's, \
             which others share. Then claim with the signup_nonce and the transaction hash.",
            plan.token_symbol,
            quote.payer.to_checksummed(),
            plan.chain_id,
            quote.expires_at,
        );
        QuoteResponse {
            signup_nonce: nonce.expose().to_owned(),
            recipient,
            amount_atomic: quote.amount.to_string(),
            amount_human,
            token_contract: quote.target.token.to_string(),
            token_symbol: plan.token_symbol.clone(),
            token_decimals: plan.token_decimals,
            chain_id: plan.chain_id,
            payment_kind: plan.payment_kind,
            rpc_hint: Some(chain.public_rpc_url.clone()).filter(|url| !url.is_empty()),
            expires_at: quote.expires_at.to_string(),
            terms_url: self.config.terms_url.clone(),
            terms_version: self.config.terms_version.clone(),
            notice,
        }
    }
}

impl ValidQuoteRequest {
    fn read(request: &QuoteRequest) -> Result<Self, Error> {
        let mut fields = Fields::default();
        let agent_name = fields.parsed("agent_name", request.agent_name.as_deref());
        let plan_id = fields.required("plan_id", request.plan_id.clone());
        let chain_id = fields.required("chain_id", request.chain_id);
        let token_symbol = fields.required("token_symbol", request.token_symbol.clone());
        let payer = fields.parsed("payer_address", request.payer_address.as_deref());
        let email = fields.optional("email", request.email.as_deref().filter(|text| !text.is_empty()));
        if payer == Some(Address::ZERO) {
            fields.wrong("payer_address", "must not be the zero address");
        }
        let complete = fields.is_empty();
        match (agent_name, plan_id, chain_id, token_symbol, payer) {
            (Some(agent_name), Some(plan_id), Some(chain), Some(token_symbol), Some(payer)) if complete => {
                Ok(Self { agent_name, plan_id, chain_id: chain.0, token_symbol, payer, email })
            }
            _ => Err(fields.into_error()),
        }
    }
}
