//! Payments that come with requests, for `metering-core`: x402 and MPP.
//!
//! A service that sets [`SignedPayments`] with [`with_request_payments`](metering_core::Service::with_request_payments)
//! offers credits in its 402s. An agent signs an authorization to transfer the amount of an [`Offer`](offers::Offer)
//! (EIP-3009), and sends it with its request. The service submits it to the token's contract and adds the offer's
//! credits. The formats are in [`wire`].
//!
//! The steps: a charge is refused, and [`notice`](metering_core::service::RequestPayments::notice) adds offers to the
//! 402. The client repeats the request with an authorization, which [`SignedPayments::pay`] checks before anything is
//! written: offer, recipient, amount, times, signature, and whether it could be executed. `open_authorization` stores it
//! with a claim; its nonce is the key, so two servers open it once. A task that outlives the request takes the steps
//! that [`next_step`](offers::next_step) returns, and stores a transaction before it sends it. `credit_authorization`
//! writes payment, ledger entry and state in one transaction. Then the request is charged like any other. If the process
//! dies, [`SignedPayments::settle_authorizations`] of another one claims the authorization and continues.
//!
//! A payment for the usage of one request (x402's `upto`) is a signed permit for the most. It is stored with the id of
//! a hold, which it backs instead of a balance; when that is settled, a task transfers the captured amount.
#![deny(missing_docs)]

mod accepting;
mod buying;
mod challenges;
mod hook;
mod manifest;
pub mod offers;
mod payer;
mod received_payment;
mod settling;
mod sign_in;
mod signed_payments;
mod usage;
pub mod wire;

pub use buying::Bought;
pub use challenges::{ChallengeCredential, ChallengeSettings};
pub use received_payment::ReceivedPayment;
pub use settling::{OfferChain, Settler};
pub use signed_payments::{OfferSettings, PayRequest, SignedPayments};
