//! An account with authorizations in every state, with transactions and gas places.

use std::time::Duration;

use metering_core::chains::{Address, TokenUnits, TxHash, WalletSignature};
use metering_core::charging::Fingerprint;
use metering_core::money::{LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::offers::{
    Authorization, AuthorizationId, AuthorizationNonce, IdentifierHash, SettlementFailure, SignedAuthorization,
    Submission,
};
use metering_core::payments::{Payment, PaymentUse, SettlementStep};
use metering_core::store::{
    AuthorizationCredited, AuthorizationOpened, AuthorizationStore, NewAuthorization, PaymentCredit, PaymentSettled,
    QuotePrecedence, SettlementChange,
};
use metering_core::{Credits, FullStore, PaymentStore};
use metering_sqlite::SqliteStore;

use super::filling::{grant, later, tx, wallet};
use super::{NOON, account_id, customer};

pub(crate) const AUTHORIZER: u8 = 11;

/// Authorizations, by their outcomes.
const WAITING: u8 = 0xc0;
const SUBMITTED: u8 = 0xc1;
const CREDITED: u8 = 0xc2;
const REVERSED: u8 = 0xc3;
const FAILED_AFTER_REVERSAL: u8 = 0xc4;
/// The last one: it gives its place back, and no other takes it.
const FAILED: u8 = 0xc5;

/// The wallet that pays the gas.
const GAS: Address = Address::from_bytes([0xcc; 20]);

fn signed(number: u8) -> SignedAuthorization {
    let authorization = Authorization {
        from: wallet(number - WAITING),
        to: Address::from_bytes([0xdd; 20]),
        value: TokenUnits::MAX,
        valid_after: u64::MAX - 1,
        valid_before: u64::MAX,
        nonce: AuthorizationNonce::from_bytes([number; 32]),
    };
    let length = if number == WAITING { 1 } else { 65 };
    let signature = WalletSignature::from_bytes(vec![number; length]).unwrap();
    SignedAuthorization { chain_id: 8453, token: Address::from_bytes([0xee; 20]), authorization, signature }
}

/// The credit for an authorization that a transaction executed.
fn executed(number: u8) -> PaymentCredit {
    let (tx, SignedAuthorization { token, authorization, .. }) = (tx(number - WAITING + 100), signed(number));
    let Authorization { from: payer, to: recipient, value: amount, .. } = authorization;
    let (block_number, block_hash) = (18, Some([18; 32]));
    let payment = Payment { tx, payer, recipient, token, amount, block_number, block_hash, mined_at: NOON };
    let entry = NewLedgerEntry {
        payment: Some(PaymentRef { tx, plan_id: None }),
        ..NewLedgerEntry::new(LedgerKind::PurchaseTopup, Credits::BASE_CALL, "Paid with a request")
    };
    PaymentCredit {
        account: account_id(AUTHORIZER),
        payment,
        used_as: PaymentUse::Authorization,
        entry,
        sold: None,
        value: None,
        link_payer: false,
        quotes: QuotePrecedence::Account,
        now: NOON,
    }
}

/// An account with an authorization of every kind.
pub(crate) async fn fill(store: &SqliteStore) {
    let (account, _) = customer(store, AUTHORIZER, grant(1)).await;
    for number in WAITING..=FAILED {
        let request = (number % 2 == 0).then(|| Fingerprint::from_bytes([number; 16]));
        let (signed, account) = (signed(number), account.clone());
        let id = signed.id();
        let (credits, identifier) =
            (Credits::BASE_CALL, (number % 3 == 0).then(|| IdentifierHash::from_bytes([number; 32])));
        let new = NewAuthorization { signed, account, credits, request, identifier, received_at: NOON, usage: None };
        let opened = store.open_authorization(new, Duration::from_secs(60)).await.unwrap();
        assert!(matches!(opened, AuthorizationOpened::Opened(_)), "{opened:?}");
        if number == WAITING {
            continue;
        }
        let place = store.assign_gas_place(&id, GAS, 5).await.unwrap();
        assert_eq!(place, Some(u64::from(number - SUBMITTED) + 5));
        if number != FAILED {
            for transaction in [number + 0x10, number] {
                let hash = TxHash::from_bytes([transaction; 32]);
                let submission = Submission { hash, raw: vec![transaction; 300], signed_at: later(1) };
                assert!(store.add_submission(&id, submission).await.unwrap());
            }
        }
        if [CREDITED, REVERSED, FAILED_AFTER_REVERSAL].contains(&number) {
            let credited = store.credit_authorization(&id, executed(number)).await.unwrap();
            assert!(matches!(credited, AuthorizationCredited::Account(_)), "{credited:?}");
        }
        if [REVERSED, FAILED_AFTER_REVERSAL].contains(&number) {
            let seen = store.payment(&executed(number).payment.tx).await.unwrap().unwrap();
            let change = SettlementChange { seen, step: SettlementStep::Reverse, now: later(2) };
            assert!(matches!(store.settle_payment(change).await.unwrap(), PaymentSettled::Changed(_)));
        }
        if [FAILED, FAILED_AFTER_REVERSAL].contains(&number) {
            assert!(store.fail_authorization(&id, SettlementFailure::Cancelled, later(3)).await.unwrap());
        }
    }
    // A wallet that has sent nearly as many transactions as there can be.
    let id = signed(WAITING).id();
    assert_eq!(store.assign_gas_place(&id, wallet(0), u64::MAX - 1).await.unwrap(), Some(u64::MAX - 1));
}

/// Every authorization, as text.
pub(crate) async fn snapshot(store: &dyn FullStore) -> Vec<String> {
    let mut texts = Vec::new();
    for number in WAITING..=FAILED {
        let id: AuthorizationId = signed(number).id();
        texts.push(format!("{:?}", store.authorization(&id).await.unwrap()));
    }
    for number in 0..=AUTHORIZER {
        texts.push(format!("{:?}", store.first_key(&account_id(number)).await.unwrap()));
    }
    texts
}
