//! Calls are declared once, so what they say must fit together.

use std::collections::BTreeSet;

use metering_admin::{Authority, Call, Visitor, calls, labels};
use metering_core::operators::Role;

#[derive(Default)]
struct Check {
    places: BTreeSet<(String, &'static str)>,
    actions: BTreeSet<&'static str>,
}

impl Visitor for Check {
    fn call<C: Call>(&mut self) {
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
    assert_eq!(labels.len(), check.actions.len() + 4, "imports, reloads and assignments are no calls");
}
