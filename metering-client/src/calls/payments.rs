//! Buying credits: plans, offers, quotes, and payments.

use metering_core::wire::call::Access;
use metering_core::wire::{
    AutoTopUpRequest, AutoTopUpResponse, CheckoutRequest, CheckoutResponse, ClaimRequest, ClaimResponse,
    CompletionRequest, CompletionResponse, PlansDocument, ProcessorPaymentRequest, ProcessorPaymentResponse,
    ProcessorReversalRequest, ProcessorReversalResponse, QuoteRequest, QuoteResponse, TopUpQuoteDocument,
    TopUpQuoteRequest, TopUpRequest, TopUpResponse,
};
use metering_core::{call, parameters};
use metering_pay::wire::{BoughtResponse, OffersDocument};

use super::access::{BILLING, KEY, KEY_ALONE};

parameters! {
    /// A top-up quote.
    OfTopUpQuote {
        /// The quote's id
        quote_id: String = "tuq_9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    }
}

call! {
    /// Plans on sale and the chains they are paid on
    ///
    /// Only active plans on configured chains, and those that are sold by card, in display order.
    ListPlans("plans") = GET "/credits/plans" in "plans" for Access::ANYONE;
    returns(200, "The plans": PlansDocument) or(StorageUnavailable);

    /// Amounts that can be paid with a signature, without gas
    ///
    /// The possible amounts of a payment, cheapest first, and the credits that each buys. The list is empty if the
    /// service accepts no such payments. Programs read offers from the 402 of the request that they want to make.
    ListOffers("offers") = GET "/credits/offers" in "payments" for Access::ANYONE;
    returns(200, "The offers": OffersDocument) or(StorageUnavailable);

    /// Buy a plan by card
    ///
    /// Makes a checkout at the card processor, where a person pays. Its credits are in the account soon after. With an
    /// `Idempotency-Key`, a retry gets the same checkout. With `save_card`, the processor saves the card for automatic
    /// top-ups; only the account's first key may request that.
    CreateCheckout("create_checkout") = POST "/credits/checkout" in "payments" for KEY;
    takes((), CheckoutRequest);
    returns(200, "The checkout": CheckoutResponse)
        or(UnknownPlan, NotFound: "the service takes no cards", RateLimited,
            UpstreamUnreachable: "the processor cannot be reached; nothing was charged");

    /// The saved card and the automatic top-ups of the account
    GetAutoTopUp("auto_top_up") = GET "/credits/auto-top-up" in "payments" for KEY;
    returns(200, "The card and the top-ups": AutoTopUpResponse);

    /// Turn automatic top-ups on
    ///
    /// When the balance falls below the threshold, the saved card is charged for the plan at the price that it has now:
    /// one charge at a time, and no more than `monthly_limit` in a calendar month (UTC). If a charge fails, a payment
    /// of the account is refunded or disputed, or the plan changes, they stop, and the event `top_up.stopped` has the
    /// reason; send this again to resume. The account needs a saved card: buy a plan with `POST /credits/checkout` and
    /// `save_card`.
    SetAutoTopUp("set_auto_top_up") = PUT "/credits/auto-top-up" in "payments" for KEY;
    takes((), AutoTopUpRequest);
    returns(200, "The card and the top-ups as they are now": AutoTopUpResponse)
        or(ValidationFailed: "also if no card is saved", NotFound: "the service takes no cards", RateLimited,
            OutcomeUnknown);

    /// Turn automatic top-ups off
    ///
    /// The card is kept. A charge in progress is not undone.
    EndAutoTopUp("end_auto_top_up") = DELETE "/credits/auto-top-up" in "payments" for KEY;
    returns(200, "The card and the top-ups as they are now": AutoTopUpResponse) or(RateLimited, OutcomeUnknown);

    /// Remove the saved card
    ///
    /// Turns automatic top-ups off, and removes the card here and at the card processor.
    RemoveCard("remove_card") = DELETE "/credits/card" in "payments" for KEY;
    returns(200, "The card and the top-ups as they are now": AutoTopUpResponse)
        or(NotFound: "the service takes no cards", RateLimited, OutcomeUnknown,
            UpstreamUnreachable: "top-ups are off, but the processor cannot remove the card at the moment; try again");

    /// Buy credits with a signed payment
    ///
    /// Without a payment, the response is a 402 with all offers, for clients of x402: version 2 in the header
    /// `PAYMENT-REQUIRED`, version 1 in the body. Send the request again with a payment of one of them in
    /// `PAYMENT-SIGNATURE` (version 2) or `X-PAYMENT` (version 1): it is credited to the account of the key, and the
    /// header `PAYMENT-RESPONSE` or `X-PAYMENT-RESPONSE` has the receipt. The same payment sent again is credited once,
    /// and gets the same response. After `settlement_pending`, send the same payment again; never sign another one.
    Pay("pay") = POST "/credits/pay" in "payments" for KEY;
    returns(200, "Credited, now or earlier": BoughtResponse)
        or(ValidationFailed: "the payment cannot be read; nothing was taken", PaymentRequired: "the offers",
            PaymentRefused: "nothing was taken", NotFound: "the service accepts no such payments",
            PaymentCredited: "to another account", RateLimited, SettlementPending, SettlementUnavailable,
            OutcomeUnknown);

    /// Buy credits with a signed payment, from the operator's own machines
    ///
    /// The same as `POST /credits/pay`. Paths below `/internal/` are not public.
    PayInternal("pay_internal") = POST "/internal/billing/pay" in "internal" for KEY_ALONE;
    returns(200, "Credited, now or earlier": BoughtResponse)
        or(ValidationFailed: "the payment cannot be read; nothing was taken", PaymentRequired: "the offers",
            PaymentRefused: "nothing was taken", NotFound: "the service accepts no such payments",
            PaymentCredited: "to another account", RateLimited, SettlementPending, SettlementUnavailable,
            OutcomeUnknown);

    /// Credit a payment that a processor took
    ///
    /// For a checkout of your own. A payment is named by its processor and the processor's id, and is credited once,
    /// however often it is sent; the same id on other terms is a `conflict`. A revoked account is credited too
    /// (`account_revoked`): refund such a payment, and report the refund. Exists only if the operator has configured
    /// `billing.payments_secret`, which is sent like the billing secret.
    CreditPayment("credit_payment") = POST "/internal/payments" in "internal" for BILLING;
    takes((), ProcessorPaymentRequest);
    returns(200, "Credited, now or earlier": ProcessorPaymentResponse)
        or(NotFound: "there is no such account, or no secret is configured",
            Conflict: "the id was credited on other terms", OutcomeUnknown);

    /// Reverse a payment that a processor took
    ///
    /// For refunds and disputes, in whole or in part, each named by its processor's id. It takes back the same part of the
    /// credits; the balance may go below zero. Reversals of a payment add up, to the whole payment at most, in any order.
    /// With `restored`, the reversal ends and its credits return, even if it is reported again, unless with `again`.
    ReversePayment("reverse_payment") = POST "/internal/payments/reversals" in "internal" for BILLING;
    takes((), ProcessorReversalRequest);
    returns(200, "Recorded, now or earlier": ProcessorReversalResponse)
        or(NotFound: "there is no such payment, or no secret is configured",
            Conflict: "the id was recorded on other terms", OutcomeUnknown);

    /// Top up the account with a payment
    ///
    /// The payment must be at least the plan's price, from a wallet that is known to belong to the account. For any
    /// other wallet, sign the `message` of the `payer_proof_required` response with it and repeat the request with that
    /// `signature`. Submitting the same payment again changes nothing.
    TopUp("top_up") = POST "/credits/topup" in "payments" for KEY;
    takes((), TopUpRequest);
    returns(200, "Credited, now or earlier": TopUpResponse)
        or(InvalidTxHash, InvalidSignature, UnsupportedChain, UnknownPlan, TxReverted, PaymentMismatch,
            PaymentPredatesService, PayerProofRequired: "`message` is the text that the payer must sign", TxNotFound,
            PaymentUnconfirmed, TxAlreadyUsed, PaymentReserved, RateLimited, CheckoutNotAvailable: "without `tx_hash`",
            RpcError, RpcChainMismatch, PaymentNotConfigured, OutcomeUnknown);

    /// Have a payment credited, as its payer
    ///
    /// For the page that the `complete_url` of a `payer_proof_required` response leads to: the wallet that paid chooses
    /// the account that gets the credits. Needs no key. Without a `signature`, the response has the text to sign.
    CompleteTopUp("complete_top_up") = POST "/credits/topup/complete" in "payments" for Access::ANYONE;
    takes((), CompletionRequest);
    returns(200, "Credited, now or earlier": CompletionResponse)
        or(InvalidTxHash, InvalidSignature, UnsupportedChain, UnknownPlan, TxReverted, PaymentMismatch,
            PaymentPredatesService, PayerProofRequired: "`message` is the text that the payer must sign",
            NotFound: "there is no such account", TxNotFound, PaymentUnconfirmed, TxAlreadyUsed, PaymentReserved,
            RateLimited, RpcError, RpcChainMismatch, PaymentNotConfigured, StorageUnavailable, OutcomeUnknown);

    /// Get a top-up quote
    ///
    /// The amount is the plan's price plus a small tag that identifies this quote. Pay exactly that amount from any
    /// wallet, once, in a plain transfer: it is credited to this account, without a signature. The native coin must
    /// come from an account with a private key, not from a contract. Payments mined within a day of `expires_at` are
    /// honoured. An account that requests another soon gets the same quote, unless a payment of it was seen; to pay
    /// again, request another once it is `paid`.
    CreateTopUpQuote("top_up_quote") = POST "/credits/topup/quote" in "payments" for KEY;
    takes((), TopUpQuoteRequest);
    returns(201, "The quote": TopUpQuoteDocument)
        or(UnsupportedChain, UnknownPlan, RateLimited, RpcError, RpcChainMismatch, PaymentNotConfigured,
            QuotesExhausted, OutcomeUnknown);

    /// A top-up quote and its payment
    ///
    /// Poll this, every few seconds, to wait for the payment: a payment in one of the newest blocks is `seen`, with its
    /// confirmations, before it is credited. The request credits a confirmed payment itself. If a reorganisation of the
    /// chain removes a credited payment, the status is `reversed` until the payment, or another of the amount, is
    /// mined.
    GetTopUpQuote("top_up_quote_status") = GET "/credits/topup/quote" in "payments" for KEY;
    takes(OfTopUpQuote, ());
    returns(200, "The quote": TopUpQuoteDocument)
        or(ValidationFailed, UnsupportedChain, NotFound: "the account has no such quote", RateLimited,
            PaymentNotConfigured);

    /// Get a quote for a plan
    ///
    /// The amount is the plan's price plus a small tag that identifies this quote. Pay exactly that amount from
    /// `payer_address`, in a plain transfer. Payments mined within seven days of `expires_at` are honoured.
    CreateQuote("quote") = POST "/signup/pay/quote" in "payments" for Access::ANYONE;
    takes((), QuoteRequest);
    returns(201, "The quote": QuoteResponse)
        or(UnsupportedChain, UnknownPlan, UnsupportedToken, PayerIsContract, EmailAlreadyRegistered,
            PayerAlreadyRegistered, RateLimited, RpcError, RpcChainMismatch, PaymentNotConfigured, QuotesExhausted,
            StorageUnavailable, OutcomeUnknown);

    /// Claim the account of a paid quote
    ///
    /// Waits for the payment's confirmations, by default for up to 45 seconds. The key is shown only once. A claim that
    /// fails changes nothing and can be repeated.
    ClaimQuote("claim") = POST "/signup/pay/claim" in "payments" for Access::ANYONE;
    takes((), ClaimRequest);
    returns(200, "The account and its key": ClaimResponse)
        or(InvalidTxHash, TxReverted, PaymentMismatch, PayerMismatch, PaymentPredatesQuote, PaymentPredatesService,
            NotFound: "no such quote", TxNotFound, AlreadyClaimed, PaymentUnconfirmed, TxAlreadyUsed,
            PayerAlreadyRegistered, QuoteExpired, RateLimited, RpcError, RpcChainMismatch, PaymentNotConfigured,
            StorageUnavailable, OutcomeUnknown);
}
