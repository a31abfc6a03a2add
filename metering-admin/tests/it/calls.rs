//! Calls are declared once, so what they say must fit together.

use std::collections::BTreeSet;

use metering_admin::calls::keys::{KeysPage, ListKeys};
use metering_admin::calls::plans::{OfPlan, RemovePlan};
use metering_admin::{AdminCall, Authority, Bounded, Parameters, RequestParameters, Visitor, calls, labels, target};
use metering_core::operators::Role;
use metering_core::store::Cursor;
use metering_core::{AccountId, SystemRandomness};

#[derive(Default)]
struct Check {
    places: BTreeSet<(String, &'static str)>,
    actions: BTreeSet<&'static str>,
}

impl Visitor for Check {
    fn call<C: AdminCall>(&mut self) {
        assert!(self.places.insert((C::METHOD.to_string(), C::PATH)), "{} is there twice", C::ID);
        assert_eq!(C::AUDIT.is_some(), C::By::ROLE == Role::Manager, "{}: actions are logged, and nothing else", C::ID);
        if let Some(audit) = C::AUDIT {
            assert!(self.actions.insert(audit.name), "{} is there twice", audit.name);
        }
    }
}

#[test]
fn calls_are_declared_once_and_actions_have_labels() {
    let mut check = Check::default();
    calls::each(&mut check);
    let labels = labels();
    assert!(check.actions.iter().all(|name| labels.contains_key(name)));
    assert_eq!(
        labels.len(),
        check.actions.len() + 9,
        "imports, reloads, assignments, payments of processors and epochs of the log are not calls"
    );
}

#[test]
fn parameters_are_read_as_they_were_written() {
    let id = AccountId::generate(&SystemRandomness);
    let page = KeysPage { id: id.clone(), after: Some(Cursor::new("a b&c".to_owned())), limit: Bounded(7) };
    let written = target::<ListKeys>(&page);
    assert_eq!(written, format!("/admin/accounts/{id}/keys?after=a%20b%26c&limit=7"));
    let (_, query) = written.split_once('?').unwrap();
    let read = KeysPage::read(&RequestParameters::to::<ListKeys>(&[id.to_string()], query)).unwrap();
    assert_eq!((read.id, read.after, read.limit), (page.id, page.after, page.limit));
    let plan = OfPlan { chain_id: 1, id: "a/{id}".to_owned() };
    assert_eq!(target::<RemovePlan>(&plan), "/admin/plans/1/a%2F%7Bid%7D/remove");
}

#[test]
fn parameters_are_checked() {
    let id = AccountId::generate(&SystemRandomness).to_string();
    let id = id.as_str();
    let keys = |id: &str, query| KeysPage::read(&RequestParameters::to::<ListKeys>(&[id.to_owned()], query));
    assert_eq!(keys(id, "").unwrap().limit, Bounded(100));
    // id, query, the field that is not valid
    let table = [
        ("org_x", "", "id"),
        (id, "limit=0", "limit must be from 1 to 1000"),
        (id, "limit=1001", "limit must be from 1 to 1000"),
        (id, "limit=+1", "limit must be a whole number"),
        (id, "limit=", "limit must be a whole number"),
        (id, "limit=1&limit=2", "limit must be given once"),
    ];
    for (id, query, problem) in table {
        let error = keys(id, query).unwrap_err().to_string();
        assert!(error.contains(problem), "{query}: {error}");
    }
}
