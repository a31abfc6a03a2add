//! Payments that the watcher of this process saw arrive, and left for somebody to claim or assign.
//!
//! They are only in memory: the store keeps what was credited, and the chain has the rest. After a restart they are found
//! by reading the chain again.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::clock::Timestamp;
use crate::service::payments::arrivals::Arrival;

/// How many are remembered; of more, the newest.
const MOST: usize = 1_000;

/// A payment that nobody claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnclaimedPayment {
    /// The payment.
    pub arrival: Arrival,
    /// When the watcher left it.
    pub seen_at: Timestamp,
}

/// Those payments, oldest first.
#[derive(Debug, Default)]
pub(super) struct Unclaimed(Mutex<VecDeque<UnclaimedPayment>>);

impl Unclaimed {
    /// Remembers a payment. One that is known stays where it is: blocks may be scanned again.
    pub(super) fn add(&self, arrival: Arrival, seen_at: Timestamp) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.iter().any(|one| one.arrival.tx == arrival.tx && one.arrival.target == arrival.target) {
            return;
        }
        if known.len() == MOST {
            known.pop_front();
        }
        known.push_back(UnclaimedPayment { arrival, seen_at });
    }

    /// Those that are remembered.
    pub(super) fn all(&self) -> Vec<UnclaimedPayment> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Forgets a payment that an account has by now.
    pub(super) fn forget(&self, claimed: &UnclaimedPayment) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|one| one.arrival != claimed.arrival);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chains::address::Address;
    use crate::chains::chain::Block;
    use crate::chains::transaction::{TxHash, TxRef};
    use crate::payments::payment::{PaymentFault, PaymentTarget};

    fn arrival(number: u8) -> Arrival {
        let (token, recipient) = (Address::ZERO, Address::from_bytes([1; 20]));
        Arrival {
            tx: TxRef { chain_id: 1, hash: TxHash::from_bytes([number; 32]) },
            target: PaymentTarget { chain_id: 1, token, recipient },
            block: Block { number: 7, hash: [0; 32], time: Timestamp::from_unix_millis(0) },
            payment: Err(PaymentFault::Reverted),
        }
    }

    #[test]
    fn a_payment_is_remembered_once_until_it_is_claimed() {
        let (unclaimed, at) = (Unclaimed::default(), Timestamp::from_unix_millis);
        for (number, seen_at) in [(1, 1), (2, 2), (1, 3)] {
            unclaimed.add(arrival(number), at(seen_at));
        }
        let seen = |list: &[UnclaimedPayment]| list.iter().map(|one| one.seen_at.unix_millis()).collect::<Vec<_>>();
        let all = unclaimed.all();
        assert_eq!(seen(&all), [1, 2]);
        unclaimed.forget(&all[0]);
        assert_eq!(seen(&unclaimed.all()), [2]);
    }
}
