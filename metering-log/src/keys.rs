//! Ed25519 keys: in files, as JWK sets, and what they sign as JWS.
//!
//! Private keys never appear in `Debug` or in errors, and are wiped from memory on drop.

mod jwk;
mod jws;
mod key;
mod key_file;

pub use jwk::{JwkError, JwkSet};
pub use jws::{Jws, JwsError, JwsHeader, sign_jws};
pub use key::{BadSignature, MalformedKey, PrivateKey, PublicKey};
pub use key_file::{KeyFileError, KeyRing};
