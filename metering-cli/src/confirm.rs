//! Confirmation prompts for actions that cannot be undone.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use tokio::sync::oneshot;

use crate::failure::Failure;

/// Whether to ask before an action that cannot be undone, if there is a terminal.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Confirmation {
    /// Do not ask for confirmation. Commands ask only on a terminal.
    #[arg(long)]
    yes: bool,
}

impl Confirmation {
    /// Asks `question` on a terminal. Without a terminal, the command continues, even without `--yes`.
    ///
    /// # Errors
    /// When the answer is not yes, and on Ctrl-C.
    pub(crate) async fn ask(self, question: &str) -> Result<(), Failure> {
        if self.yes || !io::stdin().is_terminal() { Ok(()) } else { confirm(question).await }
    }
}

/// Asks `question` on the terminal.
///
/// # Errors
/// When the answer is not yes, on Ctrl-C, or when there is no terminal.
pub(crate) async fn confirm(question: &str) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        let problem = "confirmation needed, but standard input is not a terminal; add --yes to proceed";
        return Err(Failure::Usage(problem.to_owned()));
    }
    let (send, answer) = oneshot::channel();
    let question = question.to_owned();
    // A separate thread, abandoned on Ctrl-C, because a read from the terminal cannot be cancelled. The question goes
    // to stderr, so that stdout contains only output for programs.
    std::thread::spawn(move || send.send(ask(&question, &mut io::stdin().lock(), &mut io::stderr())));
    let answer = tokio::select! {
        answer = answer => answer.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into())),
        Ok(()) = tokio::signal::ctrl_c() => {
            // Ends the line of the question.
            let _ = writeln!(io::stderr());
            return Err(Failure::Interrupted("interrupted; nothing was changed".to_owned()));
        }
    };
    let failed = |error| Failure::Failed(format!("cannot ask for confirmation: {error}; add --yes to proceed"));
    let changed = answer.map_err(failed)?;
    if changed { Ok(()) } else { Err(Failure::Failed("not confirmed; nothing was changed".to_owned())) }
}

fn ask(question: &str, answers: &mut dyn BufRead, screen: &mut dyn Write) -> io::Result<bool> {
    write!(screen, "{question} [y/N] ")?;
    screen.flush()?;
    let mut answer = String::new();
    answers.read_line(&mut answer)?;
    let answer = answer.trim();
    Ok(answer.eq_ignore_ascii_case("y") || answer.eq_ignore_ascii_case("yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_y_or_yes_confirms() {
        let table = [
            ("y\n", true),
            ("Y\n", true),
            ("yes\r\n", true),
            (" YES \n", true),
            ("n\n", false),
            ("\n", false),
            ("yess\n", false),
            ("", false),
        ];
        for (typed, expected) in table {
            let mut screen = Vec::new();
            assert_eq!(ask("Sure?", &mut typed.as_bytes(), &mut screen).unwrap(), expected, "{typed:?}");
            assert_eq!(screen, b"Sure? [y/N] ");
        }
    }
}
