//! Contracts for erasing the personal data of the owner of an account, and for deleting data that is older than its
//! retention.

use std::sync::Arc;

use metering_core::access::{Account, AccountId, AgentName, Payer};
use metering_core::chains::Address;
use metering_core::money::LedgerKind;
use metering_core::operators::{Actor, AuditOutcome, AuditQuery, AuditResult, ErasedPart, NewAuditEntry, Retention};
use metering_core::payments::{Buyer, SavedCard, TopUpCharge, TopUpChargeState};
use metering_core::store::{FullStore, NewAccount, OperatorStore, Store, TopUpEnd};

use super::auto_top_ups::{begin, payment, turn_on};
use super::browser_sessions;
use super::event_scene::{claim_one, delivered, deliveries, events, finish, hook, send_tests};
use super::key_scene::{caller, issue};
use super::oauth_records::grant_of;
use super::scene::{
    Customer, DAY, MINUTE, NOON, Verified, accepted, account, charge_on, create, customer, entry, line, new_account,
    new_id, post,
};

const EMAIL: &str = "Jo@example.com";

fn owner() -> NewAccount {
    let (agent_name, email) = ("jo-smith".parse().unwrap(), Some(EMAIL.parse().unwrap()));
    let payer = Some(Payer { address: Address::from_bytes([7; 20]), chain_id: 8453 });
    NewAccount { agent_name, email, payer, entries: vec![entry(LedgerKind::SignupBonus, 100)], ..new_account() }
}

fn buyer() -> Option<Buyer> {
    Some(Buyer::new("Jo Smith", &["1 High Street", "Oxford"], None).unwrap())
}

/// Logs an action on an account whose entry has the owner's name.
async fn logged(store: &dyn OperatorStore, subject: &AccountId, reason: &str) {
    let entry = NewAuditEntry {
        at: NOON,
        actor: Actor::Operator("ann".parse().unwrap()),
        action: "account.create".to_owned(),
        subject: subject.to_string(),
        reason: reason.to_owned(),
        request: r#"{"agent_name":"an-agent"}"#.to_owned(),
        before: Some("{}".to_owned()),
    };
    let after = Some(r#"{"agent_name":"an-agent"}"#.to_owned());
    let outcome = AuditOutcome { at: NOON, result: AuditResult::Done, detail: "a detail".to_owned(), after };
    store.log_action(entry, outcome).await.unwrap();
}

/// The paths of the requests in an account's recent activity.
async fn paths(store: &dyn Store, id: &AccountId) -> Vec<String> {
    let entries = store.activity(id, 100).await.unwrap();
    entries.into_iter().filter_map(|entry| entry.request_path).map(|path| path.to_string()).collect()
}

fn counted(parts: &[ErasedPart]) -> Vec<(&'static str, u64)> {
    parts.iter().map(|part| (part.kind, part.records)).collect()
}

/// No data of the owner is left, but the id, the balance and the postings are. Other accounts keep their data.
pub async fn an_erased_account_keeps_only_its_postings(store: Verified<dyn FullStore>) {
    let new = owner();
    let owner = Customer { id: new.id.clone(), key: new.key };
    create(&*store, new).await;
    let other = customer(&*store, 100).await;
    for customer in [&owner, &other] {
        let request = charge_on(customer.key, 5, line("/people/{name}")).with_path("/people/jo");
        accepted(&*store, request, NOON).await;
    }
    let mut terms = caller();
    terms.networks = "192.0.2.0/24".parse().unwrap();
    issue(&*store, &owner.id, None, terms).await;
    let webhook = hook(&*store, &owner.id, &[]).await;
    send_tests(&*store, &webhook, 1).await;
    let session = browser_sessions::new(NOON).of_key(owner.id.clone(), owner.key);
    assert!(store.open_browser_session(session).await.unwrap());
    assert!(store.set_buyer(&owner.id, buyer(), NOON).await.unwrap());
    logged(&*store, &owner.id, "").await;
    logged(&*store, &other.id, "a friend of jo@example.com").await;
    logged(&*store, &other.id, "a friend of mojo@example.com").await;

    let before = account(&*store, &owner.id).await;
    let expected = [
        ("deliveries", 1),
        ("events", 3),
        ("webhooks", 1),
        ("browser_sessions", 1),
        ("buyers", 1),
        ("keys", 2),
        ("profile", 1),
        ("activity", 1),
        ("audit_entries", 2),
    ];
    let trial = store.erasure(&owner.id, false).await.unwrap().expect("the account exists");
    assert_eq!((counted(&trial.parts), &trial.account), (expected.to_vec(), &before));
    assert_eq!(account(&*store, &owner.id).await, before, "counting changes nothing");

    let erased = store.erase_account(&owner.id, false, NOON).await.unwrap().expect("the account exists");
    assert_eq!(counted(&erased.parts), expected);
    let after = account(&*store, &owner.id).await;
    let Account { agent_name, email, payer, totals, revoked_at, erased_at, .. } = &after;
    assert_eq!((agent_name.as_str(), email, payer), (AgentName::ERASED, &None, &None));
    assert_eq!((*totals, *revoked_at, *erased_at), (before.totals, Some(NOON), Some(NOON)));
    assert_eq!(erased.account, after);
    assert_eq!(paths(&*store, &owner.id).await, ["/people/{name}"]);
    assert_eq!(paths(&*store, &other.id).await, ["/people/jo"]);
    assert_eq!((events(&*store, &owner.id).await.len(), store.webhooks(Some(&owner.id)).await.unwrap().len()), (0, 0));
    assert_eq!(store.browser_sessions(&owner.id).await.unwrap(), []);
    assert!(!store.set_buyer(&owner.id, buyer(), NOON).await.unwrap(), "of a request that began before");
    assert_eq!(store.buyers(&owner.id).await.unwrap(), []);
    let log = store.audit_log(&AuditQuery::default(), 10).await.unwrap();
    let kept: Vec<_> = log.iter().map(|entry| (entry.entry.reason.as_str(), entry.entry.request.as_str())).collect();
    let whole = r#"{"agent_name":"an-agent"}"#;
    assert_eq!(kept, [("a friend of mojo@example.com", whole), ("", "{}"), ("", "{}")]);
    assert_eq!((log[2].entry.action.as_str(), &log[2].entry.subject), ("account.create", &owner.id.to_string()));
    assert_eq!((&log[2].entry.before, &log[2].outcome.as_ref().unwrap().after), (&None, &None));

    let later = NOON.saturating_add(MINUTE);
    let again = store.erase_account(&owner.id, true, later).await.unwrap().expect("the account exists");
    assert_eq!((again.parts, again.account), (Vec::new(), after));
    let namesake = NewAccount { email: Some(EMAIL.parse().unwrap()), ..new_account() };
    create(&*store, namesake).await;
    assert_eq!(store.erasure(&new_id(), true).await.unwrap(), None);
    assert_eq!(store.erase_account(&new_id(), true, NOON).await.unwrap(), None);
}

/// The card and its rule are gone, also from charges once these have ended, and so is what programs were given. Charges keep
/// what was bought.
pub async fn an_erased_account_has_no_card_and_no_programs(store: Arc<dyn FullStore>) {
    let [owner, other] = [customer(&*store, 1).await, customer(&*store, 1).await];
    let mut open = Vec::new();
    for customer in [&owner, &other] {
        turn_on(&*store, &customer.id).await;
        let paid = begin(&*store, &customer.id, NOON).await.expect("it is due");
        let end = TopUpEnd::Paid(payment(&format!("pi_{}", customer.id)));
        assert!(store.end_top_up(paid.id, end, NOON).await.unwrap());
        open.push(begin(&*store, &customer.id, NOON).await.expect("it is due"));
        let grant = grant_of(&*store, customer.id.clone(), NOON.saturating_add(DAY)).await;
        store.put_oauth_grant(grant).await.unwrap();
    }
    let before = store.top_up_charges(&owner.id, NOON).await.unwrap();
    let erased = store.erase_account(&owner.id, false, NOON).await.unwrap().expect("the account exists");
    let parts = counted(&erased.parts);
    let ours = parts.into_iter().filter(|(kind, _)| ["oauth_grants", "saved_cards", "card_charges"].contains(kind));
    assert_eq!(ours.collect::<Vec<_>>(), [("oauth_grants", 1), ("saved_cards", 1), ("card_charges", 1)]);
    assert_eq!(store.auto_top_up(&owner.id).await.unwrap(), None);
    assert_eq!(store.oauth_grants(&owner.id).await.unwrap(), []);
    assert_eq!(store.open_top_ups(10).await.unwrap().len(), 2, "the processor is asked for the open one by its card");
    assert!(store.end_top_up(open[0].id, TopUpEnd::Paid(payment("pi_late")), NOON).await.unwrap());
    let after = store.top_up_charges(&owner.id, NOON).await.unwrap();
    assert_eq!(after.len(), before.len());
    for (was, is) in before.into_iter().zip(after) {
        let [customer, method, brand, last4] = [(); 4].map(|()| String::new());
        let (card, state, payment) = (SavedCard { customer, method, brand, last4 }, is.state, is.payment);
        assert_eq!(is, TopUpCharge { card, state, payment, ..was });
        assert_eq!(state, TopUpChargeState::Paid);
    }
    assert!(store.auto_top_up(&other.id).await.unwrap().is_some_and(|settings| settings.card.is_some()));
    assert_eq!(store.oauth_grants(&other.id).await.unwrap().len(), 1);
    assert_eq!(store.open_top_ups(10).await.unwrap(), open[1..]);
}

/// The buyer's details stay on receipts of purchases, unless receipts are to be erased too.
pub async fn receipts_keep_who_bought_unless_erased(store: Arc<dyn FullStore>) {
    let owner = customer(&*store, 100).await;
    store.set_buyer(&owner.id, buyer(), NOON).await.unwrap();
    let bought = NOON.saturating_add(MINUTE);
    post(&*store, &owner.id, entry(LedgerKind::PurchaseTopup, 5), bought).await;
    store.erase_account(&owner.id, false, bought).await.unwrap();
    assert_eq!(store.buyers(&owner.id).await.unwrap().len(), 1);
    let erased = store.erase_account(&owner.id, true, bought).await.unwrap().expect("the account exists");
    assert_eq!(counted(&erased.parts), [("buyers", 1)]);
    assert_eq!(store.buyers(&owner.id).await.unwrap(), []);
}

/// Only data that is older than its retention is deleted.
pub async fn older_records_are_deleted(store: Arc<dyn FullStore>) {
    let owner = customer(&*store, 100).await;
    let webhook = hook(&*store, &owner.id, &[]).await;
    send_tests(&*store, &webhook, 2).await;
    let due = claim_one(&*store, NOON).await;
    finish(&*store, &due, delivered(), NOON).await.unwrap();
    logged(&*store, &owner.id, "").await;
    let (kept, unlimited) = (Some(DAY), Retention::default());
    let end = NOON.saturating_add(DAY);
    let forget = async |kept, now| store.forget_older(&kept, now, None).await.unwrap();
    let all = Retention { activity: kept, events: kept, deliveries: kept, audit: kept };
    assert_eq!(forget(unlimited, end.saturating_add(DAY)).await, (0, None));
    assert_eq!(forget(all, end.saturating_sub(MINUTE)).await, (0, None));
    assert_eq!(forget(Retention { deliveries: kept, ..unlimited }, end).await, (1, None), "one is still to be sent");
    assert_eq!((deliveries(&*store, None).await.len(), events(&*store, &owner.id).await.len()), (1, 3));
    assert_eq!(forget(Retention { events: kept, ..unlimited }, end).await, (3, None));
    assert_eq!((deliveries(&*store, None).await.len(), events(&*store, &owner.id).await.len()), (0, 0));
    assert_eq!(forget(Retention { audit: kept, ..unlimited }, end).await, (1, None));
    assert_eq!(store.audit_log(&AuditQuery::default(), 10).await.unwrap(), []);
}
