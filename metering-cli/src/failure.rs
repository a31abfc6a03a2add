//! How a command fails: a sentence for the person, an exit code for the program.

use std::io;

use metering_core::StoreError;

/// Why a command did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Anything that has no code of its own.
    #[error("{0}")]
    Failed(String),
    /// The arguments do not go together; clap reports all other misuse, with the same code.
    #[error("{0}")]
    Usage(String),
    /// The books do not add up.
    #[error("{0}")]
    Discrepancies(String),
    /// The account, plan, chain or transaction does not exist.
    #[error("{0}")]
    NotFound(String),
    /// Something that exists is in the way.
    #[error("{0}")]
    Conflict(String),
    /// The backend is in trouble.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Standard output is in trouble; no other input or output may be turned into this by `?`.
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
  4  not found: no such account, plan, chain or transaction
  5  conflict: the email address is taken, the account is revoked, the payment is used, the file exists

Errors are one line on stderr, with --json as well: the exit code is what programs read.";

impl Failure {
    /// The exit code; 2 is also clap's.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) | Self::Store(_) | Self::Output(_) => 1,
            Self::Usage(_) => 2,
            Self::Discrepancies(_) => 3,
            Self::NotFound(_) => 4,
            Self::Conflict(_) => 5,
        }
    }

    /// The sentence without line breaks or other control characters, which a cause may contain.
    pub(crate) fn one_line(&self) -> String {
        let text = self.to_string();
        let words = text.split(|c: char| c.is_control() || c == ' ').filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_whatever_its_cause_says() {
        let failure = Failure::Failed("a\nb\r\n  c\u{1b}[31m".to_owned());
        assert_eq!(failure.one_line(), "a b c [31m");
    }

    #[test]
    fn every_exit_code_is_documented() {
        let failures = [
            Failure::Failed(String::new()),
            Failure::Usage(String::new()),
            Failure::Discrepancies(String::new()),
            Failure::NotFound(String::new()),
            Failure::Conflict(String::new()),
            Failure::Store(StoreError::Broken(String::new())),
            Failure::Output(io::Error::other("")),
        ];
        for failure in failures {
            let line = format!("\n  {}  ", failure.exit_code());
            assert!(EXIT_CODES.contains(&line), "{failure:?}");
        }
    }
}
