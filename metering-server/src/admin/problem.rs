//! Errors of administration as responses.

use metering_admin::AdminError;
use metering_admin::payments::{AssignError, ScanError};
use metering_core::wire::ErrorCode;
use metering_core::{Error, StoreError};

use crate::http::Problem;

impl From<AdminError> for Problem {
    fn from(error: AdminError) -> Self {
        let code = match error {
            AdminError::NoSuchAccount(_) | AdminError::NoSuchPlan(_) | AdminError::NotFound(_) => ErrorCode::NotFound,
            AdminError::Conflict(_) | AdminError::OutOfRange(_) => ErrorCode::Conflict,
            AdminError::Invalid(_) => ErrorCode::ValidationFailed,
            AdminError::Forbidden(_) => ErrorCode::Forbidden,
            AdminError::Request(error) => return error.into(),
            AdminError::Chain { .. } => ErrorCode::RpcError,
            AdminError::Store(StoreError::UnknownCursor) => return unknown_cursor(),
            AdminError::Store(StoreError::OutOfRange(problem)) => return Error::field("days", problem).into(),
            AdminError::Store(error) if error.outcome_is_unknown() => return unknown_outcome(error),
            AdminError::Store(error) => return Error::from(error).into(),
            _ => return Self::internal(),
        };
        Self::new(code, sentence(&error.to_string()))
    }
}

impl From<ScanError> for Problem {
    fn from(error: ScanError) -> Self {
        AdminError::from(error).into()
    }
}

impl From<AssignError> for Problem {
    fn from(error: AssignError) -> Self {
        let code = match error {
            AssignError::Unconfirmed(_) => Some(ErrorCode::PaymentUnconfirmed),
            // Other credits would do, so these are about the request.
            AssignError::OutOfRange { .. } | AssignError::PlanOutOfRange => Some(ErrorCode::ValidationFailed),
            _ => None,
        };
        match code {
            Some(code) => Self::new(code, sentence(&error.to_string())),
            None => AdminError::from(error).into(),
        }
    }
}

/// 503, without advice to try again: an action has no idempotency key.
fn unknown_outcome(error: StoreError) -> Problem {
    // Logs the cause.
    let _ = Error::from(error);
    let message = "A write to disk failed, so it is unknown whether this was done. Look at the audit log before you \
                   try again: it has an entry if this was done.";
    Problem::new(ErrorCode::OutcomeUnknown, message)
}

/// 400: `after` is nothing that a list has returned as `next`.
pub(super) fn unknown_cursor() -> Problem {
    Error::field("after", "must be the next of an earlier response").into()
}

/// The message with a capital letter and a full stop, as all messages of the API have.
pub(super) fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let stop = if message.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_codes_and_sentences() {
        // error, code, message
        let table = [
            (AdminError::NotFound("no account x".to_owned()), "not_found", "No account x."),
            (AdminError::Conflict("ähnlich".to_owned()), "conflict", "Ähnlich."),
            (AdminError::Invalid(String::new()), "validation_failed", "."),
            (AdminError::Invalid("done.".to_owned()), "validation_failed", "Done."),
        ];
        for (error, code, message) in table {
            let problem = Problem::from(error);
            assert_eq!((problem.code().as_str(), problem.message()), (code, message));
        }
    }
}
