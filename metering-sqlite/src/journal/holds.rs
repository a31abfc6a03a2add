//! The holds in a row of the journal: how they change their account's totals and rate-limit windows.

use metering_core::charging::HoldChange;
use serde::{Deserialize, Serialize};

use crate::error::{Result, corrupt};

/// The changes that the holds of a commit make to their account. A hold that was opened and settled counts as both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Holds {
    /// How many were opened. They count towards the rate limits, and are not usage yet.
    pub(crate) opened: u32,
    /// How many were settled. They are calls of the same row's usage, and counted for the rate limits when they were
    /// opened.
    pub(crate) settled: u32,
    /// The change of the held amount, in atoms.
    pub(crate) atoms: i64,
}

impl Holds {
    /// Adds a hold that was opened, settled or renewed.
    pub(crate) fn add<L>(&mut self, change: &HoldChange<i64, L>) -> Result<()> {
        // A settled hold never changes, so one that is settled now was open before.
        let (opened, settled) = (change.is_new, change.hold.settled.is_some());
        let amount = change.hold.amount.atoms();
        let atoms = match (opened, settled) {
            (true, false) => self.atoms.checked_add(amount),
            (false, true) => self.atoms.checked_sub(amount),
            _ => Some(self.atoms),
        };
        let count = |number: u32, more| number.checked_add(u32::from(more));
        let after = || {
            Some(Self { opened: count(self.opened, opened)?, settled: count(self.settled, settled)?, atoms: atoms? })
        };
        *self = after().ok_or_else(|| corrupt(format_args!("hold {} is too large for the journal", change.hold.id)))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use metering_core::access::KeyNumber;
    use metering_core::charging::{Hold, HoldId, SettleReason, SettledHold};
    use metering_core::{ClientSource, Credits, Timestamp, UsageLine};

    use super::*;

    const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

    #[test]
    fn holds_add_up_what_they_change() {
        let hold = |amount: i64, settled: bool| {
            let credits = Credits::from_atoms(amount);
            let settled = settled.then_some(SettledHold { captured: credits, reason: SettleReason::Report, at: NOON });
            Hold {
                id: HoldId::from_bytes([1; 16]),
                account: "org_xxxxxxxxxxxxxxxxxxxx".parse().unwrap(),
                key: KeyNumber::FIRST,
                amount: credits,
                fallback: credits,
                line: UsageLine {
                    route_template: "/a".into(),
                    http_method: "GET".into(),
                    source: ClientSource::Direct,
                },
                request_path: "/a".into(),
                created_at: NOON,
                expires_at: NOON,
                settled,
                tokens: None,
                upstream: None,
            }
        };
        let change = |is_new, hold| HoldChange { account: 1, line: 1, is_new, hold };
        let mut holds = Holds::default();
        for (is_new, amount, settled) in [(true, 10, false), (false, 7, true), (true, 5, true), (false, 3, false)] {
            holds.add(&change(is_new, hold(amount, settled))).unwrap();
        }
        assert_eq!(holds, Holds { opened: 2, settled: 2, atoms: 3 }, "a renewed lease changes nothing");
        holds.atoms = i64::MAX;
        holds.add(&change(true, hold(i64::MAX, true))).unwrap();
        assert_eq!(holds.atoms, i64::MAX, "it was opened and settled");
        assert!(holds.add(&change(true, hold(1, false))).is_err());
    }
}
