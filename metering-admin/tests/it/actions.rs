//! The use cases of operators, on a memory store.

use std::sync::Arc;

use metering_admin::wire::{AuditEntryDocument, CreateAccountRequest, EntryRequest, LimitsRequest};
use metering_admin::{Action, AdminError, Administration, check_catalogue};
use metering_core::operators::{Actor, Role};
use metering_core::payments::{Plan, PlanKey};
use metering_core::{AccountId, Catalogue, Clock, Credits, SystemClock, SystemRandomness};
use metering_sqlite::SqliteStore;

fn administration() -> Administration {
    Administration::new(Arc::new(SqliteStore::in_memory().unwrap()))
}

fn action() -> Action {
    Action::new(Actor::Operator("jo".parse().unwrap()), "Ticket 311").unwrap()
}

fn credits(text: &str) -> Credits {
    text.parse().unwrap()
}

fn entry(amount: &str, note: Option<&str>) -> EntryRequest {
    EntryRequest { credits: credits(amount), note: note.map(str::to_owned), reason: String::new() }
}

async fn open(administration: &Administration, name: &str) -> AccountId {
    let request = CreateAccountRequest { agent_name: name.to_owned(), ..CreateAccountRequest::default() };
    administration.create_account(&action(), &request).await.unwrap().0.id
}

async fn last_entry(administration: &Administration) -> AuditEntryDocument {
    administration.audit_log(None, None, 1).await.unwrap().entries.remove(0)
}

fn field(json: &Option<Box<serde_json::value::RawValue>>, name: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(json.as_ref().expect("there is a document").get()).unwrap();
    json[name].to_string()
}

#[tokio::test]
async fn an_action_is_logged_with_what_it_changed() {
    let administration = administration();
    let id = open(&administration, "my-agent").await;
    let created = last_entry(&administration).await;
    assert_eq!((created.action.as_str(), created.subject.as_str()), ("account.create", id.as_str()));
    assert!(created.before.is_none());

    let account = administration.grant(&action(), &id, &entry("2.5", None)).await.unwrap();
    assert_eq!(account.totals.granted, credits("2.5"));
    let logged = last_entry(&administration).await;
    assert_eq!((logged.actor.as_str(), logged.reason.as_str()), ("operator:jo", "Ticket 311"));
    assert_eq!(field(&logged.before, "credit_balance"), "0");
    let outcome = logged.outcome.unwrap();
    assert_eq!((outcome.result.as_str(), outcome.detail.as_str()), ("done", ""));
    assert_eq!(field(&outcome.after, "credit_balance"), "2.5");
    let ledger = administration.ledger(&id, None, 10).await.unwrap();
    assert_eq!(ledger.entries[0].description, "Granted by the operator");
}

#[tokio::test]
async fn a_refused_action_is_logged_and_changes_nothing() {
    let administration = administration();
    let id = open(&administration, "my-agent").await;
    administration.revoke_account(&action(), &id).await.unwrap();
    let refused = administration.grant(&action(), &id, &entry("1", None)).await.unwrap_err();
    assert!(matches!(refused, AdminError::Conflict(_)), "{refused}");
    let outcome = last_entry(&administration).await.outcome.unwrap();
    assert_eq!((outcome.result.as_str(), outcome.detail), ("refused", refused.to_string()));
    assert!(outcome.after.is_none());
    assert_eq!(administration.audit_log(None, None, 100).await.unwrap().entries.len(), 3, "one entry for each action");
    assert_eq!(administration.account(&id).await.unwrap().totals.granted, Credits::ZERO);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_actions_on_one_account_name_the_exact_balances() {
    let administration = administration();
    let id = open(&administration, "my-agent").await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (administration, id) = (administration.clone(), id.clone());
        tasks.spawn(async move { administration.grant(&action(), &id, &entry("1", None)).await.unwrap() });
    }
    tasks.join_all().await;
    let log = administration.audit_log(None, None, 16).await.unwrap().entries;
    for (before, entry) in log.into_iter().rev().enumerate() {
        let (logged, outcome) = (field(&entry.before, "credit_balance"), entry.outcome.unwrap());
        let after = field(&outcome.after, "credit_balance");
        assert_eq!((logged, after), (before.to_string(), (before + 1).to_string()));
    }
}

#[tokio::test]
async fn invalid_requests_are_refused_before_anything_is_logged() {
    let administration = administration();
    let id = open(&administration, "my-agent").await;
    let before = last_entry(&administration).await.id;
    let long = "a".repeat(501);
    for (change, granted) in [
        (entry("0", Some("x")), true),
        (entry("-1", Some("x")), true),
        (entry("0", Some("x")), false),
        (entry("1", None), false),
        (entry("1", Some(" ")), false),
        (entry("1", Some("two\nlines")), false),
        (entry("1", Some(&long)), true),
    ] {
        let result = match granted {
            true => administration.grant(&action(), &id, &change).await,
            false => administration.adjust(&action(), &id, &change).await,
        };
        assert!(matches!(result, Err(AdminError::Invalid(_))), "{change:?}: {result:?}");
    }
    let unknown = AccountId::generate(&SystemRandomness);
    let result = administration.grant(&action(), &unknown, &entry("1", None)).await;
    assert!(matches!(result, Err(AdminError::NoSuchAccount(_))), "{result:?}");
    assert_eq!(last_entry(&administration).await.id, before);
}

#[test]
fn operators_must_give_a_reason_and_the_command_line_may() {
    let jo = || Actor::Operator("jo".parse().unwrap());
    for text in ["", "  ", "two\nlines", &"a".repeat(501)] {
        assert!(matches!(Action::new(jo(), text), Err(AdminError::Invalid(_))), "{text:?}");
    }
    assert_eq!(Action::new(Actor::CommandLine("root".to_owned()), "").unwrap().reason(), "");
    assert!(Action::new(Actor::CommandLine("root".to_owned()), "two\nlines").is_err());
}

#[tokio::test]
async fn accounts_are_found_by_what_is_known_of_them() {
    let administration = administration();
    for number in 0..30 {
        open(&administration, &format!("Agent-{number:02}")).await;
    }
    let request = CreateAccountRequest {
        agent_name: "other".to_owned(),
        email: Some("Jo@Example.com".to_owned()),
        ..CreateAccountRequest::default()
    };
    let (other, _) = administration.create_account(&action(), &request).await.unwrap();
    let found = async |search: &str| {
        let page = administration.accounts(Some(search), None, 100).await.unwrap();
        page.items.into_iter().map(|account| account.agent_name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(found("jo@example.COM").await, ["other"]);
    assert_eq!(found(&other.id.as_str()[4..20]).await, ["other"]);
    assert_eq!(found("agent-07").await, ["Agent-07"]);
    assert_eq!(found(" AGENT ").await.len(), 30);
    assert!(found("nobody").await.is_empty());

    // Every match once, with any page size.
    for limit in [1, 3, 7, 100] {
        let (mut names, mut after) = (Vec::new(), None);
        loop {
            let page = administration.accounts(Some("agent-"), after.as_ref(), limit).await.unwrap();
            names.extend(page.items.into_iter().map(|account| account.agent_name.to_string()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(names, (0..30).map(|number| format!("Agent-{number:02}")).collect::<Vec<_>>(), "limit {limit}");
    }
}

#[tokio::test]
async fn limits_keys_and_plans_are_changed() {
    let administration = administration();
    let id = open(&administration, "my-agent").await;
    let limits = LimitsRequest { requests_per_minute: Some(5), ..LimitsRequest::default() };
    let account = administration.set_limits(&action(), &id, &limits).await.unwrap();
    assert_eq!((account.limits.requests_per_minute, account.limits.requests_per_day), (5, 1_500_000));
    let (_, key) = administration.rotate_key(&action(), &id).await.unwrap();
    assert_eq!(administration.store().live_keys(&[key.hash()], SystemClock.now()).await.unwrap(), [true]);
    let logged = serde_json::to_string(&administration.audit_log(None, None, 100).await.unwrap()).unwrap();
    assert!(!logged.contains("sk_live"), "a key is in the audit log: {logged}");

    let plan: Plan = serde_json::from_str(
        r#"{"id": "starter", "chain_id": 1, "token_symbol": "ETH", "payment_kind": "native_value", "credits": 10,
            "token_amount": "0.1", "token_decimals": 18, "label": "Starter"}"#,
    )
    .unwrap();
    let key = PlanKey { id: "starter".to_owned(), chain_id: 1 };
    assert!(matches!(administration.remove_plan(&action(), &key).await, Err(AdminError::NoSuchPlan(_))));
    administration.put_plan(&action(), plan.clone()).await.unwrap();
    administration.set_plan_active(&action(), &key, false).await.unwrap();
    assert_eq!(administration.plans().await.unwrap(), [Plan { active: false, ..plan.clone() }]);
    let entry = last_entry(&administration).await;
    assert_eq!((entry.action.as_str(), entry.subject.as_str()), ("plan.deactivate", "plan:starter@1"));
    let after: Plan = serde_json::from_str(entry.outcome.unwrap().after.unwrap().get()).unwrap();
    assert_eq!(after, Plan { active: false, ..plan.clone() });
    let invalid = Plan { token_decimals: 0, ..plan };
    assert!(matches!(administration.put_plan(&action(), invalid).await, Err(AdminError::Invalid(_))));
    administration.remove_plan(&action(), &key).await.unwrap();
    assert_eq!(administration.plans().await.unwrap(), []);
}

#[tokio::test]
async fn an_operator_is_created_once_gets_a_new_token_and_is_revoked() {
    let administration = administration();
    let name = || "jo".parse().unwrap();
    let (operator, token) = administration.create_operator(&action(), name(), Role::Viewer).await.unwrap();
    let again = administration.create_operator(&action(), name(), Role::Manager).await;
    assert!(matches!(again, Err(AdminError::Conflict(_))), "{again:?}");
    assert_eq!(administration.operator_by_token(&token.hash()).await.unwrap(), Some(operator));
    let (operator, fresh) = administration.rotate_operator_token(&action(), &name()).await.unwrap();
    assert_eq!(administration.operator_by_token(&token.hash()).await.unwrap(), None);
    assert_eq!(administration.operator_by_token(&fresh.hash()).await.unwrap(), Some(operator));
    administration.revoke_operator(&action(), &name()).await.unwrap();
    let revoked = administration.rotate_operator_token(&action(), &name()).await;
    assert!(matches!(revoked, Err(AdminError::Conflict(_))), "{revoked:?}");
    assert_eq!(administration.operator_by_token(&token.hash()).await.unwrap(), None);
    let unknown = administration.revoke_operator(&action(), &"mo".parse().unwrap()).await;
    assert!(matches!(unknown, Err(AdminError::NotFound(_))), "{unknown:?}");
    let logged = serde_json::to_string(&administration.audit_log(Some("operator:jo"), None, 100).await.unwrap());
    let logged = logged.unwrap();
    assert!(!logged.contains(token.expose()) && !logged.contains(fresh.expose()), "{logged}");
    assert!(logged.matches("\"id\"").count() == 5, "{logged}");
}

#[tokio::test]
async fn the_audit_log_is_paged_and_filtered() {
    let administration = administration();
    let first = open(&administration, "one").await;
    let second = open(&administration, "two").await;
    for _ in 0..3 {
        administration.grant(&action(), &first, &entry("1", None)).await.unwrap();
    }
    let page = administration.audit_log(None, None, 2).await.unwrap();
    assert_eq!((page.entries.len(), page.next), (2, Some(page.entries[1].id)));
    let rest = administration.audit_log(None, page.next, 100).await.unwrap();
    assert_eq!((rest.entries.len(), rest.next), (3, None));
    assert_eq!(administration.audit_log(Some(second.as_str()), None, 100).await.unwrap().entries.len(), 1);
    assert_eq!(administration.audit_log(Some(first.as_str()), None, 4).await.unwrap().next, None);
}

#[test]
fn a_catalogue_is_compared_with_the_one_served() {
    let route = |path: &str, weight: &str| {
        format!(r#"{{"path": "{path}", "method": "GET", "metered": true, "credit_weight": {weight}}}"#)
    };
    let catalogue =
        |routes: &[String]| format!(r#"{{"market": "M", "version": 1, "endpoints": [{}]}}"#, routes.join(", "));
    let served = Catalogue::from_json(&catalogue(&[route("/a", "1"), route("/b", "72"), route("/c", "1")])).unwrap();
    let check =
        check_catalogue(&served, &catalogue(&[route("/b", "144"), route("/c", "1"), route("/d", "72")]), |_| None);
    let changes: Vec<_> = check.changes.iter().map(|change| (&*change.route_template, &*change.change)).collect();
    assert_eq!(changes, [("/a", "removed"), ("/b", "price"), ("/d", "added")]);
    assert_eq!((check.valid, check.routes), (true, 3));
    assert_eq!(check.changes[1].price_after.as_deref(), Some("0.02"));
    let invalid = check_catalogue(&served, &catalogue(&[route("/a", "\"heavy\"")]), |_| None);
    assert!(!invalid.valid && invalid.problem.unwrap().contains("credit_weight"));
}
