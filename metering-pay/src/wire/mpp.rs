//! MPP, the "Machine Payments Protocol": challenges in `WWW-Authenticate`, for which agents send a credential.
//!
//! Only the method `evm` with the intent `charge` and signed authorizations (EIP-3009) is on offer. The specifications
//! are draft-httpauth-payment-02, draft-evm-charge-01 and draft-payment-transport-mcp-00 of <https://paymentauth.org>, at
//! `8320d5b`, `f6245f2` and `09b7ed1` of `tempoxyz/mpp-specs`.
//!
//! No challenge is stored. Its id is an HMAC of its fields, and the nonce that the payer signs is a hash of the id, so
//! a credential matches one challenge of this service, and its token's contract executes it once.

mod challenge;
mod credential;
mod nonce;
mod realm;
mod receipt;
mod secret;

pub use challenge::{Challenge, ChallengeTerms};
pub use credential::{ChallengeFault, Credential, VerifiedCredential};
pub use realm::{Realm, RealmError};
pub use receipt::Receipt;
pub use secret::{ChallengeSecret, ShortChallengeSecret};

const METHOD: &str = "evm";
const INTENT: &str = "charge";
/// The value of `header` in a challenge whose credential goes into a separate header.
pub(super) const OWN_HEADER: &str = "Payment-Authorization";
