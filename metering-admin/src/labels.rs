//! The display names of the actions of the audit log.

use std::collections::BTreeMap;

use crate::call::{AdminCall, Audit, OTHERS, Visitor};
use crate::calls;

/// The label of every action, by its name in the audit log.
///
/// ```
/// assert_eq!(metering_admin::labels()["account.grant"], "Granted credits");
/// ```
#[must_use]
pub fn labels() -> BTreeMap<&'static str, &'static str> {
    struct Collect(BTreeMap<&'static str, &'static str>);

    impl Visitor for Collect {
        fn call<C: AdminCall>(&mut self) {
            self.0.extend(C::AUDIT.map(|Audit { name, label }| (name, label)));
        }
    }

    let mut collect = Collect(OTHERS.iter().map(|Audit { name, label }| (*name, *label)).collect());
    calls::each(&mut collect);
    collect.0
}
