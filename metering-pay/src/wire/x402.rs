//! x402: offers in a 402 that agents accept by signing a token transfer (EIP-3009), or a permit for at most an amount
//! (Permit2), and its extensions.
//!
//! Version 2 uses the headers [`PAYMENT_REQUIRED_HEADER`](metering_core::wire::PAYMENT_REQUIRED_HEADER),
//! [`PAYMENT_SIGNATURE_HEADER`](metering_core::wire::PAYMENT_SIGNATURE_HEADER) and
//! [`PAYMENT_RESPONSE_HEADER`](metering_core::wire::PAYMENT_RESPONSE_HEADER), or messages of MCP. Version 1 has its offers in
//! the body. The specifications are `specs/x402-specification-v2.md` and `v1`, `specs/transports-v2/http.md` and
//! `mcp.md`, `specs/schemes/exact/scheme_exact_evm.md` and `upto/scheme_upto_evm.md` of <https://github.com/x402-foundation/x402>. Where clients
//! are stricter than the specification, these types follow the strictest client.

mod bazaar;
mod extension_responses;
mod identifier;
mod manifest;
mod offer_receipt;
mod payload;
mod required;
mod requirements;
mod resource;
mod settle;
mod settle_refusal;
mod sign_in;
mod v1;

pub use bazaar::{BAZAAR_EXTENSION, PricedTool, bazaar_extension, bazaar_tool_extension};
pub use extension_responses::{EXTENSION_RESPONSES_HEADER, ExtensionOutcome};
pub use identifier::{PAYMENT_IDENTIFIER_EXTENSION, PaymentIdentifier, PaymentIdentifierError};
pub use manifest::{MANIFEST_PATH, Manifest};
pub use offer_receipt::{OFFER_RECEIPT_EXTENSION, offers_extension, receipt_extension};
pub use payload::PaymentPayload;
pub use required::{MAX_PAYMENT_REQUIRED_BYTES, PaymentRequired};
pub use requirements::{MAX_TIMEOUT_SECONDS, Requirements, UPTO_TIMEOUT_SECONDS};
pub use resource::Resource;
pub use settle::SettleResponse;
pub use settle_refusal::SettleRefusal;
pub use sign_in::{SIGN_IN_EXTENSION, SignIn, SignInFault, SignInTerms, Site, SiteError, sign_in_extension};
pub use v1::{PaymentPayloadV1, PaymentRequiredV1, RequirementsV1, network_name_v1};
