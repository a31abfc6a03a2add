//! The recipients at which a store receives payments, and since when.
//!
//! Used transactions are recorded in one store, but a recipient's payments are public on the chain forever. A payment
//! mined before a store knew its recipient was made to another service or an earlier installation, and may have been
//! credited there. So each store records when each recipient was first configured, and credits no top-up that is older.

use crate::chains::address::Address;
use crate::chains::chain::Block;
use crate::clock::Timestamp;
use crate::payments::not_before::NotBefore;
use crate::payments::payment::{Payment, PaymentFault};
use crate::payments::quote::Quote;
use crate::store::SourceId;

impl NotBefore {
    /// The default for a recipient first known at `known`, less an allowance for clock differences between chains and
    /// servers.
    #[must_use]
    pub fn since(known: Timestamp) -> Self {
        Self::Time(known.saturating_sub(Quote::CLOCK_SKEW))
    }

    /// Refuses a payment from an earlier block or time.
    ///
    /// # Errors
    /// [`PaymentFault::PredatesService`].
    pub fn check(self, block_number: u64, mined_at: Timestamp) -> Result<(), PaymentFault> {
        let is_early = match self {
            Self::Block(first) => block_number < first,
            Self::Time(first) => mined_at < first,
        };
        if is_early { Err(PaymentFault::PredatesService { block_number, mined_at, not_before: self }) } else { Ok(()) }
    }

    /// Adds this check to a verdict. A payment that only lacks confirmations is refused immediately if it is too old;
    /// any other fault takes precedence.
    ///
    /// # Errors
    /// The verdict's error, or the error of [`NotBefore::check`].
    pub fn after(self, verdict: Result<Payment, PaymentFault>, block: &Block) -> Result<Payment, PaymentFault> {
        match verdict {
            Ok(_) | Err(PaymentFault::Unconfirmed(_)) => self.check(block.number, block.time).and(verdict),
            Err(_) => verdict,
        }
    }
}

/// A recipient at which a store receives payments, or once did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecipientRecord {
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The address that is paid; [`RecipientRecord::ANY`] represents the first one to be configured.
    pub recipient: Address,
    /// When this store first recorded it.
    pub since: Timestamp,
    /// The store that last received payments there. In a moved store, this may be the one it was moved from.
    pub store: SourceId,
    /// When it was last recorded that the recipient is configured.
    pub configured_at: Timestamp,
}

impl RecipientRecord {
    /// Placeholder for the recipient of a chain that was in use before recipients were recorded. The first recipients
    /// registered on the chain replace it and inherit its time.
    pub const ANY: Address = Address::ZERO;
}

/// The result of registering a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registration {
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The address that is paid.
    pub recipient: Address,
    /// When this store first recorded the recipient.
    pub since: Timestamp,
    /// Whether it was unknown before.
    pub is_new: bool,
    /// Another store that received payments there until now.
    pub other_store: Option<SourceId>,
    /// If the recipient is new: the one that it replaces, which is no longer configured.
    pub replaces: Option<Address>,
}

/// The changes to a store when recipients are registered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecipientChanges {
    /// One for each recipient, in the same order.
    pub registrations: Vec<Registration>,
    /// Rows to insert, or to replace rows with the same chain and recipient.
    pub written: Vec<RecipientRecord>,
    /// Chains whose row for [`RecipientRecord::ANY`] must be removed.
    pub used_up: Vec<u64>,
}

/// Registers the configured recipients, each given with its chain. `known` holds all rows of the store.
#[must_use]
pub fn register_recipients(
    known: &[RecipientRecord],
    configured: &[(u64, Address)],
    store: SourceId,
    now: Timestamp,
) -> RecipientChanges {
    let mut changes = RecipientChanges::default();
    for &(chain_id, recipient) in configured {
        let of_chain = || known.iter().filter(move |record| record.chain_id == chain_id);
        let found = of_chain().find(|record| record.recipient == recipient);
        let any = of_chain().find(|record| record.recipient == RecipientRecord::ANY);
        let since = found.or(any).map_or(now, |record| record.since);
        let gone = |record: &&RecipientRecord| {
            record.recipient != RecipientRecord::ANY && !configured.contains(&(chain_id, record.recipient))
        };
        let last_gone = of_chain().filter(gone).max_by_key(|record| record.configured_at);
        let source = found.or(any).map(|record| record.store);
        changes.registrations.push(Registration {
            chain_id,
            recipient,
            since,
            is_new: found.is_none(),
            other_store: source.filter(|known| *known != store),
            replaces: last_gone.filter(|_| found.is_none()).map(|record| record.recipient),
        });
        // Write nothing if nothing has changed since the last start.
        let is_current = found.is_some_and(|found| {
            found.store == store && last_gone.is_none_or(|gone| gone.configured_at < found.configured_at)
        });
        if !is_current {
            let record = RecipientRecord { chain_id, recipient, since, store, configured_at: now };
            changes.written.push(record);
        }
        if any.is_some() && !changes.used_up.contains(&chain_id) {
            changes.used_up.push(chain_id);
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::chains::chain::Depth;

    const OWN: SourceId = SourceId::from_bytes([1; 16]);
    const OTHER: SourceId = SourceId::from_bytes([2; 16]);
    const FIRST: Address = Address::from_bytes([0x11; 20]);
    const SECOND: Address = Address::from_bytes([0x22; 20]);
    const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

    fn later(seconds: u64) -> Timestamp {
        NOON.saturating_add(Duration::from_secs(seconds))
    }

    fn known(recipient: Address, since: Timestamp, store: SourceId) -> RecipientRecord {
        RecipientRecord { chain_id: 1, recipient, since, store, configured_at: since }
    }

    #[test]
    fn older_blocks_are_refused() {
        let millisecond = Duration::from_millis(1);
        // not before, block, mined at, accepted
        let table = [
            (NotBefore::Block(100), 99, later(9_999), false),
            (NotBefore::Block(100), 100, later(0), true),
            (NotBefore::Time(NOON), 1, NOON, true),
            (NotBefore::Time(NOON), 1_000, NOON.saturating_sub(millisecond), false),
            (NotBefore::since(NOON), 1, NOON.saturating_sub(Quote::CLOCK_SKEW), true),
            (NotBefore::since(NOON), 1, NOON.saturating_sub(Quote::CLOCK_SKEW + millisecond), false),
        ];
        for (not_before, block, mined_at, accepted) in table {
            assert_eq!(
                not_before.check(block, mined_at).is_ok(),
                accepted,
                "{not_before}, block {block} at {mined_at}"
            );
        }
    }

    #[test]
    fn old_payment_is_refused_at_once_after_other_faults() {
        let block = Block { number: 5, hash: [0; 32], time: NOON };
        let unconfirmed = || Err(PaymentFault::Unconfirmed(Depth { confirmations: 1, required: 2 }));
        let is_old = |verdict| matches!(verdict, Err(PaymentFault::PredatesService { .. }));
        assert!(is_old(NotBefore::Block(6).after(unconfirmed(), &block)));
        assert!(!is_old(NotBefore::Block(5).after(unconfirmed(), &block)));
        assert!(!is_old(NotBefore::Block(6).after(Err(PaymentFault::Reverted), &block)));
    }

    #[test]
    fn recipient_is_known_since_first_registration() {
        let first = register_recipients(&[], &[(1, FIRST)], OWN, NOON);
        let expected = RecipientRecord { configured_at: NOON, ..known(FIRST, NOON, OWN) };
        assert_eq!(first.written, [expected]);
        let registration = first.registrations[0];
        assert!(registration.is_new && registration.replaces.is_none() && registration.other_store.is_none());

        let again = register_recipients(&first.written, &[(1, FIRST)], OWN, later(60));
        assert_eq!((again.registrations[0].since, again.registrations[0].is_new), (NOON, false));
        assert_eq!(again.written, [], "nothing changed");
        let elsewhere = register_recipients(&first.written, &[(2, FIRST)], OWN, later(60));
        assert_eq!(elsewhere.registrations[0].since, later(60), "another chain");
    }

    #[test]
    fn recipient_change_is_reported_once_and_restarts_its_time() {
        let rows = [known(FIRST, NOON, OWN)];
        let changed = register_recipients(&rows, &[(1, SECOND)], OWN, later(60));
        assert_eq!((changed.registrations[0].since, changed.registrations[0].replaces), (later(60), Some(FIRST)));
        let rows = [rows[0], changed.written[0]];
        assert_eq!(register_recipients(&rows, &[(1, SECOND)], OWN, later(70)).written, []);
        // Back to the first, which this store has known longer.
        let back = register_recipients(&rows, &[(1, FIRST)], OWN, later(80));
        assert_eq!((back.registrations[0].since, back.registrations[0].is_new), (NOON, false));
        assert_eq!(back.written, [RecipientRecord { configured_at: later(80), ..rows[0] }]);
        // A plan's own recipient, in addition to the chain's, replaces nothing.
        let both = register_recipients(&rows[..1], &[(1, FIRST), (1, SECOND)], OWN, later(60));
        assert!(both.registrations.iter().all(|registration| registration.replaces.is_none()));
    }

    #[test]
    fn second_store_is_reported_once() {
        let rows = [known(FIRST, NOON, OTHER)];
        let moved = register_recipients(&rows, &[(1, FIRST)], OWN, later(60));
        assert_eq!(moved.registrations[0].other_store, Some(OTHER));
        assert_eq!(moved.registrations[0].since, NOON, "payments on their way are not lost");
        let again = register_recipients(&moved.written, &[(1, FIRST)], OWN, later(70));
        assert_eq!(again.registrations[0].other_store, None);
    }

    #[test]
    fn known_chain_passes_its_time_to_the_first_recipients() {
        let rows = [known(RecipientRecord::ANY, NOON, OWN), RecipientRecord { chain_id: 2, ..known(FIRST, NOON, OWN) }];
        let first = register_recipients(&rows, &[(1, FIRST), (1, SECOND), (2, SECOND)], OWN, later(60));
        let since: Vec<_> = first.registrations.iter().map(|registration| registration.since).collect();
        assert_eq!(since, [NOON, NOON, later(60)]);
        assert_eq!(first.used_up, [1]);
        let after = register_recipients(&first.written, &[(1, Address::from_bytes([0x33; 20]))], OWN, later(70));
        assert_eq!(after.registrations[0].since, later(70), "later recipients count from their registration");
    }
}
