//! Buying: quotes, claims and top-ups.
//!
//! Requests keep every field optional, so that all that is missing can be named in one answer.

use serde::{Deserialize, Serialize};

use crate::account::RateLimits;
use crate::credits::Credits;
use crate::plan::PaymentKind;
use crate::wire::chain_id::ChainIdInput;
use crate::wire::secret::IssuedKey;

/// The body of `POST /signup/pay/quote`.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuoteRequest {
    /// What the account will be called: 1 to 64 of `A-Z a-z 0-9 _ -`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub agent_name: Option<String>,
    /// The plan's name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub plan_id: Option<String>,
    /// The plan's chain; a string of decimal digits is accepted too.
    #[cfg_attr(feature = "openapi", schema(value_type = u64))]
    pub chain_id: Option<ChainIdInput>,
    /// The plan's token, in any case.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub token_symbol: Option<String>,
    /// The wallet that will pay.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub payer_address: Option<String>,
    /// The owner's email address, if the account is to have one.
    pub email: Option<String>,
}

/// The answer to `POST /signup/pay/quote`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuoteAnswer {
    /// The secret that claims the quote; it is not served again.
    pub signup_nonce: String,
    /// Who is paid (EIP-55).
    pub recipient: String,
    /// Exactly how much, in the token's smallest unit.
    pub amount_atomic: String,
    /// The same in human units.
    pub amount_human: String,
    /// The token's contract, in lower case; the zero address for the native coin.
    pub token_contract: String,
    /// The token's symbol.
    pub token_symbol: String,
    /// The token's decimals.
    pub token_decimals: u8,
    /// The chain to pay on.
    pub chain_id: u64,
    /// How it is paid.
    pub payment_kind: PaymentKind,
    /// A public RPC URL of the chain, if there is one to recommend.
    pub rpc_hint: Option<String>,
    /// Until when the price is promised, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub expires_at: String,
    /// Where the terms stand.
    pub terms_url: String,
    /// Which version of the terms applies.
    pub terms_version: String,
    /// What to do, in words.
    pub notice: String,
}

/// The body of `POST /signup/pay/claim`.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClaimRequest {
    /// The quote's nonce.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub signup_nonce: Option<zeroize::Zeroizing<String>>,
    /// The payment's transaction.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub tx_hash: Option<String>,
}

/// The answer to `POST /signup/pay/claim`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClaimAnswer {
    /// `approved`.
    pub status: &'static str,
    /// The account's key, shown this once.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub api_key: IssuedKey,
    /// The account's id.
    pub org_id: String,
    /// Credits to start with.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
    /// Caps on accepted requests; 0 means no cap.
    pub rate_limits: RateLimits,
    /// The plan that was bought.
    pub plan_id: String,
    /// The payment's transaction.
    pub tx_hash: String,
    /// The payment's chain.
    pub chain_id: u64,
}

/// The body of `POST /credits/topup`.
#[derive(Debug, Clone, Default, Deserialize)]
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
    /// The payer's signature (EIP-191) over the message of a `payer_proof_required` answer.
    pub signature: Option<String>,
}

/// The answer to `POST /credits/topup`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TopUpAnswer {
    /// Credits left.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
    /// Credits that this request added: zero when it was a repetition.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub amount_added: Credits,
    /// Credits bought, ever.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub total_credits_purchased: Credits,
    /// The plan that was credited; empty for a payment that the operator assigned without one.
    pub plan_id: String,
    /// The payment's transaction.
    pub tx_hash: String,
    /// The payment's chain.
    pub chain_id: u64,
    /// Whether this account was credited with the payment before.
    pub already_credited: bool,
}
