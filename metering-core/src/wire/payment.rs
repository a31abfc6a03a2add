//! Buying: quotes, claims and top-ups.
//!
//! Every field of a request is optional here, so one response can list all missing fields.

use serde::{Deserialize, Serialize};

use crate::access::account::RateLimits;
use crate::money::credits::Credits;
use crate::payments::plan::PaymentKind;
use crate::shown_fields::shown_fields;
use crate::wire::chain_id::ChainIdInput;
use crate::wire::secret::IssuedKey;

/// The body of `POST /signup/pay/quote`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuoteRequest {
    /// The name of the new account: 1 to 64 of `A-Z a-z 0-9 _ -`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub agent_name: Option<String>,
    /// The plan's name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub plan_id: Option<String>,
    /// The plan's chain; a string of decimal digits is accepted too.
    #[cfg_attr(feature = "openapi", schema(value_type = u64))]
    pub chain_id: Option<ChainIdInput>,
    /// The symbol of the plan's token, case-insensitive.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub token_symbol: Option<String>,
    /// The wallet that will pay.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub payer_address: Option<String>,
    /// The owner's email address, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
}

/// The response to `POST /signup/pay/quote`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuoteResponse {
    /// The secret that claims the quote; it is not sent again.
    pub signup_nonce: String,
    /// The address to pay (EIP-55).
    pub recipient: String,
    /// The exact amount to pay, in the token's smallest unit.
    pub amount_atomic: String,
    /// The same amount in tokens.
    pub amount_human: String,
    /// The token's contract, in lower case; the zero address for the native coin.
    pub token_contract: String,
    /// The token's symbol.
    pub token_symbol: String,
    /// The token's decimals.
    pub token_decimals: u8,
    /// The chain to pay on.
    pub chain_id: u64,
    /// How to pay it.
    pub payment_kind: PaymentKind,
    /// A public RPC URL of the chain, if the operator recommends one.
    pub rpc_hint: Option<String>,
    /// When the price expires, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub expires_at: String,
    /// URL of the terms.
    pub terms_url: String,
    /// Version of the terms that applies.
    pub terms_version: String,
    /// Instructions for the buyer.
    pub notice: String,
}

/// The body of `POST /signup/pay/claim`.
#[derive(Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClaimRequest {
    /// The quote's nonce.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub signup_nonce: Option<zeroize::Zeroizing<String>>,
    /// The payment's transaction.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub tx_hash: Option<String>,
    /// The payer's signature (EIP-191) of the `proof_message` in a `payment_mismatch` response: it claims the other
    /// quote of the wallet that the payment pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

shown_fields!(ClaimRequest: tx_hash);

/// The response to `POST /signup/pay/claim`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClaimResponse {
    /// `approved`.
    pub status: &'static str,
    /// The account's key, shown only once.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub api_key: IssuedKey,
    /// The account's id.
    pub org_id: String,
    /// The starting balance.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
    /// Rate limits on accepted requests; 0 means no limit.
    pub rate_limits: RateLimits,
    /// The plan that was bought.
    pub plan_id: String,
    /// The payment's transaction.
    pub tx_hash: String,
    /// The payment's chain.
    pub chain_id: u64,
}

/// The body of `POST /credits/topup/quote`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TopUpQuoteRequest {
    /// The plan's name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub plan_id: Option<String>,
    /// The plan's chain; a string of decimal digits is accepted too.
    #[cfg_attr(feature = "openapi", schema(value_type = u64))]
    pub chain_id: Option<ChainIdInput>,
}

/// A top-up quote: the amount to send, from any wallet, and the payment that has arrived.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TopUpQuoteDocument {
    /// Its id; only the account can use it to get the quote again.
    pub quote_id: String,
    /// `open`, `seen` (the payment is in a block, and needs more confirmations or is about to be credited), `paid` (the
    /// credits are in the account), or `reversed` (a reorganisation of the chain removed the payment, its credits were
    /// taken back, and the quote waits for it or another one).
    pub status: TopUpQuoteStatus,
    /// The plan.
    pub plan_id: String,
    /// The plan's chain.
    pub chain_id: u64,
    /// Credits that the payment adds, without the bonus.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits: Credits,
    /// Credits added on top.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub bonus_credits: Credits,
    /// The address to pay (EIP-55).
    pub recipient: String,
    /// The exact amount to pay, in the token's smallest unit.
    pub amount_atomic: String,
    /// The same amount in tokens; null when the token's decimals are not known.
    pub amount_human: Option<String>,
    /// The token's contract, in lower case; the zero address for the native coin.
    pub token_contract: String,
    /// The token's symbol; null when no plan names it any longer.
    pub token_symbol: Option<String>,
    /// The token's decimals; null when no plan names them any longer and the chain cannot be read.
    pub token_decimals: Option<u8>,
    /// How to pay it.
    pub payment_kind: PaymentKind,
    /// The payment as a URI that wallets read from a QR code (EIP-681).
    pub payment_uri: String,
    /// When the price expires, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub expires_at: String,
    /// Until when a payment is still credited, as RFC 3339. The payment's block counts.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub honoured_until: String,
    /// The payment's transaction, once it is in a block. It is kept while it is `reversed`.
    pub tx_hash: Option<String>,
    /// The payment's page in the chain's block explorer.
    pub explorer_url: Option<String>,
    /// The payment's confirmations; null unless it is `seen`.
    pub confirmations: Option<u64>,
    /// The confirmations that a payment needs.
    pub required: u64,
    /// The receipt's number, once it is `paid`. The receipt also shows when it is `reversed`.
    pub receipt_number: Option<String>,
    /// Instructions for the buyer.
    pub notice: String,
}

/// The payment that has arrived for a top-up quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TopUpQuoteStatus {
    /// No payment in a block that was searched.
    Open,
    /// The payment is in a block.
    Seen,
    /// Its payment was credited.
    Paid,
    /// Its payment was credited, until a reorganisation removed it from the chain.
    Reversed,
}

/// The body of `POST /credits/topup`.
#[derive(Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TopUpRequest {
    /// The plan's name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub plan_id: Option<String>,
    /// The plan's chain; a string of decimal digits is accepted too.
    #[cfg_attr(feature = "openapi", schema(value_type = u64))]
    pub chain_id: Option<ChainIdInput>,
    /// The payment's transaction.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub tx_hash: Option<String>,
    /// The payer's signature (EIP-191) of the message in a `payer_proof_required` response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

shown_fields!(TopUpRequest: plan_id, chain_id, tx_hash);

/// The response to `POST /credits/topup`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TopUpResponse {
    /// Credits left.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
    /// Credits that this payment added, now or, if it is `already_credited`, when it was credited.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub amount_added: Credits,
    /// Credits bought in total.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub total_credits_purchased: Credits,
    /// The plan that was credited; empty for a payment that the operator assigned without one.
    pub plan_id: String,
    /// The payment's transaction.
    pub tx_hash: String,
    /// The payment's chain.
    pub chain_id: u64,
    /// Whether the payment had already been credited to this account.
    pub already_credited: bool,
}

/// The body of `POST /credits/topup/complete`.
#[derive(Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CompletionRequest {
    /// The account that gets the credits.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub org_id: Option<String>,
    /// The plan's name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub plan_id: Option<String>,
    /// The plan's chain; a string of decimal digits is accepted too.
    #[cfg_attr(feature = "openapi", schema(value_type = u64))]
    pub chain_id: Option<ChainIdInput>,
    /// The payment's transaction.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub tx_hash: Option<String>,
    /// The payer's signature (EIP-191) of the message in a `payer_proof_required` response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

shown_fields!(CompletionRequest: org_id, plan_id, chain_id, tx_hash);

/// The response to `POST /credits/topup/complete`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CompletionResponse {
    /// The account that has the credits.
    pub org_id: String,
    /// Credits that this payment added, now or, if it is `already_credited`, when it was credited.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub amount_added: Credits,
    /// The plan that was credited; empty for a payment that the operator assigned without one.
    pub plan_id: String,
    /// The payment's transaction.
    pub tx_hash: String,
    /// The payment's chain.
    pub chain_id: u64,
    /// Whether the payment had already been credited to this account.
    pub already_credited: bool,
}
