//! The extension `sign-in-with-x`: a wallet signs in with a message (EIP-4361), so its balance can be spent
//! (`specs/extensions/sign-in-with-x.md`).
//!
//! The 402 has a nonce and the message to sign; the client sends the message's fields and its signature in
//! [`SIGN_IN_HEADER`](metering_core::wire::SIGN_IN_HEADER). Nonces are used once, which their issuer checks.

mod check;
mod message;
mod site;

use metering_core::clock::Timestamp;
use serde_json::{Value, json};

use crate::offers::Network;

pub use check::SignInFault;
pub use message::SignIn;
pub use site::{Site, SiteError};

/// The key of the extension.
pub const SIGN_IN_EXTENSION: &str = "sign-in-with-x";

/// The message of a 402 for wallets to sign.
#[derive(Debug, Clone, Copy)]
pub struct SignInTerms<'t> {
    /// The service, in its form for clients. They refuse to sign in to another one.
    pub site: &'t Site,
    /// The URL of the request, at that service.
    pub uri: &'t str,
    /// The effect of signing in, in printable ASCII.
    pub statement: &'t str,
    /// A text that is used once: letters and digits, at least 8.
    pub nonce: &'t str,
    /// When the nonce was issued.
    pub issued_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    /// The chains whose wallets may sign in; the first should be the first offer's chain.
    pub chain_ids: &'t [u64],
}

/// The extension of a 402.
#[must_use]
pub fn sign_in_extension(terms: &SignInTerms<'_>) -> Value {
    let chain = |chain_id: &u64| json!({"chainId": Network(*chain_id).to_string(), "type": "eip191"});
    let chains: Vec<_> = terms.chain_ids.iter().map(chain).collect();
    json!({
        "info": {
            "domain": terms.site.domain(),
            "uri": terms.uri,
            "version": "1",
            "nonce": terms.nonce,
            "issuedAt": terms.issued_at.to_string(),
            "expirationTime": terms.expires_at.to_string(),
            "statement": terms.statement,
            "resources": [terms.uri],
        },
        "supportedChains": chains,
        // Short, because clients send it back. The specification has the types of all fields.
        "schema": {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::vectors::vector;

    #[test]
    fn the_extension_is_that_of_the_reference() {
        let url = "https://api.example.com/v1/quote?symbol=ETH";
        let site: Site = url.parse().unwrap();
        let terms = SignInTerms {
            site: &site,
            uri: url,
            statement: "Spend the balance of this wallet",
            nonce: "a1b2c3d4e5f67890a1b2c3d4e5f67890",
            issued_at: Timestamp::from_unix_millis(1_750_000_000_000),
            expires_at: Timestamp::from_unix_millis(1_750_000_300_000),
            chain_ids: &[84_532],
        };
        let expected = &vector("server-messages")["payment_required"]["extensions"]["sign-in-with-x"];
        assert_eq!(&sign_in_extension(&terms), expected);
    }
}
