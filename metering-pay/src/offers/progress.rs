//! The next step with an accepted authorization: a pure function of the chain's evidence.

use std::time::Duration;

use metering_core::clock::Timestamp;
use metering_core::offers::{AuthorizationRecord, SettlementFailure};
use metering_core::payments::Payment;

/// How long after its expiry an authorization counts as expired: clocks and blocks differ by less.
const EXPIRY_GRACE: Duration = Duration::from_secs(5 * 60);
/// How long to look for the transaction that used an authorization before it counts as cancelled: sources may lag.
const CANCEL_GRACE: Duration = Duration::from_secs(5 * 60);
/// How long a place may be used by a transaction that no source shows: sources may lag.
const UNSEEN_GRACE: Duration = Duration::from_secs(60);
/// The most transactions to sign for an authorization.
const MAX_SUBMISSIONS: usize = 12;

/// The chain's evidence of an authorization.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observation {
    /// The payment that executed it, and its confirmations.
    pub executed: Option<(Payment, u64)>,
    /// Whether the contract reports that it was executed or cancelled.
    pub is_used: bool,
    /// Whether a transaction with its place is in the chain.
    pub is_place_used: bool,
    /// The result of one of its transactions that was mined without executing it.
    pub own: Option<OwnTransaction>,
}

/// The effect of a transaction that should execute an authorization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnTransaction {
    /// It used up its place.
    DidNothing,
    /// It reverted, at the cost of the wallet that pays the gas. Its confirmations.
    Reverted(u64),
}

/// When a payment counts as confirmed, and when its transaction is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettlementPolicy {
    /// How many confirmations a payment needs; its own block counts.
    pub confirmations: u64,
    /// After how long a transaction that is in no block is replaced by one with higher fees.
    pub replace_after: Duration,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// Credit this payment.
    Credit(Box<Payment>),
    /// Look again later.
    Wait,
    /// Have it executed: sign and send a transaction, or one with higher fees than those before.
    Execute,
    /// Use up its place with a transaction that does nothing, because those after it wait for this place.
    FreePlace,
    /// Give up: it can no longer be executed, and no transaction of ours is open.
    Fail(SettlementFailure),
}

/// Decides the next step with a pending authorization.
#[must_use]
pub fn next_step(
    record: &AuthorizationRecord,
    seen: &Observation,
    policy: SettlementPolicy,
    now: Timestamp,
) -> NextStep {
    if let Some((payment, confirmations)) = &seen.executed {
        return match *confirmations >= policy.confirmations {
            true => NextStep::Credit(Box::new(payment.clone())),
            false => NextStep::Wait,
        };
    }
    let has_open_place = record.has_open_place(seen.is_place_used);
    let newest = record.submissions.last().map(|newest| newest.signed_at);
    let is_stuck = newest.is_some_and(|at| now >= at.saturating_add(policy.replace_after));
    if let Some(failure) = over(record, seen, policy, now) {
        return match has_open_place {
            false => NextStep::Fail(failure),
            true if is_stuck => NextStep::FreePlace,
            true => NextStep::Wait,
        };
    }
    if seen.is_used || matches!(seen.own, Some(OwnTransaction::Reverted(_))) {
        return NextStep::Wait;
    }
    let is_unseen = |at: Timestamp| seen.own.is_none() && now < at.saturating_add(UNSEEN_GRACE);
    match newest {
        Some(_) if has_open_place && !is_stuck => NextStep::Wait,
        // Its transaction may have reverted, and another one would too.
        Some(at) if !has_open_place && is_unseen(at) => NextStep::Wait,
        Some(_) if record.submissions.len() < MAX_SUBMISSIONS => NextStep::Execute,
        // It may expire in years, and transactions with later nonces must not wait for it.
        Some(_) if has_open_place => NextStep::FreePlace,
        Some(_) => NextStep::Fail(SettlementFailure::Refused),
        None => NextStep::Execute,
    }
}

/// Why it can no longer be executed.
fn over(
    record: &AuthorizationRecord,
    seen: &Observation,
    policy: SettlementPolicy,
    now: Timestamp,
) -> Option<SettlementFailure> {
    if seen.is_used {
        // The transaction in its place may have executed it, and be shown late. One for usage may be old by then, and is not
        // searched for.
        let own = record.submissions.last().filter(|_| record.usage.is_some() && seen.is_place_used);
        let since = own.map_or(record.received_at, |newest| newest.signed_at.max(record.received_at));
        return (now >= since.saturating_add(CANCEL_GRACE)).then_some(SettlementFailure::Cancelled);
    }
    // Do not try again: a payer can make it revert every time, at the cost of the gas wallet.
    if matches!(seen.own, Some(OwnTransaction::Reverted(confirmations)) if confirmations >= policy.confirmations) {
        return Some(SettlementFailure::Refused);
    }
    let seconds = i64::try_from(record.signed.authorization.valid_before).unwrap_or(i64::MAX);
    let expiry = Timestamp::from_unix_millis(seconds.saturating_mul(1_000)).saturating_add(EXPIRY_GRACE);
    (now >= expiry).then_some(SettlementFailure::Expired)
}

#[cfg(test)]
mod tests {
    use metering_core::chains::Address;
    use metering_core::chains::TokenUnits;
    use metering_core::chains::WalletSignature;
    use metering_core::chains::{TxHash, TxRef};
    use metering_core::charging::HoldId;
    use metering_core::money::Credits;

    use super::*;
    use crate::offers::{
        Authorization, AuthorizationNonce, AuthorizationState, AuthorizedUsage, GasPlace, SignedAuthorization,
        Submission,
    };

    const POLICY: SettlementPolicy = SettlementPolicy { confirmations: 2, replace_after: Duration::from_secs(30) };
    const EXPIRY: i64 = 1_000;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_millis(seconds * 1_000)
    }

    fn record(signed_at: &[i64]) -> AuthorizationRecord {
        let (from, to) = (Address::from_bytes([1; 20]), Address::from_bytes([2; 20]));
        let (value, nonce) = (TokenUnits::new(5), AuthorizationNonce::from_bytes([3; 32]));
        let valid_before = EXPIRY.unsigned_abs();
        let authorization = Authorization { from, to, value, valid_after: 0, valid_before, nonce };
        let signature = WalletSignature::parse("0xab").unwrap();
        let submission = |at_seconds: &i64| Submission {
            hash: TxHash::from_bytes([7; 32]),
            raw: Vec::new(),
            signed_at: at(*at_seconds),
        };
        AuthorizationRecord {
            signed: SignedAuthorization { chain_id: 1, token: to, authorization, signature },
            account: "org_xxxxxxxxxxxxxxxxxxxx".parse().unwrap(),
            credits: Credits::from_atoms(5),
            request: None,
            identifier: None,
            received_at: at(100),
            state: AuthorizationState::Pending,
            tx: None,
            gas: (!signed_at.is_empty()).then_some(GasPlace { wallet: from, nonce: 0 }),
            submissions: signed_at.iter().map(submission).collect(),
            usage: None,
        }
    }

    fn payment() -> Payment {
        let address = Address::from_bytes([1; 20]);
        Payment {
            tx: TxRef { chain_id: 1, hash: TxHash::from_bytes([7; 32]) },
            payer: address,
            recipient: address,
            token: address,
            amount: TokenUnits::new(5),
            block_number: 1,
            block_hash: None,
            mined_at: at(0),
        }
    }

    fn next(signed_at: &[i64], seen: &Observation, now: i64) -> NextStep {
        next_step(&record(signed_at), seen, POLICY, at(now))
    }

    const UNUSED: Observation = Observation { executed: None, is_used: false, is_place_used: false, own: None };

    #[test]
    fn an_executed_one_is_credited_once_it_is_confirmed() {
        for (confirmations, now) in [(0, 100), (1, 100), (1, 99_999)] {
            let seen = Observation {
                executed: Some((payment(), confirmations)),
                is_used: true,
                is_place_used: true,
                own: None,
            };
            assert_eq!(next(&[100], &seen, now), NextStep::Wait, "{confirmations}");
        }
        let seen = Observation { executed: Some((payment(), 2)), ..UNUSED };
        for now in [100, 99_999] {
            assert_eq!(next(&[], &seen, now), NextStep::Credit(Box::new(payment())), "even after its expiry");
        }
    }

    #[test]
    fn an_unused_one_is_executed_and_replaced_when_it_is_stuck() {
        assert_eq!(next(&[], &UNUSED, 100), NextStep::Execute);
        assert_eq!(next(&[100], &UNUSED, 129), NextStep::Wait);
        assert_eq!(next(&[100], &UNUSED, 130), NextStep::Execute);
        assert_eq!(next(&[100, 130], &UNUSED, 159), NextStep::Wait);
        let passed = Observation { is_place_used: true, own: Some(OwnTransaction::DidNothing), ..UNUSED };
        assert_eq!(next(&[100], &passed, 101), NextStep::Execute, "its place was used up: it gets another one");
        assert_eq!(next(&[100; MAX_SUBMISSIONS - 1], &UNUSED, 130), NextStep::Execute);
        assert_eq!(next(&[100; MAX_SUBMISSIONS], &UNUSED, 129), NextStep::Wait);
        assert_eq!(next(&[100; MAX_SUBMISSIONS], &UNUSED, 130), NextStep::FreePlace, "enough was tried");
        let refused = NextStep::Fail(SettlementFailure::Refused);
        assert_eq!(next(&[100; MAX_SUBMISSIONS], &passed, 130), refused);
    }

    #[test]
    fn it_fails_at_its_first_revert() {
        let reverted = |confirmations| Observation {
            own: Some(OwnTransaction::Reverted(confirmations)),
            is_place_used: true,
            ..UNUSED
        };
        assert_eq!(next(&[100], &reverted(1), 101), NextStep::Wait, "its block may be replaced");
        assert_eq!(next(&[100], &reverted(1), 200), NextStep::Wait);
        assert_eq!(next(&[100], &reverted(2), 101), NextStep::Fail(SettlementFailure::Refused));
        // Another party executed it first: search for that transaction.
        let used = Observation { is_used: true, ..reverted(9) };
        assert_eq!(next(&[100], &used, 101), NextStep::Wait);
        // Another transaction for it is pending, from before a restart.
        let open = Observation { is_place_used: false, ..reverted(2) };
        assert_eq!(next(&[100, 110], &open, 111), NextStep::Wait);
        assert_eq!(next(&[100, 110], &open, 140), NextStep::FreePlace);
    }

    #[test]
    fn a_place_that_was_used_by_nothing_known_is_looked_at_again_first() {
        let unseen = Observation { is_place_used: true, ..UNUSED };
        assert_eq!(next(&[100], &unseen, 159), NextStep::Wait, "its transaction may have reverted");
        assert_eq!(next(&[100], &unseen, 160), NextStep::Execute);
    }

    #[test]
    fn an_expired_one_fails_once_its_place_is_used() {
        let late = EXPIRY + 300;
        assert_eq!(next(&[], &UNUSED, late - 1), NextStep::Execute, "the contract decides until then");
        assert_eq!(next(&[], &UNUSED, late), NextStep::Fail(SettlementFailure::Expired));
        assert_eq!(next(&[late - 1], &UNUSED, late), NextStep::Wait);
        assert_eq!(next(&[100], &UNUSED, late), NextStep::FreePlace);
        let passed = Observation { is_place_used: true, ..UNUSED };
        assert_eq!(next(&[100], &passed, late), NextStep::Fail(SettlementFailure::Expired));
    }

    #[test]
    fn a_used_one_is_looked_for_before_it_counts_as_cancelled() {
        let used = Observation { is_used: true, ..UNUSED };
        assert_eq!(next(&[], &used, 399), NextStep::Wait);
        assert_eq!(next(&[], &used, 400), NextStep::Fail(SettlementFailure::Cancelled));
        assert_eq!(next(&[390], &used, 400), NextStep::Wait);
        assert_eq!(next(&[100], &used, 400), NextStep::FreePlace);
    }

    #[test]
    fn an_old_one_for_usage_whose_transaction_is_shown_late_is_not_cancelled() {
        let usage = AuthorizedUsage { hold: HoldId::from_bytes([4; 16]), used: Some(Credits::from_atoms(5)) };
        let record = AuthorizationRecord { usage: Some(usage), ..record(&[600]) };
        let mined = Observation { is_used: true, is_place_used: true, ..UNUSED };
        let next = |now| next_step(&record, &mined, POLICY, at(now));
        assert_eq!((next(601), next(899)), (NextStep::Wait, NextStep::Wait));
        assert_eq!(next(900), NextStep::Fail(SettlementFailure::Cancelled));
    }
}
