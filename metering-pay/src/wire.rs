//! Payments as clients write them: x402 (versions 1 and 2), MPP, and both in messages of MCP.

mod accepted;
mod fields;
mod malformed_payment;
pub mod mcp;
pub mod mpp;
mod offers;
mod payment_headers;
#[cfg(test)]
mod vectors;
pub mod x402;

pub use accepted::{Accepted, OfferMismatch};
pub use malformed_payment::MalformedPayment;
pub use offers::{BoughtResponse, OfferDocument, OffersDocument, PaidTransaction};
pub use payment_headers::{MppSource, PaymentHeaders, SentPayment};
