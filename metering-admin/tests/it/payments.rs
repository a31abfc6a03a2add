//! Operators list payments that arrived, and assign the unclaimed ones.

mod assigning;
#[path = "../../../metering-core/tests/it/payments/chain.rs"]
#[allow(dead_code, reason = "the tests of the service use all of it")]
mod chain;
mod documents;
mod refusals;
mod scanning;
#[path = "../../../metering-core/tests/it/payments/scene.rs"]
#[allow(dead_code, reason = "the tests of the service use all of it")]
mod scene;
#[path = "../../../metering-core/tests/it/payments/wallet.rs"]
#[allow(dead_code, reason = "the tests of the service use all of it")]
mod wallet;

use metering_admin::payments::{
    AssignError, Assigned, Assignment, ReadableChain, Scan, ScanError, ScanRequest, Worth, assign, scan,
};
use metering_core::chains::{Address, NativeTransfer, TokenTransfer, TokenUnits, TxHash};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::payments::{Payment, PaymentUse};
use metering_core::store::{PaymentCredit, PaymentCredited, QuotePrecedence};
use metering_core::{AccountId, Clock, PaymentStore, Store};

use self::chain::FakeChain;
use self::scene::{MAIN, RECIPIENT, STARTER, Scene, USDC, chain};

/// Scans the main chain.
async fn scan_main(scene: &Scene, request: ScanRequest) -> Result<Scan, ScanError> {
    let (plans, listed) = (scene.store.plans().await.unwrap(), chain(MAIN));
    let readable = ReadableChain { name: "main", chain: &listed, reader: &*scene.main };
    scan(&*scene.store, &plans, readable, request, &mut |_, _| {}).await
}

/// Everything from the first block on.
fn everything() -> ScanRequest {
    ScanRequest { from_block: Some(0), ..ScanRequest::default() }
}

/// The assignment of a payment for the plan `starter`.
fn starter(tx: TxHash, account: &AccountId) -> Assignment {
    let worth = Worth::Plan("starter".to_owned());
    Assignment { tx, account: account.clone(), worth, reason: None, despite_quote: false }
}

/// The assignment of a payment for a number of credits.
fn credits(tx: TxHash, account: &AccountId, amount: &str) -> Assignment {
    Assignment { worth: Worth::Credits(amount.parse().unwrap()), ..starter(tx, account) }
}

/// Assigns a payment on the main chain.
async fn assign_main(scene: &Scene, assignment: &Assignment) -> Result<Assigned, AssignError> {
    let listed = chain(MAIN);
    let readable = ReadableChain { name: "main", chain: &listed, reader: &*scene.main };
    assign(&*scene.store, readable, assignment, scene.clock.now()).await
}

async fn account(scene: &Scene) -> AccountId {
    scene.account_without_wallet().await.1
}

async fn balance(scene: &Scene, id: &AccountId) -> String {
    scene.store.account(id).await.unwrap().unwrap().totals.balance.to_string()
}

/// Pays the stablecoin on the main chain, without a quote, and confirms it.
fn pay(scene: &Scene, payer: u8, units: u128) -> TxHash {
    let hash = scene.main.pay(USDC, wallet(payer), RECIPIENT, units);
    scene.main.grow(10);
    hash
}

/// Mines a transaction with these amounts of the stablecoin and this amount of the native coin, and confirms it.
fn pay_at_once(main: &FakeChain, payer: u8, tokens: &[u128], wei: u128) -> TxHash {
    let native =
        NativeTransfer { from: wallet(payer), to: Some(RECIPIENT), value: TokenUnits::new(wei), has_input: false };
    let (from, to) = (wallet(payer), RECIPIENT);
    let transfer = |units: &u128| TokenTransfer { token: USDC, from, to, value: TokenUnits::new(*units) };
    let hash = main.mine(true, native, tokens.iter().map(transfer).collect());
    main.grow(10);
    hash
}

/// Removes a credited payment from the main chain permanently, which reverses its credits after two more blocks.
async fn reverse(scene: &Scene, hash: TxHash) {
    scene.main.reorganise(hash);
    assert_eq!(scene.service.payments().settle(MAIN).await.unwrap().newly_reversed, 0);
    scene.main.grow(2);
    assert_eq!(scene.service.payments().settle(MAIN).await.unwrap().newly_reversed, 1);
}

/// An address that signs nothing.
fn wallet(byte: u8) -> Address {
    Address::from_bytes([byte; 20])
}

/// Credits a payment to an account as its own top-up, which links the wallet to it.
async fn top_up(scene: &Scene, account: &AccountId, hash: TxHash) {
    let request = ScanRequest { with_used: true, ..everything() };
    let found = scan_main(scene, request).await.unwrap().found;
    let found = found.into_iter().find(|found| found.arrival.tx.hash == hash).unwrap();
    let payment: Payment = found.arrival.payment.unwrap();
    assert_eq!(payment.amount.get(), STARTER);
    let credit = PaymentCredit {
        account: account.clone(),
        payment,
        used_as: PaymentUse::Topup,
        entry: NewLedgerEntry::new(LedgerKind::PurchaseTopup, "10".parse().unwrap(), "Plan starter".to_owned()),
        sold: None,
        value: None,
        link_payer: true,
        quotes: QuotePrecedence::Quote,
        now: scene.clock.now(),
    };
    let credited = scene.store.credit_payment(credit).await.unwrap();
    assert!(matches!(credited, PaymentCredited::Account(_)), "{credited:?}");
}
