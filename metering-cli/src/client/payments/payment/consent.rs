//! Asks for consent before a payment or a signature.

use std::io::{self, IsTerminal};

use crate::confirm::confirm;
use crate::failure::Failure;

/// Whether the user consented in advance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Consent {
    /// By `--yes`.
    pub(crate) yes: bool,
}

impl Consent {
    /// Fails early if there will be no way to ask later.
    pub(crate) fn can_be_given(self) -> Result<(), Failure> {
        if self.yes || io::stdin().is_terminal() {
            return Ok(());
        }
        let problem =
            "this sends a payment, and there is no terminal to confirm it on; add --yes to pay without confirmation";
        Err(Failure::Usage(problem.to_owned()))
    }

    /// Asks, unless the user consented in advance.
    pub(crate) async fn ask(self, question: &str) -> Result<(), Failure> {
        if self.yes { Ok(()) } else { confirm(question).await }
    }
}
