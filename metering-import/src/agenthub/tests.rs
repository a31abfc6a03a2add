use metering_core::access::AccountId;
use metering_core::backend::decision::{Decided, ImportChanges, import_account};
use metering_core::clock::Timestamp;
use metering_core::money::Credits;

use super::rows::SHARED_SESSION;
use super::*;

const NOW: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

fn real(value: f64) -> Cell {
    Cell::Real(value.to_bits())
}

fn key(balance: f64, purchased: f64, used: f64) -> AgentHubKey {
    AgentHubKey {
        id: "7".to_owned(),
        session_id: Some("s".to_owned()),
        session_name: Some("agent".to_owned()),
        hash: "ab".repeat(32),
        balance: real(balance),
        purchased: real(purchased),
        used: real(used),
        created_at: Some("2026-11-01 00:00:00".to_owned()),
        ..AgentHubKey::default()
    }
}

fn row(kind: &str, amount: f64) -> AgentHubTransaction {
    AgentHubTransaction {
        id: "1".to_owned(),
        kind: kind.to_owned(),
        amount: real(amount),
        route_template: Some("/a".to_owned()),
        created_at: Some("2026-11-02T03:04:05Z".to_owned()),
        ..AgentHubTransaction::default()
    }
}

fn planned(key: AgentHubKey, rows: &[AgentHubTransaction]) -> PlannedAccount {
    let mut planner = AgentHubPlanner::new(key, UsageSign::Negative, NOW).unwrap();
    rows.iter().for_each(|row| planner.add(row));
    planner.finish().unwrap()
}

fn changes(planned: &PlannedAccount) -> ImportChanges {
    match import_account(planned.account.clone(), Default::default(), NOW) {
        Decided::Accepted(changes) => *changes,
        Decided::Refused(refusal) => panic!("{refusal:?}"),
    }
}

fn kinds(planned: &PlannedAccount) -> Vec<ImportFindingKind> {
    planned.oddities.iter().map(|oddity| oddity.kind).collect()
}

#[test]
fn balance_is_that_of_the_source_whatever_its_transactions_say() {
    use ImportFindingKind::{BalanceDiffers, NegativeBalance, PurchasedDiffers, UsedDiffers};
    let usual = vec![row("purchase_topup", 10.0), row("signup_bonus", 2.0), row("usage", -0.1), row("usage", -0.2)];
    // balance, purchased, used, rows, used here, oddities
    let table = [
        (11.7, 10.0, 0.3, usual.clone(), 0.3, vec![]),
        // Drift of sums of doubles.
        (12.0 - 0.1 - 0.2, 10.0, 0.1 + 0.2, usual.clone(), 0.3, vec![]),
        (5.0, 10.0, 0.3, usual.clone(), 0.3, vec![BalanceDiffers]),
        // Old usage was deleted at the source.
        (6.7, 10.0, 5.3, usual.clone(), 5.3, vec![UsedDiffers]),
        // A total below the usage is no refund.
        (11.7, 10.0, 0.1, usual.clone(), 0.3, vec![UsedDiffers]),
        (12.7, 10.0, 0.0, usual.clone(), 0.3, vec![UsedDiffers, BalanceDiffers]),
        // The balance does not show the usage of the total.
        (11.7, 10.0, 9.0, usual.clone(), 0.3, vec![UsedDiffers]),
        (11.7, 25.0, 0.3, usual, 0.3, vec![PurchasedDiffers]),
        (-3.5, 0.0, 3.5, vec![], 3.5, vec![NegativeBalance, UsedDiffers]),
        (0.0, 0.0, 0.0, vec![], 0.0, vec![]),
    ];
    for (balance, purchased, used, rows, used_here, oddities) in table {
        let planned = planned(key(balance, purchased, used), &rows);
        let totals = changes(&planned).account.totals;
        assert!(planned.is_proved_by(&totals), "{balance}: {totals:?}");
        assert_eq!(totals.balance, real(balance).real().unwrap().credits);
        assert_eq!(totals.used, real(used_here).real().unwrap().credits, "{balance} {used}");
        assert_eq!(kinds(&planned), oddities, "{balance} {purchased} {used}");
        assert!(planned.account.usage.iter().all(|usage| usage.credits_used >= Credits::ZERO));
    }
}

#[test]
fn rounding_is_an_entry_of_its_own() {
    // Half an atom each: both round down to the even atom, and the balance has a whole one.
    let half = 1.0 / 4096.0;
    let planned = planned(key(2.0 * half, 2.0 * half, 0.0), &[row("purchase_a", half), row("purchase_b", half)]);
    assert_eq!(planned.rounding.atoms(), 1);
    let last = &planned.account.entries.last().unwrap().entry;
    assert_eq!((last.amount.atoms(), last.description.as_str()), (1, "Rounding of imported amounts"));
    assert_eq!(kinds(&planned), []);
}

#[test]
fn usage_becomes_daily_totals() {
    let mut other_day = row("usage", -0.5);
    other_day.created_at = Some("1793700000".to_owned());
    let rows = [row("usage", -0.25), row("usage", -0.25), other_day];
    let planned = planned(key(-1.0, 0.0, 1.0), &rows);
    let usage: Vec<_> =
        planned.account.usage.iter().map(|usage| (usage.day.to_string(), usage.calls, usage.credits_used)).collect();
    let half: Credits = "0.5".parse().unwrap();
    assert_eq!(usage, [("2026-11-02".to_owned(), 2, half), ("2026-11-03".to_owned(), 1, half)]);
}

#[test]
fn transactions_count_once() {
    let paid = |id: &str, hash: &str, chain: Cell| AgentHubTransaction {
        id: id.to_owned(),
        tx_hash: Some(hash.to_owned()),
        chain_id: chain,
        plan_id: Some("starter".to_owned()),
        ..row("purchase_topup", 1.0)
    };
    let hash = format!("0x{}", "1a".repeat(32));
    let rows = [
        paid("1", &hash, Cell::Integer(8453)),
        paid("2", &hash, Cell::Text("8453".to_owned())),
        paid("3", &hash, Cell::Real(1.0f64.to_bits())),
        paid("4", "0x12", Cell::Integer(8453)),
        paid("5", &hash, Cell::Null),
    ];
    let planned = planned(key(5.0, 5.0, 0.0), &rows);
    let chains: Vec<_> = planned.account.used_transactions.iter().map(|used| used.tx.chain_id).collect();
    assert_eq!(chains, [8453, 1]);
    use ImportFindingKind::{DuplicateTransaction, InvalidTransaction};
    assert_eq!(kinds(&planned), [DuplicateTransaction, InvalidTransaction, InvalidTransaction]);
    assert_eq!(changes(&planned).payments.len(), 2);
}

#[test]
fn what_is_odd_is_listed_and_imported() {
    let odd = AgentHubKey {
        session_name: None,
        email: Some("nobody".to_owned()),
        payer: Some("0x0000000000000000000000000000000000000000".to_owned()),
        per_minute: Cell::Text("many".to_owned()),
        created_at: Some("long ago".to_owned()),
        org_id: Some("org_aaaaaaaaaaaaaaaaaaaa".to_owned()),
        org_id_is_repeated: true,
        ..key(1.0, 0.0, 0.0)
    };
    let rows = [row("gift", 1.0), row("usage", f64::INFINITY)];
    let planned = planned(odd, &rows);
    use ImportFindingKind::{
        DuplicateId, InvalidAmount, InvalidEmail, InvalidLimit, InvalidPayer, InvalidTime, MissingSession, UnknownType,
    };
    let expected = [
        InvalidTime,
        UnknownType,
        InvalidAmount,
        InvalidPayer,
        DuplicateId,
        MissingSession,
        InvalidEmail,
        InvalidLimit,
    ];
    assert_eq!(kinds(&planned), expected);
    assert_eq!(planned.account.agent_name.as_str(), "imported-7");
    assert_ne!(planned.account.id, "org_aaaaaaaaaaaaaaaaaaaa".parse::<AccountId>().unwrap());
    assert!(planned.is_proved_by(&changes(&planned).account.totals));
}

#[test]
fn a_key_without_a_hash_or_a_balance_is_refused() {
    let table = [
        AgentHubKey { hash: "AB".repeat(32), ..key(1.0, 1.0, 0.0) },
        AgentHubKey { hash: "ab".repeat(31), ..key(1.0, 1.0, 0.0) },
        AgentHubKey { balance: Cell::Null, ..key(1.0, 1.0, 0.0) },
        AgentHubKey { balance: real(f64::NAN), ..key(1.0, 1.0, 0.0) },
        AgentHubKey { balance: real(1e300), ..key(1.0, 1.0, 0.0) },
    ];
    for key in table {
        let refused = AgentHubPlanner::new(key.clone(), UsageSign::Negative, NOW).unwrap_err();
        assert_eq!(refused.kind, ImportFindingKind::Refused, "{key:?}");
    }
}

#[test]
fn ids_and_the_names_of_quotes_are_kept_and_placeholders_are_no_addresses() {
    let id = format!("org_{}", "0123456789ab".repeat(2));
    let paid = AgentHubKey {
        session_id: Some(SHARED_SESSION.to_owned()),
        session_name: Some("pay-rail".to_owned()),
        quote_name: Some("bought-by-me".to_owned()),
        email: Some("pay-rail-anon+0123@agent.local".to_owned()),
        org_id: Some(id.clone()),
        ..key(1.0, 1.0, 0.0)
    };
    let account = planned(paid.clone(), &[row("purchase_pay_signup", 1.0)]).account;
    assert_eq!((account.id.as_str(), account.agent_name.as_str()), (id.as_str(), "bought-by-me"));
    assert_eq!(account.email, None);
    let system = AgentHubKey { email: Some("system-placeholder@bds.internal".to_owned()), quote_name: None, ..paid };
    let account = planned(system, &[row("purchase_pay_signup", 1.0)]);
    // The name of a shared session belongs to no account.
    assert_eq!((account.account.agent_name.as_str(), account.account.email), ("imported-7", None));
    assert_eq!(account.oddities, []);
    let other = planned(AgentHubKey { org_id: Some("7".to_owned()), ..key(0.0, 0.0, 0.0) }, &[]);
    assert_eq!(kinds(&other), [ImportFindingKind::InvalidId]);
    assert!(other.oddities[0].detail.contains(other.account.id.as_str()));
    for text in ["org_0123456789abcdef0123456", "org_0123456789ABCDEF01234567", "org_0123456789abcdef0123456g"] {
        assert!(text.parse::<AccountId>().is_err(), "{text}");
    }
}
