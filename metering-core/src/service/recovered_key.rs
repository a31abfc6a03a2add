//! The response that has an account's new key, and for a recovery, which other keys still work.

use crate::access::account::Account;
use crate::access::issued_key::KeyStatus;
use crate::access::key::ApiKey;
use crate::service::Access;
use crate::store::StoreError;
use crate::wire::{RemainingKeyDocument, VerifyResponse};

/// How many keys are read at a time.
const KEYS_PER_READ: u32 = 100;

/// The response to a recovery: the account's new key, and which others still work.
pub(super) async fn recovered(access: &Access, account: &Account, key: ApiKey) -> VerifyResponse {
    let remaining = other_live_keys(access, account).await;
    if let Err(error) = &remaining {
        // The new key must not be lost for that.
        tracing::warn!(%error, account = %account.id, "cannot list the other keys of a recovered account");
    }
    VerifyResponse { remaining_keys: remaining.ok(), ..rotated(account, key) }
}

async fn other_live_keys(access: &Access, account: &Account) -> Result<Vec<RemainingKeyDocument>, StoreError> {
    let (now, mut after, mut others) = (access.now(), None, Vec::new());
    let works = |status: &KeyStatus| {
        let expired = status.key.terms.expires_at.is_some_and(|at| at <= now);
        !status.key.number.is_first() && status.key.is_live() && status.parents_are_live && !expired
    };
    loop {
        let page = access.store.keys(&account.id, after.as_ref(), KEYS_PER_READ, now.day()).await?;
        others.extend(page.items.iter().filter(|status| works(status)).map(|status| RemainingKeyDocument {
            id: status.key.id.to_string(),
            name: status.key.terms.name.to_string(),
            scopes: status.key.terms.scopes,
            created_at: status.key.created_at,
        }));
        after = page.next;
        if after.is_none() {
            return Ok(others);
        }
    }
}

/// The response that has an account's new key.
pub(super) fn rotated(account: &Account, key: ApiKey) -> VerifyResponse {
    VerifyResponse {
        status: "ok",
        rotated: true,
        api_key: key.into(),
        org_id: account.id.to_string(),
        credit_balance: account.totals.balance,
        rate_limits: account.limits,
        remaining_keys: None,
    }
}
