//! Revokes accounts.

use super::Decided;
use crate::access::account::Account;
use crate::clock::Timestamp;

/// Decides [`Store::revoke_account`](crate::Store::revoke_account). The accepted change is the account's row and the
/// account after it; its live key is revoked at the same time.
///
/// A missing or already revoked account is returned unchanged.
pub fn revoke_account<K>(account: Option<(K, Account)>, now: Timestamp) -> Decided<(K, Account), Option<Account>> {
    match account {
        Some((row, account)) if account.revoked_at.is_none() => {
            Decided::Accepted((row, Account { revoked_at: Some(now), ..account }))
        }
        found => Decided::Refused(found.map(|(_, account)| account)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::scene::{NOW, account, revoked};
    use super::*;

    #[test]
    fn an_account_is_revoked_once() {
        let later = NOW.saturating_add(std::time::Duration::from_secs(1));
        assert_eq!(revoke_account::<i64>(None, later), Decided::Refused(None));
        assert_eq!(revoke_account(Some((1, revoked())), later), Decided::Refused(Some(revoked())));
        assert_eq!(revoke_account(Some((1, account())), NOW), Decided::Accepted((1, revoked())));
    }
}
