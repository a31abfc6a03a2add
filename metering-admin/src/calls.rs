//! The calls of the operators' API, by subject.

pub mod accounts;
pub mod keys;
pub mod operators;
pub mod plans;
pub mod prices;
pub mod refills;
mod register;
pub mod reports;
pub mod search;
pub mod webhooks;

use crate::call::Visitor;

/// Shows every call to a visitor.
pub fn each(visitor: &mut impl Visitor) {
    accounts::each(visitor);
    keys::each(visitor);
    plans::each(visitor);
    refills::each(visitor);
    prices::each(visitor);
    webhooks::each(visitor);
    reports::each(visitor);
    search::each(visitor);
    operators::each(visitor);
}
