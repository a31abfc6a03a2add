//! Creates accounts.

use super::Decided;
use crate::access::account::{Account, Totals};
use crate::access::issued_key::Key;
use crate::access::key::KeyHash;
use crate::events::event::NewEvent;
use crate::events::event_data::EventData;
use crate::money::ledger::NewLedgerEntry;
use crate::store::{Created, NewAccount, StoreError};

/// Whether an email address and a wallet are free for a new owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnerFacts {
    /// An account that is not revoked holds the email address. `false` without an address.
    pub email_taken: bool,
    /// An account that is not revoked has the wallet as its payer. `false` without a wallet.
    pub payer_taken: bool,
}

/// The rows read before an account is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CreateFacts {
    /// Any account, revoked or not, has its id, or has or had its key.
    pub id_or_key_in_use: bool,
    /// Whether its email address and payer are free.
    pub owner: OwnerFacts,
}

/// An account to insert, with its key and its first ledger entries. All were created at [`Account::created_at`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateChanges {
    /// The account. Its totals include the entries.
    pub account: Account,
    /// The hash of its key.
    pub key: KeyHash,
    /// Its ledger entries, in the order to write them.
    pub entries: Vec<NewLedgerEntry>,
    /// The events to write: its key was created, and payments were credited.
    pub events: Vec<NewEvent>,
}

/// Decides [`Store::create_account`](crate::Store::create_account).
///
/// Refused, in this order: [`Created::EmailTaken`], [`Created::PayerTaken`], [`Created::OutOfRange`].
///
/// # Errors
/// Before any refusal, when the id or the key is in use.
pub fn create_account(new: NewAccount, facts: CreateFacts) -> Result<Decided<CreateChanges, Created>, StoreError> {
    if facts.id_or_key_in_use {
        return Err(StoreError::Corrupt("the id or key of a new account is already in use".to_owned()));
    }
    // An account that waits for verification does not hold its address.
    if facts.owner.email_taken && new.email_status.is_holding() {
        return Ok(Decided::Refused(Created::EmailTaken));
    }
    if facts.owner.payer_taken {
        return Ok(Decided::Refused(Created::PayerTaken));
    }
    let NewAccount { id, agent_name, email, email_status, payer, limits, key, entries, created_at } = new;
    let Some(totals) = entries.iter().try_fold(Totals::default(), |totals, entry| entry.applied_to(totals)) else {
        return Ok(Decided::Refused(Created::OutOfRange));
    };
    let first = Key::first(id.clone(), &key, created_at);
    let payments = entries.iter().filter_map(|entry| EventData::of_entry(entry, totals.balance));
    let data = std::iter::once(EventData::KeyCreated((&first).into())).chain(payments);
    let events = data.map(|data| NewEvent { account: Some(id.clone()), data, created_at }).collect();
    let account = Account { email, email_status, payer, limits, totals, ..Account::new(id, agent_name, created_at) };
    Ok(Decided::Accepted(CreateChanges { account, key, entries, events }))
}

#[cfg(test)]
mod tests {
    use super::super::scene::{entry, new_account};
    use super::*;
    use crate::access::email_status::EmailStatus;
    use crate::money::credits::Credits;

    #[test]
    fn the_first_reason_refuses() {
        let max = i64::MAX;
        // in use, email taken, payer taken, amounts of the entries, refusal (`None`: an error)
        let table = [
            (true, true, true, [max, 1], None),
            (false, true, true, [max, 1], Some(Created::EmailTaken)),
            (false, false, true, [max, 1], Some(Created::PayerTaken)),
            (false, false, false, [max, 1], Some(Created::OutOfRange)),
            (false, true, false, [2, 1], Some(Created::EmailTaken)),
            (false, false, true, [2, 1], Some(Created::PayerTaken)),
        ];
        for (id_or_key_in_use, email_taken, payer_taken, amounts, refusal) in table {
            let facts = CreateFacts { id_or_key_in_use, owner: OwnerFacts { email_taken, payer_taken } };
            let new = NewAccount { entries: amounts.map(entry).to_vec(), ..new_account() };
            assert_eq!(create_account(new, facts).ok(), refusal.map(Decided::Refused), "{facts:?}");
        }
    }

    #[test]
    fn an_account_that_waits_for_its_address_takes_it_from_nobody() {
        let owner = OwnerFacts { email_taken: true, payer_taken: false };
        let email_status = EmailStatus::Pending { free_credits: Credits::ZERO };
        let new = NewAccount { email_status, ..new_account() };
        let decided = create_account(new, CreateFacts { id_or_key_in_use: false, owner });
        assert!(matches!(decided, Ok(Decided::Accepted(_))), "{decided:?}");
    }

    #[test]
    fn an_account_starts_with_the_sum_of_its_entries() {
        let new = NewAccount { entries: [5, -2].map(entry).to_vec(), ..new_account() };
        let Ok(Decided::Accepted(changes)) = create_account(new.clone(), CreateFacts::default()) else {
            panic!("nothing refuses it")
        };
        assert_eq!((changes.account.totals.balance.atoms(), changes.account.totals.granted.atoms()), (3, 3));
        assert_eq!((changes.account.id, changes.account.revoked_at), (new.id, None));
        assert_eq!((changes.key, changes.entries), (new.key, new.entries));
    }
}
