//! Authorizations in the model. Their state is derived from their payments.

use metering_core::chains::{Address, TxRef};
use metering_core::clock::Timestamp;
use metering_core::offers::{
    AuthorizationId, AuthorizationRecord, AuthorizationState, GasPlace, SettlementFailure, Submission,
};
use metering_core::payments::PaymentSettlement;
use metering_core::store::{
    AuthorizationCredited, AuthorizationOpened, NewAuthorization, PaymentCredit, PaymentCredited,
};

use super::Model;
use super::recorded::{Accepted, Place};

impl Model {
    fn record_of(&self, accepted: &Accepted) -> AuthorizationRecord {
        let stands = |tx: TxRef| {
            let mut records = self.records().into_iter();
            let paid = records.find(|record| record.payment.tx == tx).expect("its payment was credited");
            !matches!(paid.settlement, PaymentSettlement::Reversed { .. })
        };
        let state = match accepted.failed {
            _ if accepted.tx.is_some_and(stands) => AuthorizationState::Credited,
            Some((failure, at)) => AuthorizationState::Failed { failure, at },
            None => AuthorizationState::Pending,
        };
        let NewAuthorization { signed, account, credits, request, identifier, received_at, usage: _ } =
            accepted.new.clone();
        // The operations of the model authorize fixed amounts.
        let usage = None;
        let (tx, gas, submissions) = (accepted.tx, accepted.gas, accepted.submissions.clone());
        AuthorizationRecord {
            signed,
            account,
            credits,
            request,
            identifier,
            received_at,
            state,
            tx,
            gas,
            submissions,
            usage,
        }
    }

    pub(crate) fn authorization(&self, id: &AuthorizationId) -> Option<AuthorizationRecord> {
        let accepted = self.authorizations.iter().find(|accepted| accepted.new.signed.id() == *id)?;
        Some(self.record_of(accepted))
    }

    /// The number of a pending authorization.
    fn pending(&self, id: &AuthorizationId) -> Option<usize> {
        let number = self.authorizations.iter().position(|accepted| accepted.new.signed.id() == *id)?;
        let is_pending = self.record_of(&self.authorizations[number]).state == AuthorizationState::Pending;
        is_pending.then_some(number)
    }

    pub(crate) fn open_authorization(
        &mut self,
        new: NewAuthorization,
        claimed_until: Timestamp,
    ) -> AuthorizationOpened {
        let id = new.signed.id();
        if let Some(known) = self.authorization(&id) {
            return AuthorizationOpened::Known(known);
        }
        let names = |new: &NewAuthorization| new.identifier.map(|identifier| (new.signed.id().payer, identifier));
        if names(&new).is_some() && self.authorizations.iter().any(|accepted| names(&accepted.new) == names(&new)) {
            return AuthorizationOpened::IdentifierUsed;
        }
        if !self.owners.iter().any(|owner| owner.is_live() && owner.made.id == new.account) {
            return AuthorizationOpened::NoSuchAccount;
        }
        let (failed, tx, gas, submissions) = (None, None, None, Vec::new());
        self.authorizations.push(Accepted { new, claimed_until, failed, tx, gas, submissions });
        AuthorizationOpened::Opened(self.authorization(&id).expect("it was stored"))
    }

    /// Claims all that are free, in no particular order.
    pub(crate) fn claim_authorizations(&mut self, now: Timestamp, until: Timestamp) -> Vec<AuthorizationRecord> {
        let records: Vec<_> = self.authorizations.iter().map(|accepted| self.record_of(accepted)).collect();
        let mut claimed = Vec::new();
        for (accepted, record) in self.authorizations.iter_mut().zip(records) {
            if record.state == AuthorizationState::Pending && accepted.claimed_until <= now {
                accepted.claimed_until = until;
                claimed.push(record);
            }
        }
        claimed
    }

    pub(crate) fn extend_claim(&mut self, id: &AuthorizationId, until: Timestamp) {
        if let Some(number) = self.pending(id) {
            self.authorizations[number].claimed_until = until;
        }
    }

    pub(crate) fn assign_gas_place(&mut self, id: &AuthorizationId, wallet: Address, lowest: u64) -> Option<u64> {
        let number = self.pending(id)?;
        match self.authorizations[number].gas {
            Some(kept) if kept.wallet == wallet && kept.nonce >= lowest => return Some(kept.nonce),
            Some(left) if left.wallet != wallet => self.free_place(number),
            _ => {}
        }
        let of_wallet = |place: &&mut Place| place.chain_id == id.chain_id && place.place.wallet == wallet;
        let of_wallet = self.places.iter_mut().filter(of_wallet);
        let (mut next, mut freed) = (lowest, None::<&mut Place>);
        for place in of_wallet {
            let nonce = place.place.nonce;
            next = next.max(nonce + 1);
            if place.free && nonce >= lowest && freed.as_ref().is_none_or(|freed| nonce < freed.place.nonce) {
                freed = Some(place);
            }
        }
        let place = match freed {
            Some(freed) => {
                freed.free = false;
                freed.place
            }
            None => {
                let place = GasPlace { wallet, nonce: next };
                self.places.push(Place { chain_id: id.chain_id, place, free: false });
                place
            }
        };
        self.authorizations[number].gas = Some(place);
        Some(place.nonce)
    }

    /// Gives back the place of an authorization, unless it has transactions.
    fn free_place(&mut self, number: usize) {
        let accepted = &mut self.authorizations[number];
        if !accepted.submissions.is_empty() {
            return;
        }
        let (chain_id, Some(left)) = (accepted.new.signed.chain_id, accepted.gas.take()) else { return };
        for place in &mut self.places {
            place.free |= (place.chain_id, place.place) == (chain_id, left);
        }
    }

    pub(crate) fn add_submission(&mut self, id: &AuthorizationId, submission: Submission) -> bool {
        let Some(number) = self.pending(id) else { return false };
        let accepted = &mut self.authorizations[number];
        if accepted.gas.is_some() && !accepted.submissions.iter().any(|stored| stored.hash == submission.hash) {
            accepted.submissions.push(submission);
        }
        accepted.gas.is_some()
    }

    pub(crate) fn credit_authorization(
        &mut self,
        id: &AuthorizationId,
        credit: &PaymentCredit,
    ) -> AuthorizationCredited {
        let known = self.authorization(id).filter(|record| record.account == credit.account);
        let Some(record) = known else { return AuthorizationCredited::NoSuchAccount };
        let Some(number) = self.pending(id) else { return AuthorizationCredited::NotPending(record) };
        match self.credit(credit) {
            PaymentCredited::Account(account) => {
                self.authorizations[number].tx = Some(credit.payment.tx);
                AuthorizationCredited::Account(account)
            }
            PaymentCredited::NoSuchAccount => AuthorizationCredited::NoSuchAccount,
            PaymentCredited::OutOfRange => AuthorizationCredited::OutOfRange,
            PaymentCredited::Repeated(..) | PaymentCredited::TxUsed | PaymentCredited::BelongsToQuote => {
                AuthorizationCredited::TxUsed
            }
        }
    }

    pub(crate) fn fail_authorization(
        &mut self,
        id: &AuthorizationId,
        failure: SettlementFailure,
        now: Timestamp,
    ) -> bool {
        let Some(number) = self.pending(id) else { return false };
        self.free_place(number);
        self.authorizations[number].failed = Some((failure, now));
        true
    }

    /// An authorization that a restored transaction executed has not failed.
    pub(super) fn forget_failure(&mut self, tx: TxRef) {
        for accepted in self.authorizations.iter_mut().filter(|accepted| accepted.tx == Some(tx)) {
            accepted.failed = None;
        }
    }
}
