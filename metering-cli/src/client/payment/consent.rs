//! Asking before money moves, or a text is signed.

use std::io::{self, IsTerminal};

use crate::confirm::confirm;
use crate::failure::Failure;

/// Whether the person agreed beforehand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Consent {
    /// By `--yes`.
    pub(crate) yes: bool,
}

impl Consent {
    /// Refuses early where nobody could be asked later.
    pub(crate) fn can_be_given(self) -> Result<(), Failure> {
        if self.yes || io::stdin().is_terminal() {
            return Ok(());
        }
        let problem = "this pays, and there is no terminal to ask on; add --yes to pay without being asked";
        Err(Failure::Usage(problem.to_owned()))
    }

    /// Asks, unless that was done.
    pub(crate) async fn ask(self, question: &str) -> Result<(), Failure> {
        if self.yes { Ok(()) } else { confirm(question).await }
    }
}
