//! A store with months of data: scenes of `tests/browser/months.mjs`, which take screenshots of docs/pages.md.

use std::time::Duration;

use metering_core::access::KeyHash;
use metering_core::chains::{Address, TokenUnits, TxHash, TxRef};
use metering_core::charging::{Outcome, Posting};
use metering_core::money::{LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::payments::{Buyer, ConvertedAmount, Payment, PaymentUse, PaymentValue, SoldPlan};
use metering_core::prices::{NewPriceVersion, PriceRecorded};
use metering_core::store::{Created, PaymentCredit, PaymentCredited, PaymentStore, PriceStore, QuotePrecedence};
use metering_core::{
    AccountId, ApiKey, Charge, ClientSource, Clock, Credits, Decision, NewAccount, RateLimits, Store, SystemClock,
    SystemRandomness, Timestamp, UsageLine,
};
use metering_sqlite::SqliteStore;
use metering_tests::ports::free_address;
use metering_tests::site::Site;
use serde_json::json;
use tokio::runtime::Builder;

use super::{chromium, play};
use crate::signup::server;

/// How far the data goes back.
const DAYS: u32 = 90;
const DAY: Duration = Duration::from_secs(86_400);
/// When requests are made, in seconds of the day.
const TIMES: [u64; 2] = [9 * 3_600, 16 * 3_600];
/// Paths, the price of a request, and its name. Each is used half as much as the one before.
const ROUTES: [(&str, &str, &str); 4] = [
    ("/search", "0.01", "search"),
    ("/companies", "0.02", "company"),
    ("/reports", "0.25", "report"),
    ("/news", "0.004", "page of news"),
];
/// Names, and how busy they are.
const AGENTS: [(&str, u32); 5] =
    [("price-watcher", 12), ("arbitrage-7", 6), ("research", 5), ("my-agent", 3), ("backtest", 2)];

/// The buyer, the plan, its credits, its price in dollars and in euros, and how many days ago.
const PURCHASES: [(usize, &str, i64, u128, &str, u32); 6] = [
    (0, "Starter", 100, 20, "17.22", 84),
    (3, "Starter", 100, 20, "17.30", 61),
    (0, "Team", 500, 90, "77.51", 52),
    (2, "Starter", 100, 20, "17.19", 33),
    (0, "Team", 500, 90, "77.08", 19),
    (2, "Team", 500, 90, "77.36", 4),
];

/// The plans that were bought. Their token is that of the payments.
const PLANS: &str = r#"[
    {"id": "starter", "chain_id": 8453, "token_symbol": "USDC", "payment_kind": "erc20", "credits": 100, "token_amount": "20",
     "token_contract": "0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0", "token_decimals": 6, "label": "Starter", "active": false},
    {"id": "team", "chain_id": 8453, "token_symbol": "USDC", "payment_kind": "erc20", "credits": 500, "token_amount": "90",
     "token_contract": "0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0", "token_decimals": 6, "label": "Team", "active": false}
]"#;

/// An account, and the keys that it uses in turns.
struct Agent {
    id: AccountId,
    key: ApiKey,
    pace: u32,
    used: Vec<KeyHash>,
}

/// A catalogue with prices in credits; this is the first price.
fn catalogue(first: &str) -> String {
    let route = |(place, (path, price, unit)): (usize, &(&str, &str, &str))| {
        let price = if place == 0 { first } else { *price };
        json!({"path": path, "method": "GET", "metered": true, "price": price, "unit": unit})
    };
    json!({"market": "ACME", "version": 1, "endpoints": ROUTES.iter().enumerate().map(route).collect::<Vec<_>>()})
        .to_string()
}

fn open(site: &Site) -> SqliteStore {
    std::fs::create_dir_all(site.data()).unwrap();
    SqliteStore::open(&site.database()).unwrap()
}

/// Records the prices and opens the accounts before their first requests.
async fn open_accounts(site: &Site, prices: &str) -> Vec<Agent> {
    let (store, before) = (open(site), SystemClock.now().saturating_sub(DAY * (DAYS + 1)));
    let new = NewPriceVersion { catalogue: prices.into(), since: before, recorded_at: before, applied_by: None };
    assert!(matches!(store.record_prices(new).await.unwrap(), PriceRecorded::Recorded(_)));
    let mut agents = Vec::new();
    for (name, pace) in AGENTS {
        let (id, key) = (AccountId::generate(&SystemRandomness), ApiKey::generate(&SystemRandomness));
        let mut account = NewAccount::new(id.clone(), name.parse().unwrap(), key.hash(), before);
        account.limits = RateLimits::NONE;
        let free = NewLedgerEntry::new(LedgerKind::SignupBonus, Credits::from_whole(400).unwrap(), "Free credits");
        account.entries = vec![free];
        assert!(matches!(store.create_account(account).await.unwrap(), Created::Account(_)), "{name}");
        agents.push(Agent { id, used: vec![key.hash()], key, pace });
    }
    agents
}

/// The requests of one time of a day that was so many days ago.
fn requests(agents: &[Agent], back: u32) -> Vec<Posting> {
    let mut postings = Vec::new();
    for Agent { pace, used, .. } in agents {
        // Growing over time, and different each day.
        let calls = pace * (DAYS + 30 - back) / DAYS + (back * 7_919 + pace * 31) % pace;
        for (place, (path, price, _)) in ROUTES.iter().enumerate() {
            let price: Credits = price.parse().unwrap();
            let (route_template, http_method) = ((*path).into(), "GET".into());
            let line = UsageLine { route_template, http_method, source: ClientSource::Direct };
            let keys = used.iter().cycle().zip(0..(calls >> place));
            postings.extend(keys.map(|(key, _)| Posting::Charge(Charge::of(*key, price, line.clone()))));
        }
    }
    postings
}

/// Records the requests of months. One account is then about to run out of credits.
async fn use_keys(site: &Site, agents: &[Agent]) {
    let (store, now) = (open(site), SystemClock.now());
    for back in (0..=DAYS).rev() {
        for seconds in TIMES {
            let at = now.saturating_sub(DAY * back).day().start().saturating_add(Duration::from_secs(seconds));
            if at >= now {
                continue;
            }
            let outcomes = store.commit(requests(agents, back), at).await.unwrap();
            let refused = outcomes.iter().find(|one| !matches!(one, Outcome::Decided(Decision::Accepted(_))));
            assert!(refused.is_none(), "{refused:?}");
        }
    }
    let id = &agents[1].id;
    let balance = store.account(id).await.unwrap().unwrap().totals.balance;
    let left = Credits::from_whole(4).unwrap();
    let change = Credits::from_atoms(left.atoms() - balance.atoms());
    let moved = NewLedgerEntry::new(LedgerKind::Adjustment, change, "Moved to another account");
    let _ = store.post_entry(id, moved, now).await.unwrap();
}

/// Buys plans with tokens. The first account has billing details.
async fn buy(site: &Site, agents: &[Agent]) {
    let (store, now) = (open(site), SystemClock.now());
    store.put_plans(serde_json::from_str(PLANS).unwrap()).await.unwrap();
    let buyer = Buyer::new("Acme Data GmbH", &["Example Street 1", "10115 Berlin"], Some("DE 123456789")).unwrap();
    assert!(store.set_buyer(&agents[0].id, Some(buyer), now.saturating_sub(DAY * DAYS)).await.unwrap());
    for ((agent, plan, credits, dollars, euros, back), number) in PURCHASES.into_iter().zip(1_u8..) {
        let (at, account) = (now.saturating_sub(DAY * back), &agents[agent].id);
        let credited =
            store.credit_payment(purchase(account, plan, credits, (dollars, euros), number, at)).await.unwrap();
        assert!(matches!(credited, PaymentCredited::Account(_)), "{credited:?}");
    }
}

fn purchase(
    account: &AccountId,
    plan: &str,
    credits: i64,
    (dollars, euros): (u128, &str),
    number: u8,
    at: Timestamp,
) -> PaymentCredit {
    let tx = TxRef { chain_id: 8453, hash: TxHash::from_bytes([0x5E + number; 32]) };
    let payment = Payment {
        tx,
        payer: Address::from_bytes([0xA0 + number; 20]),
        recipient: Address::from_bytes([0xD0; 20]),
        token: Address::from_bytes([0xC0; 20]),
        amount: TokenUnits::new(dollars * 1_000_000),
        block_number: 17 + u64::from(number),
        block_hash: Some([number; 32]),
        mined_at: at,
    };
    let credits = Credits::from_whole(credits).unwrap();
    let entry = NewLedgerEntry::new(LedgerKind::PurchaseTopup, credits, format!("Plan {plan}"));
    let (amount, rate) = (euros.parse().unwrap(), "0.8612".parse().unwrap());
    let converted = Some(ConvertedAmount { amount, rate, source: "ECB".to_owned(), as_of: at });
    let (label, token_symbol) = (plan.to_owned(), "USDC".to_owned());
    PaymentCredit {
        account: account.clone(),
        payment,
        used_as: PaymentUse::Topup,
        entry: NewLedgerEntry { payment: Some(PaymentRef { tx, plan_id: Some(plan.to_lowercase()) }), ..entry },
        sold: Some(SoldPlan { label, bonus_credits: Some(Credits::ZERO), token_symbol, token_decimals: 6 }),
        value: Some(PaymentValue { currency: "EUR".parse().unwrap(), converted }),
        link_payer: false,
        quotes: QuotePrecedence::Quote,
        now: at,
    }
}

/// Fills a site with months of data.
fn months(site: &Site, prices: &str, settings: &[(&str, &str)]) -> Vec<Agent> {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut agents = runtime.block_on(open_accounts(site, prices));
    let first = &mut agents[0];
    {
        let server = server(site, settings);
        for name in ["crawler", "nightly-report"] {
            let made = server.client_with(first.key.expose()).post("/keys", &json!({"name": name})).expect(201).json();
            first.used.push(ApiKey::parse(made["key"].as_str().unwrap()).unwrap().hash());
        }
    }
    runtime.block_on(buy(site, &agents));
    runtime.block_on(use_keys(site, &agents));
    agents
}

#[test]
fn months_of_data_are_shown_to_customers_and_operators() {
    if chromium().is_none() {
        return;
    }
    let site = Site::new();
    let [served, dearer] = ["0.01", "0.0125"].map(|price| site.write(&format!("{price}.json"), &catalogue(price)));
    let admin = free_address().to_string();
    let settings = [("METERING_CATALOGUE", served.to_str().unwrap()), ("METERING_ADMIN_LISTEN", admin.as_str())];
    let agents = months(&site, &catalogue("0.01"), &settings);
    let server = server(&site, &settings);
    let token = site.admin_json(&["operator", "create", "boss", "--role", "manager"])["token"].clone();
    let applied = ["catalogue", "apply", dearer.to_str().unwrap(), "--at", "2099-01-01T00:00:00Z"];
    let _ = site.admin_json(&applied);
    play("months", &server, json!({"key": agents[0].key.expose()}));
    let org = agents[0].id.as_str();
    play("consoleMonths", &server, json!({"base": format!("http://{admin}"), "token": token, "org": org}));
    site.verify();
}
