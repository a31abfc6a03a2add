//! A line of a statement as JSON: the opening of a leaf for programs, the same for people, and its proof.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use metering_core::charging::UsageKind;
use metering_core::wire::StatementLineDocument;
use metering_log::tree::TreeHash;

use crate::leaf::{Opening, Posting};
use crate::salt::Salt;

/// A leaf with its proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProvenLeaf {
    pub(crate) position: u64,
    pub(crate) opening: Opening,
    pub(crate) salt: Salt,
    /// The inclusion proof.
    pub(crate) path: Vec<TreeHash>,
}

impl ProvenLeaf {
    pub(crate) fn to_document(&self) -> StatementLineDocument {
        let opening = &self.opening;
        let path: Vec<u8> = self.path.iter().flat_map(|hash| *hash.as_bytes()).collect();
        let line = StatementLineDocument {
            number: opening.number,
            at: opening.at.to_string(),
            atoms: opening.amount.atoms().to_string(),
            funds: opening.funds.atoms().to_string(),
            opening: URL_SAFE_NO_PAD.encode(opening.to_bytes()),
            salt: URL_SAFE_NO_PAD.encode(self.salt.as_bytes()),
            position: self.position,
            path: URL_SAFE_NO_PAD.encode(path),
            ..StatementLineDocument::default()
        };
        match &opening.posting {
            Posting::Opening => StatementLineDocument { kind: "opening".to_owned(), ..line },
            Posting::Imported => StatementLineDocument { kind: "imported".to_owned(), ..line },
            Posting::Ledger { id, kind, tx } => StatementLineDocument {
                kind: kind.to_string(),
                entry: Some(*id),
                chain_id: tx.map(|tx| tx.chain_id),
                tx_hash: tx.map(|tx| tx.hash.to_string()),
                ..line
            },
            Posting::Usage { line: of, kind, day, key, calls } => StatementLineDocument {
                kind: usage_name(*kind).to_owned(),
                day: Some(day.to_string()),
                key_number: Some(key.get()),
                calls: Some(*calls),
                route: Some(format!("{} {}", of.http_method, of.route_template)),
                source: Some(of.source.as_str().to_owned()),
                ..line
            },
        }
    }

    /// Reads a line.
    ///
    /// # Errors
    /// The part that cannot be read, or that disagrees with the opening.
    pub(crate) fn read(line: &StatementLineDocument) -> Result<Self, &'static str> {
        let decode = |text: &str, what| URL_SAFE_NO_PAD.decode(text).map_err(|_| what);
        let opening = Opening::parse(&decode(&line.opening, "opening")?).map_err(|_| "opening")?;
        let salt = <[u8; 16]>::try_from(decode(&line.salt, "salt")?).map_err(|_| "salt")?;
        let path = decode(&line.path, "path")?;
        let (path, []) = path.as_chunks::<32>() else { return Err("path") };
        let path = path.iter().copied().map(TreeHash::from_bytes).collect();
        let read = Self { position: line.position, opening, salt: Salt::from_bytes(salt), path };
        if read.to_document() == *line { Ok(read) } else { Err("text beside its opening") }
    }
}

fn usage_name(kind: UsageKind) -> &'static str {
    match kind {
        UsageKind::Charged => "charged",
        UsageKind::Refunded => "refunded",
        UsageKind::Expired => "expired",
        UsageKind::Released => "released",
    }
}
