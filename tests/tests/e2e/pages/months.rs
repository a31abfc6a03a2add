//! A store with months of data: scenes of `tests/browser/months.mjs`, which take screenshots of docs/pages.md.

use std::time::Duration;

use metering_core::access::KeyHash;
use metering_core::chains::{Address, TokenUnits, TxHash, TxRef};
use metering_core::charging::{Outcome, Posting};
use metering_core::money::{LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::payments::{Payment, PaymentUse, Plan};
use metering_core::store::{Created, PaymentCredit, PaymentCredited, QuotePrecedence};
use metering_core::{
    AccountId, ApiKey, Charge, ClientSource, Clock, Credits, Decision, NewAccount, PaymentStore, RateLimits, Store,
    SystemClock, SystemRandomness, UsageLine,
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
/// Paths, what a request costs, and what it is called. Each is used half as much as the one before.
const ROUTES: [(&str, &str, &str); 4] = [
    ("/search", "0.01", "search"),
    ("/companies", "0.02", "company"),
    ("/reports", "0.25", "report"),
    ("/news", "0.004", "page of news"),
];
/// Names, and how busy they are.
const AGENTS: [(&str, u32); 5] =
    [("price-watcher", 12), ("arbitrage-7", 6), ("research", 5), ("my-agent", 3), ("backtest", 2)];

/// What was bought: how many days ago, by which agent, and for how many dollars.
const PURCHASES: [(u32, usize, u32); 7] =
    [(80, 0, 25), (61, 2, 5), (44, 0, 25), (30, 3, 5), (16, 0, 25), (9, 4, 5), (2, 2, 5)];
/// The plan that they bought, which has two credits per dollar.
const PLAN: &str = r#"{"id": "starter", "chain_id": 8453, "token_symbol": "USDC", "payment_kind": "erc20", "credits": 10,
    "token_amount": "5", "token_contract": "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", "token_decimals": 6,
    "label": "Starter", "active": false}"#;

/// An account, and the keys that it uses in turns.
struct Agent {
    id: AccountId,
    key: ApiKey,
    pace: u32,
    used: Vec<KeyHash>,
}

/// A catalogue with prices in credits, the first of which is this one.
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

/// Opens the accounts before their first requests.
async fn open_accounts(site: &Site) -> Vec<Agent> {
    let (store, before) = (open(site), SystemClock.now().saturating_sub(DAY * (DAYS + 1)));
    let mut agents = Vec::new();
    for (name, pace) in AGENTS {
        let (id, key) = (AccountId::generate(&SystemRandomness), ApiKey::generate(&SystemRandomness));
        let mut account = NewAccount::new(id.clone(), name.parse().unwrap(), key.hash(), before);
        account.limits = RateLimits { requests_per_minute: 0, requests_per_day: 0 };
        let free = NewLedgerEntry::new(LedgerKind::SignupBonus, Credits::from_whole(400).unwrap(), "Free credits");
        account.entries = vec![free];
        assert!(matches!(store.create_account(account).await.unwrap(), Created::Account(_)), "{name}");
        agents.push(Agent { id, used: vec![key.hash()], key, pace });
    }
    agents
}

/// Credits purchases, as if they had arrived on a chain.
async fn buy(site: &Site, agents: &[Agent]) {
    let (store, now) = (open(site), SystemClock.now());
    let plan: Plan = serde_json::from_str(PLAN).unwrap();
    let token = plan.token_contract;
    store.put_plans(vec![plan]).await.unwrap();
    for (number, (back, agent, dollars)) in (1_u8..).zip(PURCHASES) {
        let at = now.saturating_sub(DAY * back);
        let tx = TxRef { chain_id: 8453, hash: TxHash::from_bytes([number; 32]) };
        let [payer, recipient] = [u8::try_from(agent).unwrap() + 1, 0xee].map(|byte| Address::from_bytes([byte; 20]));
        let payment = Payment {
            tx,
            payer,
            recipient,
            token,
            amount: TokenUnits::new(u128::from(dollars) * 1_000_000),
            block_number: 38_000_000 - u64::from(back) * 43_200,
            block_hash: Some([number; 32]),
            mined_at: at,
        };
        let bought = Credits::from_whole(i64::from(dollars) * 2).unwrap();
        let entry = NewLedgerEntry {
            payment: Some(PaymentRef { tx, plan_id: Some("starter".to_owned()) }),
            ..NewLedgerEntry::new(LedgerKind::PurchaseTopup, bought, "Starter")
        };
        let credit = PaymentCredit {
            account: agents[agent].id.clone(),
            payment,
            used_as: PaymentUse::Topup,
            entry,
            sold: None,
            value: None,
            link_payer: true,
            quotes: QuotePrecedence::Quote,
            now: at,
        };
        assert!(matches!(store.credit_payment(credit).await.unwrap(), PaymentCredited::Account(_)), "{number}");
    }
}

/// The requests of one time of a day that was so many days ago.
fn requests(agents: &[Agent], back: u32) -> Vec<Posting> {
    let mut postings = Vec::new();
    for Agent { pace, used, .. } in agents {
        // More as time goes on, and not the same each day.
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

/// Fills a site with months of data.
fn months(site: &Site, settings: &[(&str, &str)]) -> Vec<Agent> {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut agents = runtime.block_on(open_accounts(site));
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
    let agents = months(&site, &settings);
    let server = server(&site, &settings);
    let token = site.admin_json(&["operator", "create", "boss", "--role", "manager"])["token"].clone();
    let applied = ["catalogue", "apply", dearer.to_str().unwrap(), "--at", "2099-01-01T00:00:00Z"];
    let _ = site.admin_json(&applied);
    play("months", &server, json!({"key": agents[0].key.expose()}));
    let org = agents[0].id.as_str();
    play("consoleMonths", &server, json!({"base": format!("http://{admin}"), "token": token, "org": org}));
    site.verify();
}
