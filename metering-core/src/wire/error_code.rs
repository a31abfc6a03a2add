//! The stable codes of errors.

use std::fmt;

use serde::Serialize;

/// The code of every error the service responds with. Codes are stable: clients branch on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// The body is not JSON.
    InvalidJson,
    /// Fields of the request are not valid.
    ValidationFailed,
    /// Parameters are not valid for the metered route.
    InvalidParameter,
    /// The path could be read in more than one way.
    InvalidPath,
    /// The route takes no WebSocket connections.
    WebSocketNotSupported,
    /// No plan is paid on this chain.
    UnsupportedChain,
    /// No plan on sale has this name on this chain.
    UnknownPlan,
    /// The plan is paid with another token.
    UnsupportedToken,
    /// The text is not a transaction hash.
    InvalidTxHash,
    /// The transaction failed and paid nothing.
    TxReverted,
    /// The transaction is not the payment that was expected.
    PaymentMismatch,
    /// A wallet other than the quote's paid.
    PayerMismatch,
    /// The payer is a contract, whose payments in the native coin cannot be credited.
    PayerIsContract,
    /// The payment was made before the quote.
    PaymentPredatesQuote,
    /// The payment is older than the service accepts.
    PaymentPredatesService,
    /// The challenge was made for another address.
    AddressMismatch,
    /// The signature is not the wallet's.
    InvalidSignature,
    /// The user code is wrong or expired.
    InvalidCode,
    /// The terms were not accepted.
    TermsNotAccepted,
    /// The bot challenge was not passed.
    ChallengeFailed,
    /// No live key came with the request.
    Unauthorized,
    /// The key, or a parent key, has expired.
    KeyExpired,
    /// The balance is not above zero, or does not cover the hold.
    InsufficientCredits,
    /// The request has no key. Pay with it, or send one.
    PaymentRequired,
    /// The payment that came with the request is not valid, or would fail. Nothing was taken.
    PaymentRefused,
    /// The payment that came with the request was credited before.
    PaymentCredited,
    /// The payment that came with the request is not confirmed yet.
    SettlementPending,
    /// Payments that come with requests cannot be executed at the moment.
    SettlementUnavailable,
    /// The budget of the key, or of a parent key, does not cover the price.
    KeyBudgetExhausted,
    /// The request costs more than its client allows with `Max-Cost`.
    MaxCostExceeded,
    /// The key lacks the scope for this request, or may not call this route.
    KeyScope,
    /// The key may not be used from this address.
    KeyNetwork,
    /// The internal billing secret is missing or wrong, or an operator may not do this.
    Forbidden,
    /// The payer must consent; `message` is the text to sign.
    PayerProofRequired,
    /// There is nothing at this path, or no such quote or challenge.
    NotFound,
    /// No metered route has this path.
    UnknownRoute,
    /// The chain does not know this transaction yet.
    TxNotFound,
    /// This wallet did not pay for any account.
    NoLinkedWallet,
    /// The account has no such webhook.
    WebhookNotFound,
    /// The webhook has no such delivery.
    DeliveryNotFound,
    /// The path does not have this method.
    MethodNotAllowed,
    /// The client accepts none of the response types on offer.
    NotAcceptable,
    /// The body took too long to arrive.
    RequestTimeout,
    /// An account already has this email address.
    EmailAlreadyRegistered,
    /// The account has no email address.
    NoEmailAddress,
    /// The wallet already has an account: top up or rotate its key instead.
    PayerAlreadyRegistered,
    /// The account has as many webhooks as it may have.
    TooManyWebhooks,
    /// The current state does not allow the change.
    Conflict,
    /// The quote was already claimed; rotate the key if it is lost.
    AlreadyClaimed,
    /// The transaction was already used.
    TxAlreadyUsed,
    /// An open quote expects this payment; claim the quote, or have the payer sign.
    PaymentReserved,
    /// The payment is not confirmed yet.
    PaymentUnconfirmed,
    /// A request with the same idempotency key may still be in progress.
    RequestInProgress,
    /// The request with this idempotency key was already charged, and was served or has no retries left.
    IdempotencyKeyUsed,
    /// The payment was mined too long after the quote expired.
    QuoteExpired,
    /// The challenge expired; request a new one.
    ChallengeExpired,
    /// The link was used, replaced by a newer one, or has expired.
    LinkExpired,
    /// The body is too large.
    PayloadTooLarge,
    /// The body's content type is not supported.
    UnsupportedMediaType,
    /// The idempotency key was used for another request.
    IdempotencyKeyReused,
    /// The route takes WebSocket connections only.
    UpgradeRequired,
    /// A rate limit is reached.
    RateLimited,
    /// The key has its maximum number of requests in flight.
    TooManyRequestsInFlight,
    /// The key has its maximum number of streams open.
    TooManyStreams,
    /// The key or the server has its maximum number of MCP sessions and calls open.
    TooManySessions,
    /// The service failed.
    InternalError,
    /// A top-up names no payment: it is paid from a wallet, not at a checkout.
    CheckoutNotAvailable,
    /// The upstream could not be reached or sent an invalid response.
    UpstreamUnreachable,
    /// The chain cannot be read at the moment.
    RpcError,
    /// The operator's RPC URL serves another chain.
    RpcChainMismatch,
    /// Too many requests wait to be charged.
    Overloaded,
    /// The service is shutting down.
    ShuttingDown,
    /// The store cannot be read or written at the moment; nothing was charged.
    StorageUnavailable,
    /// A write failed during its commit, so it is unknown whether the request was charged.
    OutcomeUnknown,
    /// The upstream responded with 503.
    UpstreamUnavailable,
    /// The operator has not set up payments for this plan.
    PaymentNotConfigured,
    /// Too many quotes are open at this price.
    QuotesExhausted,
    /// A chain that plans are paid on cannot be read.
    ChainUnreachable,
    /// The clocks of this machine and of the database differ too much.
    ClockSkew,
    /// A watched chain makes no progress.
    ChainStalled,
    /// A price version is in force that this server cannot serve.
    CatalogueUnusable,
    /// The bot challenge cannot be checked at the moment.
    ChallengeUnavailable,
    /// The upstream took too long.
    UpstreamTimeout,
}

impl ErrorCode {
    /// Every code.
    pub const ALL: [Self; 83] = [
        Self::InvalidJson,
        Self::ValidationFailed,
        Self::InvalidParameter,
        Self::InvalidPath,
        Self::WebSocketNotSupported,
        Self::UnsupportedChain,
        Self::UnknownPlan,
        Self::UnsupportedToken,
        Self::InvalidTxHash,
        Self::TxReverted,
        Self::PaymentMismatch,
        Self::PayerMismatch,
        Self::PayerIsContract,
        Self::PaymentPredatesQuote,
        Self::PaymentPredatesService,
        Self::AddressMismatch,
        Self::InvalidSignature,
        Self::InvalidCode,
        Self::TermsNotAccepted,
        Self::ChallengeFailed,
        Self::Unauthorized,
        Self::KeyExpired,
        Self::InsufficientCredits,
        Self::PaymentRequired,
        Self::PaymentRefused,
        Self::PaymentCredited,
        Self::SettlementPending,
        Self::SettlementUnavailable,
        Self::KeyBudgetExhausted,
        Self::MaxCostExceeded,
        Self::KeyScope,
        Self::KeyNetwork,
        Self::Forbidden,
        Self::PayerProofRequired,
        Self::NotFound,
        Self::UnknownRoute,
        Self::TxNotFound,
        Self::NoLinkedWallet,
        Self::WebhookNotFound,
        Self::DeliveryNotFound,
        Self::MethodNotAllowed,
        Self::NotAcceptable,
        Self::RequestTimeout,
        Self::EmailAlreadyRegistered,
        Self::NoEmailAddress,
        Self::PayerAlreadyRegistered,
        Self::TooManyWebhooks,
        Self::Conflict,
        Self::AlreadyClaimed,
        Self::TxAlreadyUsed,
        Self::PaymentReserved,
        Self::PaymentUnconfirmed,
        Self::RequestInProgress,
        Self::IdempotencyKeyUsed,
        Self::QuoteExpired,
        Self::ChallengeExpired,
        Self::LinkExpired,
        Self::PayloadTooLarge,
        Self::UnsupportedMediaType,
        Self::IdempotencyKeyReused,
        Self::UpgradeRequired,
        Self::RateLimited,
        Self::TooManyRequestsInFlight,
        Self::TooManyStreams,
        Self::TooManySessions,
        Self::InternalError,
        Self::CheckoutNotAvailable,
        Self::UpstreamUnreachable,
        Self::RpcError,
        Self::RpcChainMismatch,
        Self::Overloaded,
        Self::ShuttingDown,
        Self::StorageUnavailable,
        Self::OutcomeUnknown,
        Self::UpstreamUnavailable,
        Self::PaymentNotConfigured,
        Self::QuotesExhausted,
        Self::ChainUnreachable,
        Self::ClockSkew,
        Self::ChainStalled,
        Self::CatalogueUnusable,
        Self::ChallengeUnavailable,
        Self::UpstreamTimeout,
    ];

    /// The code and its HTTP status.
    const fn entry(self) -> (&'static str, u16) {
        match self {
            Self::InvalidJson => ("invalid_json", 400),
            Self::ValidationFailed => ("validation_failed", 400),
            Self::InvalidParameter => ("invalid_parameter", 400),
            Self::InvalidPath => ("invalid_path", 400),
            Self::WebSocketNotSupported => ("websocket_not_supported", 400),
            Self::UnsupportedChain => ("unsupported_chain", 400),
            Self::UnknownPlan => ("unknown_plan", 400),
            Self::UnsupportedToken => ("unsupported_token", 400),
            Self::InvalidTxHash => ("invalid_tx_hash", 400),
            Self::TxReverted => ("tx_reverted", 400),
            Self::PaymentMismatch => ("payment_mismatch", 400),
            Self::PayerMismatch => ("payer_mismatch", 400),
            Self::PayerIsContract => ("payer_is_contract", 400),
            Self::PaymentPredatesQuote => ("payment_predates_quote", 400),
            Self::PaymentPredatesService => ("payment_predates_service", 400),
            Self::AddressMismatch => ("address_mismatch", 400),
            Self::InvalidSignature => ("invalid_signature", 400),
            Self::InvalidCode => ("invalid_code", 400),
            Self::TermsNotAccepted => ("terms_not_accepted", 400),
            Self::ChallengeFailed => ("challenge_failed", 400),
            Self::Unauthorized => ("unauthorized", 401),
            Self::KeyExpired => ("key_expired", 401),
            Self::InsufficientCredits => ("insufficient_credits", 402),
            Self::PaymentRequired => ("payment_required", 402),
            Self::PaymentRefused => ("payment_refused", 402),
            Self::PaymentCredited => ("payment_credited", 409),
            Self::SettlementPending => ("settlement_pending", 503),
            Self::SettlementUnavailable => ("settlement_unavailable", 503),
            Self::KeyBudgetExhausted => ("key_budget_exhausted", 402),
            Self::MaxCostExceeded => ("max_cost_exceeded", 412),
            Self::KeyScope => ("key_scope", 403),
            Self::KeyNetwork => ("key_network", 403),
            Self::Forbidden => ("forbidden", 403),
            Self::PayerProofRequired => ("payer_proof_required", 403),
            Self::NotFound => ("not_found", 404),
            Self::UnknownRoute => ("unknown_route", 404),
            Self::TxNotFound => ("tx_not_found", 404),
            Self::NoLinkedWallet => ("no_linked_wallet", 404),
            Self::WebhookNotFound => ("webhook_not_found", 404),
            Self::DeliveryNotFound => ("delivery_not_found", 404),
            Self::MethodNotAllowed => ("method_not_allowed", 405),
            Self::NotAcceptable => ("not_acceptable", 406),
            Self::RequestTimeout => ("request_timeout", 408),
            Self::EmailAlreadyRegistered => ("email_already_registered", 409),
            Self::NoEmailAddress => ("no_email_address", 409),
            Self::PayerAlreadyRegistered => ("payer_already_registered", 409),
            Self::TooManyWebhooks => ("too_many_webhooks", 409),
            Self::Conflict => ("conflict", 409),
            Self::AlreadyClaimed => ("already_claimed", 409),
            Self::TxAlreadyUsed => ("tx_already_used", 409),
            Self::PaymentReserved => ("payment_reserved", 409),
            Self::PaymentUnconfirmed => ("payment_unconfirmed", 409),
            Self::RequestInProgress => ("request_in_progress", 409),
            Self::IdempotencyKeyUsed => ("idempotency_key_used", 409),
            Self::QuoteExpired => ("quote_expired", 410),
            Self::ChallengeExpired => ("challenge_expired", 410),
            Self::LinkExpired => ("link_expired", 410),
            Self::PayloadTooLarge => ("payload_too_large", 413),
            Self::UnsupportedMediaType => ("unsupported_media_type", 415),
            Self::IdempotencyKeyReused => ("idempotency_key_reused", 422),
            Self::UpgradeRequired => ("upgrade_required", 426),
            Self::RateLimited => ("rate_limited", 429),
            Self::TooManyRequestsInFlight => ("too_many_requests_in_flight", 429),
            Self::TooManyStreams => ("too_many_streams", 429),
            Self::TooManySessions => ("too_many_sessions", 429),
            Self::InternalError => ("internal_error", 500),
            Self::CheckoutNotAvailable => ("checkout_not_available", 501),
            Self::UpstreamUnreachable => ("upstream_unreachable", 502),
            Self::RpcError => ("rpc_error", 502),
            Self::RpcChainMismatch => ("rpc_chain_mismatch", 502),
            Self::Overloaded => ("overloaded", 503),
            Self::ShuttingDown => ("shutting_down", 503),
            Self::StorageUnavailable => ("storage_unavailable", 503),
            Self::OutcomeUnknown => ("outcome_unknown", 503),
            Self::UpstreamUnavailable => ("upstream_unavailable", 503),
            Self::PaymentNotConfigured => ("payment_not_configured", 503),
            Self::QuotesExhausted => ("quotes_exhausted", 503),
            Self::ChainUnreachable => ("chain_unreachable", 503),
            Self::ClockSkew => ("clock_skew", 503),
            Self::ChainStalled => ("chain_stalled", 503),
            Self::CatalogueUnusable => ("catalogue_unusable", 503),
            Self::ChallengeUnavailable => ("challenge_unavailable", 503),
            Self::UpstreamTimeout => ("upstream_timeout", 504),
        }
    }

    /// The code on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.entry().0
    }

    /// Its HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        self.entry().1
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
