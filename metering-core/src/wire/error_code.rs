//! The stable codes of errors.

use crate::named_enum::named_enum;

/// Declares the codes: `/// Meaning` and `Variant = "code" STATUS`.
macro_rules! error_codes {
    ($(#[doc = $meaning:literal] $Variant:ident = $code:literal $status:literal,)+) => {
        named_enum! {
            /// The code of every error the service responds with. Codes are stable: clients branch on them.
            #[non_exhaustive]
            pub enum ErrorCode {
                $(#[doc = $meaning] $Variant = $code,)+
            }
        }

        impl ErrorCode {
            /// Its HTTP status.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self {
                    $(Self::$Variant => $status,)+
                }
            }

            /// Its meaning: a sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$Variant => $meaning.trim_ascii(),)+
                }
            }
        }
    };
}

error_codes! {
    /// The body is not JSON.
    InvalidJson = "invalid_json" 400,
    /// Fields of the request are not valid.
    ValidationFailed = "validation_failed" 400,
    /// Parameters are not valid for the metered route.
    InvalidParameter = "invalid_parameter" 400,
    /// The path could be read in more than one way.
    InvalidPath = "invalid_path" 400,
    /// The route takes no WebSocket connections.
    WebSocketNotSupported = "websocket_not_supported" 400,
    /// No plan is paid on this chain.
    UnsupportedChain = "unsupported_chain" 400,
    /// No plan on sale has this name on this chain.
    UnknownPlan = "unknown_plan" 400,
    /// The plan is paid with another token.
    UnsupportedToken = "unsupported_token" 400,
    /// The text is not a transaction hash.
    InvalidTxHash = "invalid_tx_hash" 400,
    /// The transaction failed and paid nothing.
    TxReverted = "tx_reverted" 400,
    /// The transaction is not the payment that was expected.
    PaymentMismatch = "payment_mismatch" 400,
    /// A wallet other than the quote's paid.
    PayerMismatch = "payer_mismatch" 400,
    /// The payer is a contract, whose payments in the native coin cannot be credited.
    PayerIsContract = "payer_is_contract" 400,
    /// The payment was made before the quote.
    PaymentPredatesQuote = "payment_predates_quote" 400,
    /// The payment is older than the service accepts.
    PaymentPredatesService = "payment_predates_service" 400,
    /// The challenge was made for another address.
    AddressMismatch = "address_mismatch" 400,
    /// The signature is not the wallet's.
    InvalidSignature = "invalid_signature" 400,
    /// The user code is wrong or expired.
    InvalidCode = "invalid_code" 400,
    /// The terms were not accepted.
    TermsNotAccepted = "terms_not_accepted" 400,
    /// The bot challenge was not passed.
    ChallengeFailed = "challenge_failed" 400,
    /// No live key came with the request.
    Unauthorized = "unauthorized" 401,
    /// The key, or a parent key, has expired.
    KeyExpired = "key_expired" 401,
    /// The balance is not above zero, or does not cover the hold.
    InsufficientCredits = "insufficient_credits" 402,
    /// The request has no key. Pay with it, or send one.
    PaymentRequired = "payment_required" 402,
    /// The payment that came with the request is not valid, or would fail. Nothing was taken.
    PaymentRefused = "payment_refused" 402,
    /// The payer has not approved Permit2 for the token, or for too little.
    Permit2AllowanceRequired = "permit2_allowance_required" 412,
    /// The payment that came with the request was credited before.
    PaymentCredited = "payment_credited" 409,
    /// The payment that came with the request is not confirmed yet.
    SettlementPending = "settlement_pending" 503,
    /// Payments that come with requests cannot be executed at the moment.
    SettlementUnavailable = "settlement_unavailable" 503,
    /// The budget of the key, or of a parent key, does not cover the price.
    KeyBudgetExhausted = "key_budget_exhausted" 402,
    /// The request costs more than its client allows with `Max-Cost`.
    MaxCostExceeded = "max_cost_exceeded" 412,
    /// The key lacks the scope for this request, or may not call this route.
    KeyScope = "key_scope" 403,
    /// The key may not be used from this address.
    KeyNetwork = "key_network" 403,
    /// The internal billing secret is missing or wrong, or an operator may not do this.
    Forbidden = "forbidden" 403,
    /// The payer must consent; `message` is the text to sign.
    PayerProofRequired = "payer_proof_required" 403,
    /// There is nothing at this path, or no such quote or challenge.
    NotFound = "not_found" 404,
    /// The path belongs to no metered route.
    UnknownRoute = "unknown_route" 404,
    /// The model that the request names has no price here.
    ModelNotFound = "model_not_found" 404,
    /// The chain has no such transaction yet.
    TxNotFound = "tx_not_found" 404,
    /// This wallet did not pay for any account.
    NoLinkedWallet = "no_linked_wallet" 404,
    /// The account has no such webhook.
    WebhookNotFound = "webhook_not_found" 404,
    /// The webhook has no such delivery.
    DeliveryNotFound = "delivery_not_found" 404,
    /// The service keeps no log, or none of this period, so there is no statement.
    StatementNotFound = "statement_not_found" 404,
    /// The path does not have this method.
    MethodNotAllowed = "method_not_allowed" 405,
    /// The client accepts none of the response types on offer.
    NotAcceptable = "not_acceptable" 406,
    /// The body took too long to arrive.
    RequestTimeout = "request_timeout" 408,
    /// An account already has this email address.
    EmailAlreadyRegistered = "email_already_registered" 409,
    /// The account has no email address.
    NoEmailAddress = "no_email_address" 409,
    /// The wallet already has an account: top up or rotate its key instead.
    PayerAlreadyRegistered = "payer_already_registered" 409,
    /// The account has reached its limit of webhooks.
    TooManyWebhooks = "too_many_webhooks" 409,
    /// The current state does not allow the change.
    Conflict = "conflict" 409,
    /// The quote was already claimed; rotate the key if it is lost.
    AlreadyClaimed = "already_claimed" 409,
    /// The transaction was already used.
    TxAlreadyUsed = "tx_already_used" 409,
    /// An open quote expects this payment; claim the quote, or have the payer sign.
    PaymentReserved = "payment_reserved" 409,
    /// The payment is not confirmed yet.
    PaymentUnconfirmed = "payment_unconfirmed" 409,
    /// A request with the same idempotency key may still be in progress.
    RequestInProgress = "request_in_progress" 409,
    /// The request with this idempotency key was already charged, and was served or has no retries left.
    IdempotencyKeyUsed = "idempotency_key_used" 409,
    /// The payment was mined too long after the quote expired.
    QuoteExpired = "quote_expired" 410,
    /// The challenge expired; request a new one.
    ChallengeExpired = "challenge_expired" 410,
    /// The link was used, replaced by a newer one, or has expired.
    LinkExpired = "link_expired" 410,
    /// These entries of the log were deleted.
    LogPruned = "log_pruned" 410,
    /// The body is too large.
    PayloadTooLarge = "payload_too_large" 413,
    /// The body's content type is not supported.
    UnsupportedMediaType = "unsupported_media_type" 415,
    /// The idempotency key was used for another request.
    IdempotencyKeyReused = "idempotency_key_reused" 422,
    /// The route takes WebSocket connections only.
    UpgradeRequired = "upgrade_required" 426,
    /// A rate limit is reached.
    RateLimited = "rate_limited" 429,
    /// The key has its maximum number of requests in flight.
    TooManyRequestsInFlight = "too_many_requests_in_flight" 429,
    /// The key has its maximum number of streams open.
    TooManyStreams = "too_many_streams" 429,
    /// The key or the server has its maximum number of MCP sessions and calls open.
    TooManySessions = "too_many_sessions" 429,
    /// The service failed.
    InternalError = "internal_error" 500,
    /// A top-up names no payment: it is paid from a wallet, not at a checkout.
    CheckoutNotAvailable = "checkout_not_available" 501,
    /// The upstream could not be reached or sent an invalid response.
    UpstreamUnreachable = "upstream_unreachable" 502,
    /// The chain cannot be read at the moment.
    RpcError = "rpc_error" 502,
    /// The operator's RPC URL serves another chain.
    RpcChainMismatch = "rpc_chain_mismatch" 502,
    /// Too many requests wait to be charged.
    Overloaded = "overloaded" 503,
    /// The service is shutting down.
    ShuttingDown = "shutting_down" 503,
    /// The store cannot be read or written at the moment; nothing was charged.
    StorageUnavailable = "storage_unavailable" 503,
    /// A write failed during its commit, so it is unknown whether the request was charged.
    OutcomeUnknown = "outcome_unknown" 503,
    /// The upstream responded with 503.
    UpstreamUnavailable = "upstream_unavailable" 503,
    /// The operator has not set up payments for this plan.
    PaymentNotConfigured = "payment_not_configured" 503,
    /// Too many quotes are open at this price.
    QuotesExhausted = "quotes_exhausted" 503,
    /// A chain that plans are paid on cannot be read.
    ChainUnreachable = "chain_unreachable" 503,
    /// The clocks of this machine and of the database differ too much.
    ClockSkew = "clock_skew" 503,
    /// A watched chain makes no progress.
    ChainStalled = "chain_stalled" 503,
    /// A price version is in force that this server cannot serve.
    CatalogueUnusable = "catalogue_unusable" 503,
    /// The bot challenge cannot be checked at the moment.
    ChallengeUnavailable = "challenge_unavailable" 503,
    /// The upstream took too long.
    UpstreamTimeout = "upstream_timeout" 504,
}

impl ErrorCode {
    /// The section of the server's guides that explains it: the name of a guide, and the id of a heading.
    ///
    /// ```
    /// use metering_core::wire::ErrorCode;
    ///
    /// assert_eq!(ErrorCode::RateLimited.guide(), "rate-limits#when-a-limit-is-reached");
    /// ```
    #[must_use]
    pub const fn guide(self) -> &'static str {
        match self {
            Self::PaymentRequired => "payments#what-a-402-says",
            Self::PaymentRefused
            | Self::Permit2AllowanceRequired
            | Self::PaymentCredited
            | Self::SettlementPending
            | Self::SettlementUnavailable => "payments#never-pay-twice",
            Self::UnsupportedChain
            | Self::UnknownPlan
            | Self::UnsupportedToken
            | Self::InvalidTxHash
            | Self::TxReverted
            | Self::TxNotFound
            | Self::TxAlreadyUsed
            | Self::PaymentMismatch
            | Self::PaymentPredatesQuote
            | Self::PaymentPredatesService
            | Self::PaymentReserved
            | Self::PaymentUnconfirmed
            | Self::PaymentNotConfigured
            | Self::PayerMismatch
            | Self::PayerIsContract
            | Self::PayerProofRequired
            | Self::PayerAlreadyRegistered
            | Self::AlreadyClaimed
            | Self::QuoteExpired
            | Self::QuotesExhausted => "payments#buy-a-plan",
            Self::RequestInProgress | Self::IdempotencyKeyUsed | Self::IdempotencyKeyReused => {
                "idempotency#what-a-retry-gets"
            }
            Self::WebhookNotFound | Self::DeliveryNotFound | Self::TooManyWebhooks => "webhooks#delivery",
            Self::MaxCostExceeded => "quickstart#when-are-you-charged",
            _ => match self.status() {
                401 => "errors#401-the-key",
                402 => "errors#402-credits",
                403 => "errors#403-what-the-key-may-do",
                429 => "rate-limits#when-a-limit-is-reached",
                500.. => "errors#502-503-504-our-side",
                _ => "errors#was-it-charged",
            },
        }
    }
}
