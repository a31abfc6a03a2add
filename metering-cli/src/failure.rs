//! How commands fail: a sentence for people and an exit code for programs.

use std::io;

use metering_client::{ClientError, Refusal};
use metering_config::ConfigError;
use metering_core::StoreError;

use crate::client::paying::codes::{INTERRUPTED_CODE, LIMIT_CODE, NOT_MADE_CODE};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Anything without a specific exit code.
    #[error("{0}")]
    Failed(String),
    /// The arguments contradict each other. clap reports all other misuse, with the same exit code.
    #[error("{0}")]
    Usage(String),
    /// The books do not add up.
    #[error("{0}")]
    Discrepancies(String),
    /// The account, key, request, plan, chain or transaction does not exist.
    #[error("{0}")]
    NotFound(String),
    /// A conflict with something that exists.
    #[error("{0}")]
    Conflict(String),
    /// The key is missing, the service rejects it, or it may not be used for this.
    #[error("{0}")]
    Unauthorized(String),
    /// The account has too few credits left, or the key's limit is used up.
    #[error("{0}")]
    NoCredits(String),
    /// A payment is over a limit that the user set.
    #[error("{0}")]
    OverLimit(String),
    /// May succeed later: the service is busy or unreachable, a rate limit is reached, a payment is not confirmed yet.
    #[error("{0}")]
    TryLater(String),
    /// The user stopped it. Running the command again continues.
    #[error("{0}")]
    Interrupted(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Standard output failed. No other I/O error may be converted to this with `?`.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

/// The exit codes, as `metering --help` lists them. They are part of the interface: scripts branch on them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed: the store is missing or unavailable, a file cannot be read, ...
  2  usage: an argument is missing, unknown or malformed
  3  discrepancies: the books do not add up
  4  not found: no such account, key, request, plan, chain or transaction
  5  conflict: the email address is taken, the account is revoked, the payment was used before, the file exists
  6  not authorized: the API key is missing or rejected, or may not be used for this
  7  too few credits left: top up, then run the command again; or the key's own limit is used up
  8  try again later: a rate limit is reached, the service is busy or unreachable, a payment is not confirmed yet
  9  over a limit on payments: --max, or the daily limit
  130  interrupted: run the command again to continue

Errors are one line on stderr, also with --json; programs should check the exit code.";

impl Failure {
    /// The exit code. clap uses 2 as well.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) | Self::Store(_) | Self::Output(_) => 1,
            Self::Usage(_) => 2,
            Self::Discrepancies(_) => 3,
            Self::NotFound(_) => 4,
            Self::Conflict(_) => 5,
            Self::Unauthorized(_) => 6,
            Self::NoCredits(_) => 7,
            Self::TryLater(_) => 8,
            Self::OverLimit(_) => 9,
            Self::Interrupted(_) => 130,
        }
    }

    /// Appends a sentence.
    pub(crate) fn and(mut self, more: &str) -> Self {
        match &mut self {
            Self::Failed(text)
            | Self::Usage(text)
            | Self::Discrepancies(text)
            | Self::NotFound(text)
            | Self::Conflict(text)
            | Self::Unauthorized(text)
            | Self::NoCredits(text)
            | Self::TryLater(text)
            | Self::OverLimit(text)
            | Self::Interrupted(text) => *text = format!("{text}. {more}"),
            Self::Store(_) | Self::Output(_) => {}
        }
        self
    }

    /// The message without line breaks and other control characters, which a cause may contain.
    pub(crate) fn one_line(&self) -> String {
        let text = self.to_string();
        let words = text.split(|c: char| c.is_control() || c == ' ').filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join(" ")
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(refusal) => refused(&refusal),
            ClientError::Unreachable(_) => Self::TryLater(error.to_string()),
            ClientError::Garbled(_) => Self::Failed(error.to_string()),
        }
    }
}

/// The service's message, with the exit code that tells a script what to do.
fn refused(refusal: &Refusal) -> Failure {
    let text = refusal.to_string();
    match refusal.code.as_str() {
        // A new secret, or a payment, would not help.
        "key_expired" | "key_scope" | "key_network" => return Failure::Unauthorized(text),
        "key_budget_exhausted" => {
            return Failure::NoCredits(format!("{text} `metering keys show` shows the key's limit."));
        }
        LIMIT_CODE => return Failure::OverLimit(text),
        NOT_MADE_CODE if refusal.status.as_u16() == 402 => return Failure::NoCredits(text),
        INTERRUPTED_CODE => return Failure::Interrupted(text),
        _ => {}
    }
    match refusal.status.as_u16() {
        401 => Failure::Unauthorized(format!("{text} If the key is lost, `metering rotate` replaces it.")),
        402 => Failure::NoCredits(format!("{text} `metering plans` lists the plans; `metering topup` buys credits.")),
        429 | 502..=504 => later(text, refusal),
        404 | 409 if refusal.retry_after.is_some() => later(text, refusal),
        404 => Failure::NotFound(text),
        409 => Failure::Conflict(text),
        400 => Failure::Usage(text),
        _ => Failure::Failed(text),
    }
}

fn later(text: String, refusal: &Refusal) -> Failure {
    let seconds = refusal.retry_after.map(|pause| pause.as_secs());
    Failure::TryLater(seconds.map_or(text.clone(), |seconds| format!("{text}; try again in {seconds} s")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_is_one_line_whatever_its_cause() {
        let failure = Failure::Failed("a\nb\r\n  c\u{1b}[31m".to_owned());
        assert_eq!(failure.one_line(), "a b c [31m");
    }

    #[test]
    fn service_error_maps_to_its_exit_code() {
        // status, retry_after_sec, exit code
        let table = [
            (400, None, 2),
            (401, None, 6),
            (402, None, 7),
            (404, None, 4),
            (404, Some(5), 8),
            (409, None, 5),
            (409, Some(5), 8),
            (410, None, 1),
            (429, Some(30), 8),
            (500, None, 1),
            (503, Some(1), 8),
        ];
        for (status, seconds, expected) in table {
            let retry = seconds.map(|seconds: u64| format!(r#","retry_after_sec":{seconds}"#)).unwrap_or_default();
            let body = format!(r#"{{"error":"code","message":"Sentence."{retry}}}"#);
            let status = http::StatusCode::from_u16(status).unwrap();
            let refusal = Refusal::read(status, &http::HeaderMap::new(), body.into());
            let failure = Failure::from(ClientError::from(refusal));
            assert_eq!(failure.exit_code(), expected, "{failure}");
            assert!(failure.to_string().contains("Sentence. (code)"), "{failure}");
        }
    }

    #[test]
    fn what_a_key_may_not_do_is_no_reason_to_rotate_or_to_pay() {
        // status, code, exit code
        let table = [
            (401, "key_expired", 6),
            (403, "key_scope", 6),
            (403, "key_network", 6),
            (402, "key_budget_exhausted", 7),
            (402, "payment_limit", 9),
            (402, "payment_not_made", 7),
            (409, "payment_unresolved", 5),
            (429, "too_many_requests_in_flight", 8),
        ];
        for (status, code, expected) in table {
            let body = format!(r#"{{"error":"{code}","message":"Sentence."}}"#);
            let status = http::StatusCode::from_u16(status).unwrap();
            let refusal = Refusal::read(status, &http::HeaderMap::new(), body.into());
            let failure = Failure::from(ClientError::from(refusal));
            assert_eq!(failure.exit_code(), expected, "{failure}");
            let text = failure.to_string();
            assert!(!text.contains("metering rotate") && !text.contains("metering topup"), "{text}");
        }
    }

    #[test]
    fn every_exit_code_is_documented() {
        let failures = [
            Failure::Failed(String::new()),
            Failure::Usage(String::new()),
            Failure::Discrepancies(String::new()),
            Failure::NotFound(String::new()),
            Failure::Conflict(String::new()),
            Failure::Unauthorized(String::new()),
            Failure::NoCredits(String::new()),
            Failure::TryLater(String::new()),
            Failure::OverLimit(String::new()),
            Failure::Interrupted(String::new()),
            Failure::Store(StoreError::Broken(String::new())),
            Failure::Output(io::Error::other("")),
        ];
        for failure in failures {
            let line = format!("\n  {}  ", failure.exit_code());
            assert!(EXIT_CODES.contains(&line), "{failure:?}");
        }
    }
}
