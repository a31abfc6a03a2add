//! Fixtures for the contracts about authorizations: what is signed, its transactions and its payment.

use metering_core::access::{Account, AccountId};
use metering_core::chains::{Address, Block, TxHash, TxRef, WalletSignature};
use metering_core::charging::Fingerprint;
use metering_core::money::{LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::offers::{
    Authorization, AuthorizationId, AuthorizationNonce, AuthorizationRecord, SettlementFailure, SignedAuthorization,
    Submission,
};
use metering_core::payments::{PaymentUse, SettlementStep};
use metering_core::store::{
    AuthorizationCredited, AuthorizationOpened, AuthorizationStore, NewAuthorization, PaymentCredit, PaymentSettled,
    PaymentStore, QuotePrecedence, SettlementChange,
};

use super::event_scene::{LEASE, at};
use super::sale::{SOLD, TARGET, payment_by, quote, value, wallet};
use super::scene::{NOON, atoms, entry};

/// How many tasks race.
pub(super) const TASKS: u8 = 50;
/// The wallet that pays the gas.
pub(super) const GAS: Address = wallet(200);
/// A block that a payment moves to.
pub(super) const LATER: Block = Block { number: 19, hash: [19; 32], time: NOON };

/// A signature of some bytes.
pub(super) fn signature(bytes: &[u8]) -> WalletSignature {
    WalletSignature::parse(&format!("0x{}", hex::encode(bytes))).unwrap()
}

/// Authorization `number`, by the wallet and of the amount of quote `number`.
pub(super) fn signed(number: u8) -> SignedAuthorization {
    let authorization = Authorization {
        from: wallet(number),
        to: TARGET.recipient,
        value: quote(number).amount,
        valid_after: 0,
        valid_before: 1_795_262_700,
        nonce: AuthorizationNonce::from_bytes([number; 32]),
    };
    let (chain_id, token) = (TARGET.chain_id, TARGET.token);
    SignedAuthorization { chain_id, token, authorization, signature: signature(&[number; 65]) }
}

/// Authorization `number`, received at noon.
pub(super) fn new(account: &AccountId, number: u8) -> NewAuthorization {
    let request = number.is_multiple_of(2).then(|| Fingerprint::from_bytes([number; 16]));
    NewAuthorization {
        signed: signed(number),
        account: account.clone(),
        credits: atoms(SOLD),
        request,
        identifier: None,
        received_at: NOON,
        usage: None,
    }
}

/// Stores an authorization, claimed for [`LEASE`], and expects success.
pub(super) async fn opened(store: &dyn AuthorizationStore, new: NewAuthorization) -> AuthorizationRecord {
    match store.open_authorization(new, LEASE).await.unwrap() {
        AuthorizationOpened::Opened(record) => record,
        refusal => panic!("the authorization was not stored: {refusal:?}"),
    }
}

/// Stores authorization `number`, and returns its id.
pub(super) async fn pending(store: &dyn AuthorizationStore, account: &AccountId, number: u8) -> AuthorizationId {
    opened(store, new(account, number)).await.signed.id()
}

/// The record of an authorization that must be stored.
pub(super) async fn record(store: &dyn AuthorizationStore, id: &AuthorizationId) -> AuthorizationRecord {
    store.authorization(id).await.unwrap().expect("the authorization is stored")
}

/// Claims the unclaimed authorizations, so many seconds after noon.
pub(super) async fn claim(store: &dyn AuthorizationStore, seconds: u64, limit: u32) -> Vec<AuthorizationId> {
    let claimed = store.claim_authorizations(at(seconds), LEASE, limit).await.unwrap();
    claimed.into_iter().map(|record| record.signed.id()).collect()
}

/// A transaction to submit.
pub(super) fn submission(number: u8) -> Submission {
    Submission { hash: TxHash::from_bytes([number; 32]), raw: vec![number; 200], signed_at: at(number.into()) }
}

/// The credit for authorization `number`, executed by a transaction.
pub(super) fn credit(account: &AccountId, number: u8, tx: TxRef) -> PaymentCredit {
    let payment = Some(PaymentRef { tx, plan_id: None });
    PaymentCredit {
        account: account.clone(),
        payment: payment_by(number, tx),
        used_as: PaymentUse::Authorization,
        entry: NewLedgerEntry { payment, ..entry(LedgerKind::PurchaseTopup, SOLD) },
        sold: None,
        value: Some(value()),
        link_payer: false,
        quotes: QuotePrecedence::Account,
        now: NOON,
    }
}

/// Credits an authorization and expects success.
pub(super) async fn credited(store: &dyn AuthorizationStore, id: &AuthorizationId, credit: PaymentCredit) -> Account {
    match store.credit_authorization(id, credit).await.unwrap() {
        AuthorizationCredited::Account(account) => account,
        refusal => panic!("the authorization was not credited: {refusal:?}"),
    }
}

/// Fails an authorization and returns whether that changed it.
pub(super) async fn fail(store: &dyn AuthorizationStore, id: &AuthorizationId) -> bool {
    store.fail_authorization(id, SettlementFailure::Expired, at(9)).await.unwrap()
}

/// The place of an authorization in the wallet [`GAS`].
pub(super) async fn place(store: &dyn AuthorizationStore, id: &AuthorizationId, lowest: u64) -> Option<u64> {
    store.assign_gas_place(id, GAS, lowest).await.unwrap()
}

/// Takes a settlement step of a payment and expects success.
pub(super) async fn stepped(store: &dyn PaymentStore, tx: TxRef, step: SettlementStep) {
    let seen = store.payment(&tx).await.unwrap().expect("the payment is recorded");
    let outcome = store.settle_payment(SettlementChange { seen, step, now: NOON }).await.unwrap();
    assert!(matches!(outcome, PaymentSettled::Changed(_)), "{outcome:?}");
}
