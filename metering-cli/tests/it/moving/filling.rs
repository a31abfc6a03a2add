//! Stores with something of every kind in them.

use std::sync::Arc;
use std::time::Duration;

use metering_conformance::{agrees_with_model, operations};
use metering_core::access::{
    BrowserSessionId, BrowserTokenHash, BudgetReset, EmailStatus, KeyHash, NewBrowserSession, Payer,
};
use metering_core::chains::{Address, TokenUnits, TxHash, TxRef};
use metering_core::charging::Posting;
use metering_core::money::{LedgerKind, NewLedgerEntry, PaymentRef, Refill};
use metering_core::operators::{Actor, AuditOutcome, AuditResult, NewAuditEntry, NewOperator, OperatorTokenHash, Role};
use metering_core::payments::{
    Arrival, ArrivalLocation, Buyer, Challenge, ConvertedAmount, NonceHash, Payment, PaymentFault, PaymentTarget,
    PaymentUse, PaymentValue, Plan, ProcessorRef, Quote, QuoteState, ReceiptTerms, SalesTax, SavedCard, Seller,
    SoldPlan, TopUpChargeId, TopUpRule, UnclaimedPayment, UnreadableArrival,
};
use metering_core::prices::{NewPriceVersion, PriceNumber, PriceRecorded};
use metering_core::signups::{EmailLink, LinkHash, LinkPurpose, SessionHash, SignupSession};
use metering_core::store::{
    AutoTopUpChange, AutoTopUpSet, BrowserSessionStore, Claim, EmailVerified, KeyDelivery, OperatorStore,
    PaymentCredit, PaymentCredited, PriceStore, QuotePrecedence, RefillStore, ReversalChange, SignupStore, TopUpEnd,
};
use metering_core::{
    AccountId, Charge, ClientSource, Credits, FullStore, NewAccount, PaymentStore, RateLimits, RequestId, Store,
    SystemRandomness, UsageLine,
};
use metering_sqlite::SqliteStore;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestRunner};

use super::{Move, NOON, account_id, authorizations, customer, events, holds, keys, organisations, programs, volumes};

/// More charges than activity keeps, with grants in between.
const CHARGES: u32 = 2_300;
pub(crate) const BUSY: u8 = 1;
pub(crate) const BUYER: u8 = 2;
pub(crate) const AWAITED: u8 = 3;
pub(crate) const REVOKED: u8 = 4;
pub(crate) const CAPPED: u8 = 5;
pub(crate) const WAITING: u8 = 6;
pub(crate) const VERIFIED: u8 = 7;
/// The number of the last entry of the audit log; far above all numbers that a move gives out.
const HIGHEST_AUDIT_ID: i64 = 5_000_000;

/// Random operations, checked against the model; then something of every kind.
pub(crate) async fn fill(moving: &Move) {
    fill_at_random(moving).await;
    let store = moving.sqlite();
    busy(&store).await;
    keys::fill(&store).await;
    holds::fill(&store).await;
    volumes::fill(&store).await;
    authorizations::fill(&store).await;
    sales(&store).await;
    visitors(&store).await;
    readers_of_mail(&store).await;
    programs::fill(&store).await;
    organisations::fill(&store).await;
    operators(&store).await;
    prices(&store).await;
    refills(&store).await;
    events::fill(&store).await;
    // Earlier versions wrote entries without outcomes.
    let alone = format!(
        "INSERT INTO audit_entry (id, at, actor, action, subject, reason, request) VALUES \
         (100, 0, 'command_line:root', 'a', '', '', '{{}}'), \
         ({HIGHEST_AUDIT_ID}, 0, 'command_line:', 'a', '', '', '{{}}')"
    );
    moving.tamper_file(&alone);
    let (revoked, _) = customer(&store, REVOKED, grant(3)).await;
    store.revoke_account(&revoked, NOON).await.unwrap();
    let (capped, key) = customer(&store, CAPPED, grant(10)).await;
    let limits = RateLimits::per_minute(3).and_per_day(5);
    store.set_limits(&capped, limits).await.unwrap();
    store.commit(vec![charge(key, "/a", None), charge(key, "/b", None)], NOON).await.unwrap();
}

/// A sequence of operations, the longest of several.
pub(crate) async fn fill_at_random(moving: &Move) {
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let drawn = (0..8).map(|_| operations().new_tree(&mut runner).unwrap().current());
    let longest = drawn.max_by_key(Vec::len).unwrap();
    let store: Arc<dyn FullStore> = Arc::new(moving.sqlite());
    agrees_with_model(vec![store], longest).await;
}

async fn busy(store: &SqliteStore) {
    let (id, key) = customer(store, BUSY, grant(1_000_000)).await;
    store.set_limits(&id, RateLimits::NONE).await.unwrap();
    for number in 0..CHARGES {
        let path = if number % 3 == 0 { "/a" } else { "/Ä/b" };
        let request = (number % 50 == 0).then(|| format!("request-{number}"));
        store.commit(vec![charge(key, path, request.as_deref())], NOON).await.unwrap();
        if number % 100 == 7 {
            store.post_entry(&id, grant(1), NOON).await.unwrap();
        }
    }
}

/// A rule, and accounts that had their turn, the last of which got credits.
async fn refills(store: &SqliteStore) {
    let refill = Refill { credits: "0.12345678".parse().unwrap(), every: BudgetReset::Weekly, cap: Credits::MAX };
    store.set_refill(Some(refill)).await.unwrap();
    let next_week = NOON.saturating_add(Duration::from_secs(7 * 86_400));
    loop {
        let refilled = store.refill_accounts(next_week, 1).await.unwrap();
        assert!(!refilled.is_done, "no account was refilled, or all were");
        if refilled.accounts > 0 {
            return;
        }
    }
}

async fn sales(store: &SqliteStore) {
    let plan: Plan = serde_json::from_str(
        r#"{"id":"starter","chain_id":8453,"token_symbol":"USDC","payment_kind":"erc20","credits":10.12345678,
            "token_amount":"5","token_decimals":6,"label":"Starter","sort_order":-3,
            "token_contract":"0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"}"#,
    )
    .unwrap();
    store.put_plans(vec![Plan { id: "z".to_owned(), ..plan.clone() }, plan]).await.unwrap();
    for number in [BUYER, AWAITED, 40, 41] {
        store.open_quote(quote(number)).await.unwrap();
    }
    let seller = Seller { name: "Größe".to_owned(), address: vec!["1 High Street".to_owned()], ..Seller::default() };
    let tax = Some(SalesTax { name: "VAT".to_owned(), rate: "0.19".parse().unwrap(), reverse_charge: true });
    let terms = ReceiptTerms { seller, tax, numbering: "INV-".parse().ok() };
    for terms in [ReceiptTerms { tax: None, ..terms.clone() }, terms] {
        store.set_receipt_terms(terms, NOON).await.unwrap();
    }
    store.claim_quote(claim(BUYER, KeyDelivery::Now)).await.unwrap();
    store.claim_quote(claim(AWAITED, KeyDelivery::Later)).await.unwrap();
    let buyer = |name| Buyer::new(name, &["Straße 1", "Αθήνα"], Some("DE 123")).ok();
    assert!(store.set_buyer(&account_id(BUYER), buyer("Jörg & Söhne"), NOON).await.unwrap());
    store.credit_payment(top_up(BUYER, 50)).await.unwrap();
    assert!(store.set_buyer(&account_id(BUYER), buyer("Acme"), later(9)).await.unwrap());
    for number in [42, 43] {
        store.open_quote(quote(number)).await.unwrap();
    }
    let own = PaymentCredit { quotes: QuotePrecedence::OwnQuote, ..top_up(BUYER, 43) };
    assert!(matches!(store.credit_payment(own).await.unwrap(), PaymentCredited::Account(_)));
    store.open_challenge(challenge(BUYER, "nonce")).await.unwrap();
    store.fail_challenge("nonce").await.unwrap();
    // Above the range of signed 64-bit integers.
    store.set_scan_mark(u64::MAX, u64::MAX - 1).await.unwrap();
    store.set_scan_mark(8453, 17).await.unwrap();
    store.register_recipients(vec![(8453, wallet(1)), (u64::MAX, wallet(2))], NOON).await.unwrap();
    for hash in [None, Some(tx(60).hash)] {
        let place = ArrivalLocation { chain_id: 8453, block_number: 16, hash };
        let arrival = UnreadableArrival::new(place, "it's too large — ü", NOON);
        store.put_unreadable(arrival).await.unwrap();
    }
    let place = ArrivalLocation { chain_id: 1, block_number: 7, hash: Some(tx(61).hash) };
    let given_up = UnreadableArrival { next_attempt_at: None, ..UnreadableArrival::new(place, "no status", NOON) };
    store.put_unreadable(given_up).await.unwrap();
    let processor = |id| ProcessorRef::new("stripe", id).unwrap();
    let mut paid = top_up(BUYER, 64);
    (paid.payment.tx, paid.used_as, paid.link_payer) = (processor("pi_1").tx(), PaymentUse::Processor, false);
    paid.payment.block_hash = None;
    paid.entry = purchase(LedgerKind::PurchaseTopup, paid.payment.tx);
    let credited = store.credit_processor_payment(paid, processor("pi_1")).await.unwrap();
    assert!(matches!(credited, PaymentCredited::Account(_)), "{credited:?}");
    for (id, restored) in [("re_1", false), ("dp_1", true)] {
        let (reversal, payment, amount) = (processor(id), processor("pi_1"), Some(TokenUnits::new(1)));
        let change =
            ReversalChange { reversal, payment, amount, reason: "ü".to_owned(), restored, again: false, now: NOON };
        store.reverse_processor_payment(change).await.unwrap();
    }
    let [customer, method, brand, last4] = ["cus_1", "pm_1", "visa", "4242"].map(str::to_owned);
    let card = SavedCard { customer, method, brand, last4 };
    let rule = TopUpRule {
        plan_id: "starter".to_owned(),
        credits: "10.12345678".parse().unwrap(),
        amount: 1_000,
        currency: "EUR".parse().unwrap(),
        threshold: Credits::MAX,
        monthly_limit: 2_000,
    };
    for change in [AutoTopUpChange::Card(Some(card)), AutoTopUpChange::Rule(Some(rule))] {
        let set = store.set_auto_top_up(&account_id(BUYER), change).await.unwrap();
        assert!(matches!(set, AutoTopUpSet::Set(_)), "{set:?}");
    }
    for end in [Some(TopUpEnd::Paid(processor("pi_2"))), Some(TopUpEnd::NeverMade), None] {
        let id = TopUpChargeId::generate(&SystemRandomness);
        assert!(store.begin_top_up(&account_id(BUYER), id, NOON).await.unwrap().is_some());
        if let Some(end) = end {
            assert!(store.end_top_up(id, end, NOON).await.unwrap());
        }
    }
    for (number, fault) in [(62, None), (63, Some(PaymentFault::HasInput))] {
        store.put_unclaimed(unclaimed(top_up(BUYER, number).payment, fault)).await.unwrap();
    }
}

fn unclaimed(payment: Payment, fault: Option<PaymentFault>) -> UnclaimedPayment {
    let (tx, target, block) = (payment.tx, payment.target(), payment.block().unwrap());
    UnclaimedPayment { arrival: Arrival { tx, target, block, payment: fault.map_or(Ok(payment), Err) }, seen_at: NOON }
}

async fn visitors(store: &SqliteStore) {
    let second = store.open_signup(session(2)).await.unwrap();
    store.open_signup(session(1)).await.unwrap();
    store.approve_signup(&session(1).user_code, NOON).await.unwrap();
    assert_eq!(second, metering_core::store::SignupOpened::Opened);
    assert!(store.use_solution([9; 32], later(60)).await.unwrap());
}

/// An account that waits for the verification of its address, and one that asked for recovery.
async fn readers_of_mail(store: &SqliteStore) {
    let free_credits = Credits::from_whole(2).unwrap();
    for number in [WAITING, VERIFIED] {
        let key = KeyHash::from_bytes([number; 32]);
        let mut new = NewAccount::new(account_id(number), "reader".parse().unwrap(), key, NOON);
        new.email = Some(format!("Reader{number}@Example.com").parse().unwrap());
        new.email_status = EmailStatus::Pending { free_credits };
        store.create_account(new).await.unwrap();
        assert!(store.open_email_link(link(number, LinkPurpose::VerifyAddress)).await.unwrap());
    }
    let verification = link(VERIFIED, LinkPurpose::VerifyAddress);
    let verified = store.verify_email(&verification.token, NOON).await.unwrap();
    assert!(matches!(verified, EmailVerified::Account { .. }), "{verified:?}");
    assert!(store.open_email_link(link(VERIFIED, LinkPurpose::RecoverKey)).await.unwrap());
    let session = NewBrowserSession {
        id: BrowserSessionId::from_bytes([VERIFIED; 16]),
        token: BrowserTokenHash::from_bytes([VERIFIED; 32]),
        device: "Firefox on Linux".parse().unwrap(),
        created_at: NOON,
    };
    let session = session.of_key(account_id(VERIFIED), KeyHash::from_bytes([VERIFIED; 32]));
    assert!(store.open_browser_session(session).await.unwrap());
}

/// Operators, one of them revoked, and an entry of the audit log for each outcome.
async fn operators(store: &SqliteStore) {
    for (name, role, number) in [("jo", Role::Viewer, 1), ("Jo@example.com", Role::Manager, 2)] {
        let token = OperatorTokenHash::from_bytes([number; 32]);
        let operator = NewOperator { name: name.parse().unwrap(), role, token, created_at: NOON };
        assert!(store.create_operator(operator).await.unwrap().is_some());
    }
    store.revoke_operator(&"jo".parse().unwrap(), later(60)).await.unwrap();
    let entry = NewAuditEntry {
        at: NOON,
        actor: Actor::Operator("Jo@example.com".parse().unwrap()),
        action: "account.grant".to_owned(),
        subject: account_id(BUSY).to_string(),
        reason: "it's\n“größer”".to_owned(),
        request: r#"{"credits":"1"}"#.to_owned(),
        before: Some(r#"{"balance":"1"}"#.to_owned()),
    };
    for result in AuditResult::ALL {
        let after = (result == AuditResult::Done).then(|| "{}".to_owned());
        let outcome = AuditOutcome { at: later(1), result, detail: format!("{result:?}"), after };
        store.log_action(entry.clone(), outcome).await.unwrap();
    }
}

/// Price versions: from a file, applied, and applied and cancelled.
async fn prices(store: &SqliteStore) {
    let by = |name: &str| Some(Actor::Operator(name.parse().unwrap()));
    for (catalogue, seconds, applied_by) in [("{}", 0, None), ("{\"ä\": 1}", 60, by("jo")), ("{ }", 90, by("jo"))] {
        let new = NewPriceVersion { catalogue: catalogue.into(), since: later(seconds), recorded_at: NOON, applied_by };
        assert!(matches!(store.record_prices(new).await.unwrap(), PriceRecorded::Recorded(_)));
    }
    assert!(store.cancel_prices(PriceNumber(3), NOON).await.unwrap().unwrap().cancelled_at.is_some());
}

pub(crate) fn link(number: u8, purpose: LinkPurpose) -> EmailLink {
    let token = LinkHash::from_bytes([0xb0 + number; 32]);
    EmailLink { token, purpose, account: account_id(number), expires_at: later(600) }
}

pub(crate) fn later(seconds: u64) -> metering_core::Timestamp {
    NOON.saturating_add(Duration::from_secs(seconds))
}

pub(crate) fn grant(base_calls: i64) -> NewLedgerEntry {
    let amount = Credits::from_atoms(base_calls * Credits::BASE_CALL.atoms());
    NewLedgerEntry::new(LedgerKind::Adjustment, amount, "Grant, 'quoted' \"too\" — ü")
}

pub(crate) fn charge(key: KeyHash, path: &str, request: Option<&str>) -> Posting {
    let line = UsageLine { route_template: path.into(), http_method: "GET".into(), source: ClientSource::Cli };
    let request_id = request.map(|request| RequestId::parse(request).unwrap());
    Posting::Charge(Charge::of(key, Credits::BASE_CALL, line).with_request_id(request_id))
}

pub(crate) fn wallet(number: u8) -> Address {
    Address::from_bytes([0x80 + number; 20])
}

pub(crate) fn tx(number: u8) -> TxRef {
    TxRef { chain_id: 8453, hash: TxHash::from_bytes([0x90 + number; 32]) }
}

/// Numbers 42 and 43 top up an account.
pub(crate) fn quote(number: u8) -> Quote {
    let top_up = [42, 43].contains(&number).then(|| account_id(BUYER));
    Quote {
        nonce: NonceHash::from_bytes([number; 32]),
        agent_name: "buyer".parse().unwrap(),
        email: (number == 40).then(|| "Forty@Example.com".parse().unwrap()),
        payer: if top_up.is_some() { Quote::ANY_PAYER } else { wallet(number) },
        top_up,
        target: PaymentTarget { chain_id: 8453, token: wallet(70), recipient: wallet(71) },
        amount: TokenUnits::new(u128::from(u64::MAX) + u128::from(number)),
        plan_id: "starter".to_owned(),
        credits: Credits::from_whole(10).unwrap(),
        bonus_credits: Credits::ZERO,
        created_at: NOON,
        expires_at: later(1_800),
        state: QuoteState::Open,
    }
}

fn payment(number: u8, tx: TxRef) -> Payment {
    let Quote { amount, target, .. } = quote(number);
    let (PaymentTarget { token, recipient, .. }, payer) = (target, wallet(number));
    Payment { tx, payer, recipient, token, amount, block_number: u64::MAX, block_hash: Some([17; 32]), mined_at: NOON }
}

fn purchase(kind: LedgerKind, tx: TxRef) -> NewLedgerEntry {
    let payment = Some(PaymentRef { tx, plan_id: Some("starter".to_owned()) });
    NewLedgerEntry { payment, ..NewLedgerEntry::new(kind, Credits::from_whole(10).unwrap(), "Plan starter") }
}

/// The plan of a purchase; every third has none stored, and every other third no bonus.
fn sold(number: u8) -> Option<SoldPlan> {
    let bonus_credits = (number % 3 == 1).then_some(Credits::from_atoms(7));
    let (label, token_symbol) = ("Starter".to_owned(), "USDC".to_owned());
    let known = !number.is_multiple_of(3);
    known.then_some(SoldPlan { label, bonus_credits, token_symbol, token_decimals: 6 })
}

/// What a purchase was worth; every other one has none.
fn value(number: u8) -> Option<PaymentValue> {
    let (amount, rate, source) = ("8.61".parse().unwrap(), "0.8612".parse().unwrap(), "ECB".to_owned());
    let converted = number.is_multiple_of(4).then_some(ConvertedAmount { amount, rate, source, as_of: NOON });
    number.is_multiple_of(2).then(|| PaymentValue { currency: "EUR".parse().unwrap(), converted })
}

pub(crate) fn claim(number: u8, delivery: KeyDelivery) -> Claim {
    let key = KeyHash::from_bytes([number; 32]);
    let mut account = NewAccount::new(account_id(number), "buyer".parse().unwrap(), key, NOON);
    account.payer = Some(Payer { address: wallet(number), chain_id: 8453 });
    account.entries = vec![purchase(LedgerKind::PurchasePaySignup, tx(number))];
    Claim {
        nonce: quote(number).nonce,
        payment: payment(number, tx(number)),
        account,
        sold: sold(number),
        value: value(number),
        delivery,
        now: NOON,
    }
}

/// Paid by the wallet of that number, which becomes linked.
pub(crate) fn top_up(account: u8, number: u8) -> PaymentCredit {
    PaymentCredit {
        account: account_id(account),
        payment: payment(number, tx(number)),
        used_as: PaymentUse::Topup,
        entry: purchase(LedgerKind::PurchaseTopup, tx(number)),
        sold: sold(number),
        value: value(number),
        link_payer: true,
        quotes: QuotePrecedence::Quote,
        now: NOON,
    }
}

fn challenge(account: u8, nonce: &str) -> Challenge {
    let (account, address, expires_at): (AccountId, _, _) = (account_id(account), wallet(account), later(300));
    let message = Challenge::message("test", address, nonce, expires_at, "http://localhost/terms");
    Challenge { nonce: nonce.to_owned(), address, account, message, expires_at, failures: 0 }
}

pub(crate) fn session(number: u8) -> SignupSession {
    SignupSession {
        // Random operations use low numbers.
        token: SessionHash::from_bytes([0xa0 + number; 32]),
        user_code: ["BCDF-GHJK", "BCDF-GHJL", "BCDF-GHJM"][usize::from(number)].parse().unwrap(),
        email: format!("Visitor{number}@Example.com").parse().unwrap(),
        agent_name: "visitor".parse().unwrap(),
        created_at: NOON,
        expires_at: later(900),
        approved_at: None,
    }
}
