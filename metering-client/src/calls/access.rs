//! The callers of the API, and how other callers are refused.

use metering_core::wire::ErrorCode::{
    Forbidden, KeyExpired, KeyNetwork, KeyScope, NotFound, StorageUnavailable, Unauthorized,
};
use metering_core::wire::call::{Access, Refusal};

const KEY_REFUSALS: &[Refusal] =
    &[(Unauthorized, ""), (KeyExpired, ""), (KeyScope, ""), (KeyNetwork, ""), (StorageUnavailable, "")];

/// A key, in either header, or the session of a signed-in browser.
pub(super) const KEY: Access =
    Access { schemes: &[&["bearer"], &["api_key"]], refusals: KEY_REFUSALS, takes_session: true };

/// A key, in either header, and no session.
pub(super) const KEY_ALONE: Access = Access { takes_session: false, ..KEY };

/// The same, or a wallet that signs in.
pub(super) const KEY_OR_WALLET: Access = Access { schemes: &[&["bearer"], &["api_key"], &["sign_in_with_x"]], ..KEY };

/// A service that has the billing secret.
pub(super) const BILLING: Access = Access {
    schemes: &[&["billing_secret"]],
    refusals: &[(Forbidden, "the secret is wrong"), (NotFound, "no secret is configured"), (StorageUnavailable, "")],
    takes_session: false,
};

/// The same, with the key of its client.
pub(super) const BILLING_WITH_KEY: Access = Access {
    schemes: &[&["billing_secret", "bearer"]],
    refusals: &[
        (Forbidden, "the secret is wrong"),
        (NotFound, "no secret is configured"),
        (Unauthorized, ""),
        (StorageUnavailable, ""),
    ],
    takes_session: false,
};
