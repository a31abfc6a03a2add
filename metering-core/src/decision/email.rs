//! Links that were sent by email: opened, followed to verify an address, or followed to replace a key.

use super::entry::EntryChanges;
use super::key::{KeyChanges, KeyFacts, replace_key};
use super::{Decided, active};
use crate::access::account::Account;
use crate::access::email_status::EmailStatus;
use crate::access::key::KeyHash;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::money::ledger::{LedgerKind, NewLedgerEntry};
use crate::signups::link::{EmailLink, LinkHash, LinkPurpose};
use crate::store::{EmailVerified, StoreError};

/// The rows read before an address is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyFacts<K> {
    /// The link with the token.
    pub link: Option<EmailLink>,
    /// The link's account, revoked or not, and its row.
    pub account: Option<(K, Account)>,
    /// An account that is not revoked holds the address; may be the link's account itself.
    pub email_held: bool,
}

/// An address that is verified. Its link is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyChanges<K> {
    /// The account's row.
    pub row: K,
    /// The account, which holds its address from now on. Its totals include the entry.
    pub account: Account,
    /// The free credits, if there are any.
    pub entry: Option<NewLedgerEntry>,
    /// The token of the link to delete.
    pub token: LinkHash,
    /// The time of the entry.
    pub verified_at: Timestamp,
}

impl<K: Clone> VerifyChanges<K> {
    /// The outcome, once the changes are written.
    #[must_use]
    pub fn into_outcome(self) -> EmailVerified {
        let granted = self.entry.map_or(Credits::ZERO, |entry| entry.amount);
        EmailVerified::Account { account: self.account, granted }
    }

    /// The ledger entry to write, if there is one.
    #[must_use]
    pub fn entry_changes(&self) -> Option<EntryChanges<K>> {
        let entry = self.entry.clone()?;
        let (row, account, events) = (self.row.clone(), self.account.clone(), Vec::new());
        Some(EntryChanges { row, account, entry, written_at: self.verified_at, events })
    }
}

/// Decides [`SignupStore::open_email_link`](crate::store::SignupStore::open_email_link), and returns the link to store
/// in place of the account's older one for the same purpose. `account` is the link's account, revoked or not.
///
/// `None` when the account does not exist, is revoked or has no address; when a link for verification has nothing to
/// verify, or another link would go to an address that is not verified.
///
/// # Errors
/// When the token is in use, which is checked last.
pub fn open_email_link(
    new: EmailLink,
    account: Option<&Account>,
    token_in_use: bool,
) -> Result<Option<EmailLink>, StoreError> {
    let fits = |account: &Account| {
        let for_verified = new.purpose != LinkPurpose::VerifyAddress;
        account.revoked_at.is_none() && account.email.is_some() && account.email_status.is_verified() == for_verified
    };
    if !account.is_some_and(fits) {
        return Ok(None);
    }
    if token_in_use {
        return Err(StoreError::Corrupt("the token of a new link is already in use".to_owned()));
    }
    Ok(Some(new))
}

/// Decides [`SignupStore::verify_email`](crate::store::SignupStore::verify_email).
///
/// Refused, in this order: [`EmailVerified::NotLive`] when there is no live link, or its account is revoked or has
/// nothing to verify; [`EmailVerified::EmailTaken`]; [`EmailVerified::OutOfRange`].
pub fn verify_email<K>(facts: VerifyFacts<K>, now: Timestamp) -> Decided<VerifyChanges<K>, EmailVerified> {
    let link = facts.link.filter(|link| link.is_live(LinkPurpose::VerifyAddress, now));
    let (Some(link), Some((row, account))) = (link, active(facts.account)) else {
        return Decided::Refused(EmailVerified::NotLive);
    };
    let granted = match account.email_status {
        EmailStatus::Verified { .. } => return Decided::Refused(EmailVerified::NotLive),
        EmailStatus::Pending { .. } if facts.email_held => return Decided::Refused(EmailVerified::EmailTaken),
        EmailStatus::Pending { free_credits } => free_credits,
        EmailStatus::Unchecked => Credits::ZERO,
    };
    let entry = granted.is_positive().then(|| free_credits_entry(granted));
    let Some(totals) = entry.as_ref().map_or(Some(account.totals), |entry| entry.applied_to(account.totals)) else {
        return Decided::Refused(EmailVerified::OutOfRange);
    };
    let alert = account.alert.with_threshold(account.alert.threshold, totals.unspent());
    let account = Account { totals, alert, email_status: EmailStatus::Verified { at: now }, ..account };
    Decided::Accepted(VerifyChanges { row, account, entry, token: link.token, verified_at: now })
}

/// The ledger entry of an account's free credits.
#[must_use]
pub fn free_credits_entry(amount: Credits) -> NewLedgerEntry {
    NewLedgerEntry::new(LedgerKind::SignupBonus, amount, "Free credits of a new account")
}

/// Decides [`SignupStore::recover_key`](crate::store::SignupStore::recover_key). `facts` are the facts of the link's
/// account. The link is deleted with the change.
///
/// `None` when the link is not live; then, when its account is revoked.
///
/// # Errors
/// When the new key is in use, which is checked last.
pub fn recover_key<K: Copy>(
    link: &EmailLink,
    facts: KeyFacts<K>,
    key: KeyHash,
    now: Timestamp,
) -> Result<Option<KeyChanges<K>>, StoreError> {
    if link.is_live(LinkPurpose::RecoverKey, now) { replace_key(facts, key, now) } else { Ok(None) }
}

#[cfg(test)]
mod tests;
