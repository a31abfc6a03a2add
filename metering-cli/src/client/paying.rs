//! Paying for requests: code shared by `metering call --pay`, `metering mcp --pay` and `metering topup --sign`.
//!
//! A [`transport::PayingTransport`] sits between a client and its service. When the service asks for a payment (a 402
//! with offers of x402, version 1 or 2), it takes the first offer that the [`terms`] allow, signs an authorization of a
//! token transfer (EIP-3009), and sends the request again with it.
//!
//! An authorization is in the [`journal`] and on disk before it is sent, and no other one is sent for its call until
//! the response has arrived. A call is never paid twice: not after a crash, a timeout, or a second 402.

pub(crate) mod amount;
pub(crate) mod arguments;
pub(crate) mod call;
mod call_lock;
pub(crate) mod codes;
mod entry;
pub(crate) mod journal;
mod lock;
mod offers;
pub(crate) mod payer;
mod payload;
mod receipt;
mod refusal;
mod signing;
mod state;
pub(crate) mod terms;
pub(crate) mod tokens;
pub(crate) mod transport;
pub(crate) mod url;
