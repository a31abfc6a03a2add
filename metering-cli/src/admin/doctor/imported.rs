//! Where accounts were imported: whether a top-up from a new wallet needs the payer's signature. Old clients do not
//! send one.

use metering_config::server::Config;
use metering_core::operators::AuditQuery;
use metering_core::store::{OperatorStore, StoreError};

use super::findings::Findings;
use crate::database::causes;

const CHECK: &str = "topup";
const IMPORT: &str = "accounts.import";
/// How many entries of the audit log are read, newest first, and how many at a time.
const MOST: u32 = 20_000;
const PAGE: u32 = 1_000;

pub(super) async fn check(config: &Config, store: &(impl OperatorStore + ?Sized), findings: &mut Findings) {
    match has_imported(store).await {
        Ok(false) => {}
        Ok(true) => judge(config.topup.require_payer_proof, findings),
        Err(error) => findings.warning(CHECK, causes(&error), "the audit log could not be read"),
    }
}

fn judge(requires_proof: bool, findings: &mut Findings) {
    if requires_proof {
        let found = "accounts were imported, and topup.require_payer_proof is on: a top-up from a wallet that no \
                     account has used gets 403 with complete_url, a page where the payer signs; old clients show that \
                     as an error";
        findings.ok(CHECK, found);
    } else {
        let found = "accounts were imported, and topup.require_payer_proof is off: old clients can top up from any \
                     wallet, and whoever registers somebody else's payment first gets its credits";
        findings.warning(CHECK, found, "set topup.require_payer_proof = true once no old clients are in use");
    }
}

async fn has_imported(store: &(impl OperatorStore + ?Sized)) -> Result<bool, StoreError> {
    let mut query = AuditQuery::default();
    for _ in 0..MOST / PAGE {
        let entries = store.audit_log(&query, PAGE).await?;
        if entries.iter().any(|entry| entry.entry.action == IMPORT) {
            return Ok(true);
        }
        query.before = entries.last().map(|entry| entry.id);
        if query.before.is_none() {
            break;
        }
    }
    Ok(false)
}
