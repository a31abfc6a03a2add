//! The signed part of a statement's page: the payload of the JWS.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use metering_core::Timestamp;
use metering_core::wire::{AccountStateDocument, AccountStatementDocument, StatementGapDocument};
use metering_log::checkpoint::Checkpoint;
use metering_log::keys::{JwkSet, Jws, JwsError, JwsHeader, PrivateKey, sign_jws};
use metering_log::tree::TreeHash;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// All contents of a page, with its lines as a hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignedStatement {
    /// The public URL of the service.
    pub(crate) iss: String,
    /// When it was signed, in seconds (RFC 7519, section 4.1.6).
    pub(crate) iat: i64,
    /// The account.
    sub: String,
    period: String,
    from: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gap: Option<StatementGapDocument>,
    until: Timestamp,
    complete: bool,
    /// Null for the first page.
    after: Option<u64>,
    /// The checkpoint's log, size and root.
    pub(crate) log: String,
    pub(crate) size: u64,
    pub(crate) root: TreeHash,
    /// The numbers of the first line and the last.
    first: Option<u64>,
    last: Option<u64>,
    opening: Option<AccountStateDocument>,
    closing: Option<AccountStateDocument>,
    held: String,
    next: Option<u64>,
    /// SHA-256 of the openings, each after its length as 32 bits, big-endian, in base64url.
    lines: String,
}

impl SignedStatement {
    /// The `typ` of the JWS, so that nothing else signed with the key can pass for a statement.
    const TYPE: &str = "metering-statement+jws";

    /// What a page says.
    ///
    /// # Errors
    /// The number of a line whose opening is not base64url.
    pub(crate) fn of(
        page: &AccountStatementDocument,
        iss: String,
        iat: i64,
        checkpoint: &Checkpoint,
    ) -> Result<Self, u64> {
        let mut hash = Sha256::new();
        for line in &page.lines {
            let opening = URL_SAFE_NO_PAD.decode(&line.opening).map_err(|_| line.number)?;
            hash.update(u32::try_from(opening.len()).unwrap_or(u32::MAX).to_be_bytes());
            hash.update(&opening);
        }
        Ok(Self {
            iss,
            iat,
            sub: page.org_id.clone(),
            period: page.period.clone(),
            from: page.from,
            gap: page.gap.clone(),
            until: page.until,
            complete: page.complete,
            after: page.after,
            log: checkpoint.origin().to_owned(),
            size: checkpoint.size(),
            root: checkpoint.root(),
            first: page.lines.first().map(|line| line.number),
            last: page.lines.last().map(|line| line.number),
            opening: page.opening.clone(),
            closing: page.closing.clone(),
            held: page.held.clone(),
            next: page.next,
            lines: URL_SAFE_NO_PAD.encode(hash.finalize()),
        })
    }

    /// The JWS in the compact form.
    pub(crate) fn sign(&self, key: &PrivateKey) -> Result<String, serde_json::Error> {
        let header = JwsHeader { kid: Some(key.public().thumbprint()), typ: Some(Self::TYPE.to_owned()) };
        Ok(sign_jws(&header, &serde_json::to_vec(self)?, key))
    }

    /// What was signed; `None` if that is another kind of statement.
    ///
    /// # Errors
    /// When none of these keys signed it.
    pub(crate) fn read(jws: &str, keys: &JwkSet) -> Result<Option<Self>, JwsError> {
        let jws = Jws::parse(jws)?;
        let payload = jws.verify_with(keys)?;
        let is_statement = jws.header().typ.as_deref() == Some(Self::TYPE);
        Ok(if is_statement { serde_json::from_slice(payload).ok() } else { None })
    }
}
