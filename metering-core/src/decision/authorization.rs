//! Stores and credits authorizations.

use super::credit::{CreditChanges, CreditFacts, credit_payment};
use super::{Decided, active};
use crate::access::account::Account;
use crate::chains::address::Address;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::offers::{AuthorizationRecord, AuthorizationState, AuthorizedUsage, GasPlace, SettlementFailure};
use crate::payments::payment::SettlementStep;
use crate::store::{AuthorizationCredited, AuthorizationOpened, NewAuthorization, PaymentCredit, PaymentCredited};

/// Decides [`AuthorizationStore::open_authorization`](crate::store::AuthorizationStore::open_authorization).
///
/// Refused, in this order: [`AuthorizationOpened::Known`] when there is a record;
/// [`AuthorizationOpened::IdentifierUsed`] when another authorization of the payer has its id;
/// [`AuthorizationOpened::NoSuchAccount`], also for a revoked account. Accepted is the account's row with the record to
/// insert.
pub fn open_authorization<K>(
    new: NewAuthorization,
    known: Option<AuthorizationRecord>,
    has_same_identifier: bool,
    account: Option<(K, Account)>,
) -> Decided<(K, AuthorizationRecord), AuthorizationOpened> {
    if let Some(record) = known {
        return Decided::Refused(AuthorizationOpened::Known(record));
    }
    if has_same_identifier {
        return Decided::Refused(AuthorizationOpened::IdentifierUsed);
    }
    let Some((row, _)) = active(account) else { return Decided::Refused(AuthorizationOpened::NoSuchAccount) };
    let NewAuthorization { signed, account, credits, request, identifier, received_at, usage } = new;
    let usage = usage.map(|hold| AuthorizedUsage { hold, used: None });
    let record = AuthorizationRecord {
        signed,
        account,
        credits,
        request,
        identifier,
        received_at,
        state: AuthorizationState::Pending,
        tx: None,
        gas: None,
        submissions: Vec::new(),
        usage,
    };
    Decided::Accepted((row, record))
}

/// Decides [`AuthorizationStore::use_authorization`](crate::store::AuthorizationStore::use_authorization): the record
/// with the amount that its request used, at most what it authorizes. If that is nothing, it is not executed, and
/// expires unused. `None` when it is not pending, does not pay for usage, or has that already.
#[must_use]
pub fn use_authorization(record: AuthorizationRecord, used: Credits, now: Timestamp) -> Option<AuthorizationRecord> {
    let usage = record.usage.filter(|usage| usage.used.is_none() && record.state == AuthorizationState::Pending)?;
    let used = used.max(Credits::ZERO).min(record.credits);
    let state = match used.is_positive() {
        true => AuthorizationState::Pending,
        false => AuthorizationState::Failed { failure: SettlementFailure::Expired, at: now },
    };
    Some(AuthorizationRecord { state, usage: Some(AuthorizedUsage { used: Some(used), ..usage }), ..record })
}

/// Decides [`AuthorizationStore::credit_authorization`](crate::store::AuthorizationStore::credit_authorization).
///
/// Refused, in this order: [`AuthorizationCredited::NoSuchAccount`] without a record, or when the record names another
/// account; [`AuthorizationCredited::NotPending`]; the refusals of [`credit_payment`]. When accepted, the authorization
/// becomes [`AuthorizationState::Credited`] with the payment's transaction.
pub fn credit_authorization<K>(
    credit: PaymentCredit,
    record: Option<AuthorizationRecord>,
    facts: CreditFacts<K>,
) -> Decided<CreditChanges<K>, AuthorizationCredited> {
    let Some(record) = record.filter(|record| record.account == credit.account) else {
        return Decided::Refused(AuthorizationCredited::NoSuchAccount);
    };
    if record.state != AuthorizationState::Pending {
        return Decided::Refused(AuthorizationCredited::NotPending(record));
    }
    match credit_payment(credit, facts) {
        Decided::Accepted(changes) => Decided::Accepted(changes),
        Decided::Refused(refusal) => Decided::Refused(match refusal {
            PaymentCredited::NoSuchAccount => AuthorizationCredited::NoSuchAccount,
            PaymentCredited::OutOfRange => AuthorizationCredited::OutOfRange,
            PaymentCredited::Account(account) => AuthorizationCredited::Account(account),
            PaymentCredited::Repeated(..) | PaymentCredited::TxUsed | PaymentCredited::BelongsToQuote => {
                AuthorizationCredited::TxUsed
            }
        }),
    }
}

/// The new state of an authorization in this state, whose payment took a step; `None` when it does not change. Its
/// payment has the transaction that it was credited for.
#[must_use]
pub const fn authorization_after(state: AuthorizationState, step: &SettlementStep) -> Option<AuthorizationState> {
    match (step, state) {
        (SettlementStep::Reverse, AuthorizationState::Credited) => Some(AuthorizationState::Pending),
        (SettlementStep::Restore(_), AuthorizationState::Pending | AuthorizationState::Failed { .. }) => {
            Some(AuthorizationState::Credited)
        }
        _ => None,
    }
}

/// Whether an authorization keeps its place
/// ([`AuthorizationStore::assign_gas_place`](crate::store::AuthorizationStore::assign_gas_place)).
///
/// If it does not, [`gives_back_gas_place`] decides whether to release the place.
#[must_use]
pub fn keeps_gas_place(record: &AuthorizationRecord, lowest: GasPlace) -> bool {
    record.gas.is_some_and(|place| place.wallet == lowest.wallet && place.nonce >= lowest.nonce)
}

/// The place that an authorization releases when it fails, or when it gets a place in the wallet `next`. `None` when it
/// has no place, when a transaction was signed for it, or when `next` is the same wallet: then the chain has passed the
/// place.
#[must_use]
pub fn gives_back_gas_place(record: &AuthorizationRecord, next: Option<Address>) -> Option<GasPlace> {
    record.gas.filter(|place| record.submissions.is_empty() && next != Some(place.wallet))
}

#[cfg(test)]
mod tests {
    use super::super::scene::{NOW, account, payment, purchase, record as payment_record, revoked, tx};
    use super::*;
    use crate::chains::chain::Block;
    use crate::chains::signature::WalletSignature;
    use crate::chains::transaction::TxHash;
    use crate::chains::units::TokenUnits;
    use crate::charging::hold::HoldId;
    use crate::offers::{Authorization, AuthorizationNonce, SignedAuthorization, Submission};
    use crate::payments::payment::PaymentUse;
    use crate::store::QuotePrecedence;

    const WALLET: Address = Address::from_bytes([8; 20]);

    fn new() -> NewAuthorization {
        let (from, to) = (Address::from_bytes([1; 20]), Address::from_bytes([2; 20]));
        let (value, nonce) = (TokenUnits::new(5), AuthorizationNonce::from_bytes([3; 32]));
        let authorization = Authorization { from, to, value, valid_after: 0, valid_before: 9, nonce };
        let signature = WalletSignature::parse("0xab").unwrap();
        let signed = SignedAuthorization { chain_id: 8_453, token: to, authorization, signature };
        NewAuthorization {
            signed,
            account: account().id,
            credits: Credits::from_atoms(5),
            request: None,
            identifier: None,
            received_at: NOW,
            usage: None,
        }
    }

    fn record(state: AuthorizationState) -> AuthorizationRecord {
        let Decided::Accepted((1, record)) = open_authorization(new(), None, false, Some((1, account()))) else {
            panic!("nothing refuses it")
        };
        AuthorizationRecord { state, ..record }
    }

    fn failed() -> AuthorizationState {
        AuthorizationState::Failed { failure: SettlementFailure::Expired, at: NOW }
    }

    #[test]
    fn an_authorization_is_stored_once_for_an_active_account() {
        let known = record(failed());
        let refused = open_authorization::<i64>(new(), Some(known.clone()), true, None);
        assert_eq!(refused, Decided::Refused(AuthorizationOpened::Known(known)));
        let used = open_authorization::<i64>(new(), None, true, None);
        assert_eq!(used, Decided::Refused(AuthorizationOpened::IdentifierUsed));
        for account in [None, Some((1, revoked()))] {
            let refused = open_authorization(new(), None, false, account);
            assert_eq!(refused, Decided::Refused(AuthorizationOpened::NoSuchAccount));
        }
        let opened = record(AuthorizationState::Pending);
        assert_eq!((opened.tx, opened.gas, opened.submissions.len()), (None, None, 0));
        assert_eq!((opened.signed, opened.account, opened.credits), (new().signed, new().account, new().credits));
    }

    #[test]
    fn what_was_used_is_recorded_once_and_nothing_ends_it() {
        let hold = HoldId::from_bytes([9; 16]);
        let of = |state, used: Option<i64>| {
            let usage = Some(AuthorizedUsage { hold, used: used.map(Credits::from_atoms) });
            AuthorizationRecord { usage, ..record(state) }
        };
        let pending = || of(AuthorizationState::Pending, None);
        // used, recorded, state
        let table = [
            (3, 3, AuthorizationState::Pending),
            (5, 5, AuthorizationState::Pending),
            (6, 5, AuthorizationState::Pending),
            (0, 0, failed()),
            (-1, 0, failed()),
        ];
        for (used, recorded, state) in table {
            let after = use_authorization(pending(), Credits::from_atoms(used), NOW);
            assert_eq!(after, Some(of(state, Some(recorded))), "{used}");
        }
        let refused = [
            record(AuthorizationState::Pending),
            of(AuthorizationState::Pending, Some(3)),
            of(AuthorizationState::Credited, Some(3)),
            of(failed(), None),
        ];
        for record in refused {
            assert_eq!(use_authorization(record, Credits::from_atoms(1), NOW), None);
        }
    }

    #[test]
    fn only_a_pending_one_is_credited() {
        let credit = |amount| PaymentCredit {
            account: account().id,
            payment: payment(tx(1)),
            used_as: PaymentUse::Authorization,
            entry: purchase(amount),
            sold: None,
            value: None,
            link_payer: false,
            quotes: QuotePrecedence::Account,
            now: NOW,
        };
        let facts = |used: bool| CreditFacts {
            account: Some((1, account())),
            record: used.then(|| payment_record(PaymentUse::Authorization)),
            quote: None,
        };
        let pending = || record(AuthorizationState::Pending);
        let nobody = CreditFacts { account: Some((1, revoked())), ..facts(false) };
        let other = |state| AuthorizationCredited::NotPending(record(state));
        let others = AuthorizationRecord { account: "org_yyyyyyyyyyyyyyyyyyyy".parse().unwrap(), ..record(failed()) };
        // record, facts, amount, refusal
        let table = [
            (None, facts(false), 1, AuthorizationCredited::NoSuchAccount),
            (Some(others), facts(false), 1, AuthorizationCredited::NoSuchAccount),
            (Some(record(failed())), facts(true), 1, other(failed())),
            (Some(record(AuthorizationState::Credited)), facts(true), 1, other(AuthorizationState::Credited)),
            (Some(pending()), nobody, 1, AuthorizationCredited::NoSuchAccount),
            (Some(pending()), facts(true), 1, AuthorizationCredited::TxUsed),
            (Some(pending()), facts(false), i64::MAX, AuthorizationCredited::OutOfRange),
        ];
        for (record, facts, amount, refusal) in table {
            assert_eq!(credit_authorization(credit(amount), record, facts), Decided::Refused(refusal));
        }
        let credited = credit_authorization(credit(1), Some(pending()), facts(false));
        let Decided::Accepted(changes) = credited else { panic!("nothing refuses it") };
        assert_eq!((changes.record.used_as, changes.record.payment.tx), (PaymentUse::Authorization, tx(1)));
    }

    #[test]
    fn a_reversed_payment_makes_it_pending_and_a_restored_one_credited() {
        use AuthorizationState::{Credited, Pending};
        let block = Block { number: 1, hash: [0; 32], time: NOW };
        let (reverse, restore) = (SettlementStep::Reverse, SettlementStep::Restore(block));
        // state, step, state after
        let table = [
            (Credited, &reverse, Some(Pending)),
            (Pending, &restore, Some(Credited)),
            (Pending, &reverse, None),
            (Credited, &restore, None),
            (Credited, &SettlementStep::Finalize, None),
            (Credited, &SettlementStep::Move(block), None),
            (failed(), &restore, Some(Credited)),
            (failed(), &reverse, None),
        ];
        for (state, step, after) in table {
            assert_eq!(authorization_after(state, step), after, "{state:?} {step:?}");
        }
    }

    #[test]
    fn a_place_is_kept_until_the_chain_has_passed_it() {
        let keeps = |place: Option<(Address, u64)>, lowest| {
            let gas = place.map(|(wallet, nonce)| GasPlace { wallet, nonce });
            let record = AuthorizationRecord { gas, ..record(AuthorizationState::Pending) };
            keeps_gas_place(&record, GasPlace { wallet: WALLET, nonce: lowest })
        };
        assert!(keeps(Some((WALLET, 4)), 4) && keeps(Some((WALLET, 5)), 4));
        assert!(!keeps(Some((WALLET, 3)), 4) && !keeps(Some((Address::ZERO, 4)), 4) && !keeps(None, 0));
    }

    #[test]
    fn a_place_without_transactions_is_given_back() {
        let place = GasPlace { wallet: WALLET, nonce: 4 };
        let record = AuthorizationRecord { gas: Some(place), ..record(AuthorizationState::Pending) };
        assert_eq!(gives_back_gas_place(&record, None), Some(place));
        assert_eq!(gives_back_gas_place(&record, Some(Address::ZERO)), Some(place));
        assert_eq!(gives_back_gas_place(&record, Some(WALLET)), None, "the chain has passed it");
        let submission = Submission { hash: TxHash::from_bytes([1; 32]), raw: vec![1], signed_at: NOW };
        let submitted = AuthorizationRecord { submissions: vec![submission], ..record.clone() };
        assert_eq!(gives_back_gas_place(&submitted, None), None);
        assert_eq!(gives_back_gas_place(&AuthorizationRecord { gas: None, ..record }, None), None);
    }
}
