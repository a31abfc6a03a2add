//! Failures that several commands report in the same words.

use metering_core::AccountId;
use metering_core::payments::PlanKey;

use crate::failure::Failure;

/// The failure for an account that does not exist.
pub(super) fn no_account(id: &AccountId) -> Failure {
    Failure::NotFound(format!("no account {id}; `metering admin account list` shows all accounts"))
}

/// The failure for a plan that does not exist.
pub(super) fn no_plan(key: &PlanKey) -> Failure {
    Failure::NotFound(format!("no plan {key}; `metering admin plan list --all` shows all plans"))
}

/// The failure for usage that cannot be added up.
pub(super) fn out_of_range() -> Failure {
    Failure::Failed("the sum of the usage is out of range; request fewer days".to_owned())
}
