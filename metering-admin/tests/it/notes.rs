//! Notes of operators on accounts.

use std::sync::Arc;

use metering_admin::wire::{CreateAccountRequest, EraseRequest};
use metering_admin::{Action, AdminError, Administration};
use metering_core::operators::Actor;
use metering_core::{AccountId, Service, SystemRandomness};
use metering_sqlite::SqliteStore;

fn action() -> Action {
    Action::new(Actor::Operator("jo".parse().unwrap()), "Ticket 311").unwrap()
}

async fn texts(administration: &Administration, id: &AccountId) -> Vec<String> {
    let notes = administration.account_with_notes(id).await.unwrap().notes;
    assert!(notes.iter().all(|note| note.by.as_deref() == Some("operator:jo")), "{notes:?}");
    notes.into_iter().map(|note| note.text).collect()
}

#[tokio::test]
async fn notes_are_shown_exported_and_erased() {
    let store = Arc::new(SqliteStore::in_memory().unwrap());
    let administration = Administration::new(Arc::clone(&store) as _);
    let request = |name: &str| CreateAccountRequest { agent_name: name.to_owned(), ..CreateAccountRequest::default() };
    let (account, key) = administration.create_account(&action(), &request("my-agent")).await.unwrap();
    let (other, _) = administration.create_account(&action(), &request("other")).await.unwrap();
    for text in ["Pays by bank transfer", " Asked for an invoice "] {
        administration.write_note(&action(), &account.id, text).await.unwrap();
    }
    assert_eq!(texts(&administration, &account.id).await, ["Asked for an invoice", "Pays by bank transfer"]);
    assert_eq!(texts(&administration, &other.id).await, [""; 0]);
    let log = administration.audit_log(Some(account.id.as_str()), None, 1).await.unwrap();
    assert_eq!((log.entries[0].action.as_str(), log.entries[0].reason.as_str()), ("account.note", "Ticket 311"));

    let service = Service::with_defaults(Arc::clone(&store) as _);
    assert_eq!(service.export(Some(&key)).await.unwrap().notes, None, "this service has none");
    let exported = service.with_notes(store).export(Some(&key)).await.unwrap().notes.unwrap();
    assert_eq!(
        exported.iter().map(|note| &*note.text).collect::<Vec<_>>(),
        ["Asked for an invoice", "Pays by bank transfer"]
    );
    assert!(exported.iter().all(|note| note.by.is_none()), "the owner does not see who wrote it");

    let request = EraseRequest { receipts: false, reason: String::new() };
    administration.erase_account(&action(), &account.id, &request).await.unwrap();
    assert_eq!(texts(&administration, &account.id).await, [""; 0]);
}

#[tokio::test]
async fn a_note_is_one_line_on_an_account_that_exists() {
    let administration = Administration::new(Arc::new(SqliteStore::in_memory().unwrap()));
    let nobody = AccountId::generate(&SystemRandomness);
    let missing = administration.write_note(&action(), &nobody, "x").await.unwrap_err();
    assert!(matches!(missing, AdminError::NoSuchAccount(_)), "{missing}");
    for text in ["", " ", "two\nlines", &"a".repeat(501)] {
        let refused = administration.write_note(&action(), &nobody, text).await.unwrap_err();
        assert_eq!(refused.to_string(), "note must be one line of 1 to 500 characters", "{text}");
    }
    assert!(administration.audit_log(None, None, 10).await.unwrap().entries.is_empty());
}
