//! The signed part of a batch of receipts: the payload of the JWS.

use metering_core::Timestamp;
use metering_log::keys::{JwsHeader, PrivateKey, sign_jws};
use metering_log::tree::TreeHash;
use serde::{Deserialize, Serialize};

/// The root of a batch's tree, with its issuer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SignedRoot {
    /// The public URL of the service, as in all payloads of the batch.
    pub(crate) iss: String,
    /// When it was signed, in seconds (RFC 7519, section 4.1.6).
    iat: i64,
    #[serde(with = "base64url")]
    pub(crate) root: TreeHash,
    /// How many receipts there are.
    pub(crate) size: u64,
}

impl SignedRoot {
    /// The `typ` of the JWS, so that nothing else signed with the key can pass for a receipt.
    pub(crate) const TYPE: &str = "metering-receipts+jws";

    pub(crate) fn new(iss: String, at: Timestamp, root: TreeHash, size: u64) -> Self {
        Self { iss, iat: at.unix_seconds(), root, size }
    }

    /// The JWS in the compact form.
    pub(crate) fn sign(&self, key: &PrivateKey) -> Result<String, serde_json::Error> {
        let header = JwsHeader { kid: Some(key.public().thumbprint()), typ: Some(Self::TYPE.to_owned()) };
        Ok(sign_jws(&header, &serde_json::to_vec(self)?, key))
    }
}

/// Encoded like the other parts of a receipt; the text of a [`TreeHash`] would be base64 with padding.
mod base64url {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use metering_log::tree::TreeHash;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(hash: &TreeHash, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&URL_SAFE_NO_PAD.encode(hash.as_bytes()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TreeHash, D::Error> {
        let bytes = URL_SAFE_NO_PAD.decode(String::deserialize(deserializer)?).map_err(Error::custom)?;
        <[u8; 32]>::try_from(bytes).map(TreeHash::from_bytes).map_err(|_| Error::custom("expected 32 bytes"))
    }
}
