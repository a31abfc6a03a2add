//! The calls of the operators' API, by subject.

pub mod accounts;
pub mod keys;
pub mod operators;
pub mod plans;
pub mod prices;
pub mod refills;
pub mod reports;
pub mod webhooks;

use metering_core::wire::ErrorCode;

use crate::call::Visitor;

/// 404, with nothing to add.
const NOT_FOUND: (ErrorCode, &str) = (ErrorCode::NotFound, "");

/// Shows every call to a visitor.
pub fn each(visitor: &mut impl Visitor) {
    accounts::each(visitor);
    keys::each(visitor);
    plans::each(visitor);
    refills::each(visitor);
    prices::each(visitor);
    webhooks::each(visitor);
    reports::each(visitor);
    operators::each(visitor);
}

/// Shows the calls of a subject to a visitor.
macro_rules! register {
    ($($call:ty),* $(,)?) => {
        pub(super) fn each(visitor: &mut impl $crate::call::Visitor) {
            $(visitor.call::<$call>();)*
        }
    };
}

use register;
