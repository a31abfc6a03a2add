//! The reasons why a chain was not scanned or a payment not assigned, with the exit code and the options that help.

use metering_admin::payments::{AssignError, ScanError};

use super::chains;
use crate::admin::failures::{no_account, no_plan};
use crate::failure::Failure;

pub(in crate::admin) fn of_scan(error: ScanError) -> Failure {
    match error {
        ScanError::NotConfirmed { .. } => Failure::Usage(error.to_string()),
        ScanError::Backwards { .. } => Failure::Usage(format!("--from-{error}")),
        ScanError::Store(error) => error.into(),
        ScanError::Chain { chain, error } => chains::unreadable(&chain, &error),
        error => Failure::Failed(error.to_string()),
    }
}

pub(in crate::admin) fn of_assignment(error: AssignError) -> Failure {
    let text = error.to_string();
    match error {
        AssignError::NoSuchPlan(key) => no_plan(&key),
        AssignError::NoSuchAccount(id) => no_account(&id),
        AssignError::UnknownTransaction { .. } => Failure::NotFound(text),
        AssignError::Revoked { .. } | AssignError::Used { .. } => Failure::Conflict(text),
        AssignError::Quoted(_) => Failure::Conflict(format!("{text}; to assign it anyway, add --despite-quote")),
        AssignError::TopUpQuoted(_) => {
            Failure::Conflict(format!("{text}; assign it to that account, or add --despite-quote"))
        }
        AssignError::TooLittle { .. } => Failure::Failed(format!("{text}; use --credits to say what that is worth")),
        AssignError::Unclear(_) => {
            Failure::Failed(format!("{text}; to credit it anyway, use `metering admin account grant`"))
        }
        AssignError::Several(_) => Failure::Failed(format!("{text}; choose one with --plan")),
        AssignError::Store(error) => error.into(),
        AssignError::Chain { chain, error } => chains::unreadable(&chain, &error),
        _ => Failure::Failed(text),
    }
}
