//! The authorizations of a memory store.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::chains::address::Address;
use crate::chains::transaction::TxRef;
use crate::clock::Timestamp;
use crate::decision;
use crate::offers::{
    AuthorizationId, AuthorizationRecord, AuthorizationState, GasPlace, IdentifierHash, SettlementFailure, Submission,
};
use crate::payments::payment::SettlementStep;

/// The authorizations of a store.
#[derive(Debug, Default)]
pub(super) struct Authorizations {
    pub(super) records: BTreeMap<AuthorizationId, Claimed>,
    /// By chain and wallet.
    places: BTreeMap<(u64, Address), Places>,
}

/// An authorization, and until when it is claimed.
#[derive(Debug, Clone)]
pub(super) struct Claimed {
    pub(super) record: AuthorizationRecord,
    pub(super) until: Timestamp,
}

/// The places of a wallet's transactions.
#[derive(Debug, Default)]
struct Places {
    next: u64,
    given_back: BTreeSet<u64>,
}

impl Authorizations {
    pub(super) fn record(&self, id: &AuthorizationId) -> Option<&AuthorizationRecord> {
        self.records.get(id).map(|claimed| &claimed.record)
    }

    pub(super) fn by_identifier(&self, payer: &Address, identifier: &IdentifierHash) -> Option<&AuthorizationRecord> {
        let mut records = self.records.values().map(|claimed| &claimed.record);
        records.find(|record| record.signed.authorization.from == *payer && record.identifier == Some(*identifier))
    }

    pub(super) fn executed_in(&self, tx: TxRef) -> Option<&AuthorizationRecord> {
        self.records.values().map(|claimed| &claimed.record).find(|record| record.tx == Some(tx))
    }

    fn pending(&mut self, id: &AuthorizationId) -> Option<&mut AuthorizationRecord> {
        let record = self.records.get_mut(id).map(|claimed| &mut claimed.record)?;
        (record.state == AuthorizationState::Pending).then_some(record)
    }

    pub(super) fn insert(&mut self, record: AuthorizationRecord, until: Timestamp) {
        self.records.insert(record.signed.id(), Claimed { record, until });
    }

    pub(super) fn claim(&mut self, now: Timestamp, lease: Duration, limit: u32) -> Vec<AuthorizationRecord> {
        let mut free: Vec<_> = self
            .records
            .iter()
            .filter(|(_, claimed)| claimed.record.state == AuthorizationState::Pending && claimed.until <= now)
            .map(|(id, claimed)| (claimed.until, *id))
            .collect();
        free.sort_unstable();
        free.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let mut claim = |id| {
            let claimed = self.records.get_mut(&id)?;
            claimed.until = now.saturating_add(lease);
            Some(claimed.record.clone())
        };
        free.into_iter().filter_map(|(_, id)| claim(id)).collect()
    }

    pub(super) fn extend_claim(&mut self, id: &AuthorizationId, until: Timestamp) {
        if let Some(claimed) = self.records.get_mut(id)
            && claimed.record.state == AuthorizationState::Pending
        {
            claimed.until = until;
        }
    }

    pub(super) fn assign_place(&mut self, id: &AuthorizationId, wallet: Address, lowest: u64) -> Option<u64> {
        let record = self.pending(id)?;
        if decision::keeps_gas_place(record, GasPlace { wallet, nonce: lowest }) {
            return record.gas.map(|place| place.nonce);
        }
        let left = decision::gives_back_gas_place(record, Some(wallet));
        self.give_back(id.chain_id, left);
        let places = self.places.entry((id.chain_id, wallet)).or_default();
        let nonce = match places.given_back.range(lowest..).next().copied() {
            Some(nonce) => {
                places.given_back.remove(&nonce);
                nonce
            }
            None => {
                let nonce = places.next.max(lowest);
                places.next = nonce.saturating_add(1);
                nonce
            }
        };
        self.pending(id)?.gas = Some(GasPlace { wallet, nonce });
        Some(nonce)
    }

    pub(super) fn add_submission(&mut self, id: &AuthorizationId, submission: Submission) -> bool {
        let Some(record) = self.pending(id).filter(|record| record.gas.is_some()) else { return false };
        if record.submissions.iter().all(|stored| stored.hash != submission.hash) {
            record.submissions.push(submission);
        }
        true
    }

    pub(super) fn credited(&mut self, id: &AuthorizationId, tx: TxRef) {
        if let Some(record) = self.pending(id) {
            (record.state, record.tx) = (AuthorizationState::Credited, Some(tx));
        }
    }

    pub(super) fn fail(&mut self, id: &AuthorizationId, failure: SettlementFailure, now: Timestamp) -> bool {
        let Some(record) = self.pending(id) else { return false };
        record.state = AuthorizationState::Failed { failure, at: now };
        let left = decision::gives_back_gas_place(record, None);
        if left.is_some() {
            record.gas = None;
        }
        self.give_back(id.chain_id, left);
        true
    }

    pub(super) fn reopen(&mut self, id: &AuthorizationId, until: Timestamp) -> Option<AuthorizationRecord> {
        let claimed = self.records.get_mut(id)?;
        if !matches!(claimed.record.state, AuthorizationState::Failed { .. }) {
            return None;
        }
        (claimed.record.state, claimed.until) = (AuthorizationState::Pending, until);
        Some(claimed.record.clone())
    }

    fn give_back(&mut self, chain_id: u64, place: Option<GasPlace>) {
        if let Some(GasPlace { wallet, nonce }) = place {
            self.places.entry((chain_id, wallet)).or_default().given_back.insert(nonce);
        }
    }

    /// The payment of `tx` took a step.
    pub(super) fn payment_took(&mut self, tx: TxRef, step: &SettlementStep) {
        let credited = self.records.values_mut().filter(|claimed| claimed.record.tx == Some(tx));
        for Claimed { record, .. } in credited {
            if let Some(state) = decision::authorization_after(record.state, step) {
                record.state = state;
            }
        }
    }
}
