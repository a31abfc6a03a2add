//! Asking before what cannot be undone.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::failure::Failure;

/// Asks `question` on the terminal.
///
/// # Errors
/// When the answer is not yes, or nobody is there to answer.
pub(crate) fn confirm(question: &str) -> Result<(), Failure> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        let problem = "this needs to be confirmed, and standard input is no terminal to ask on; add --yes to go ahead";
        return Err(Failure::Usage(problem.to_owned()));
    }
    // Onto stderr, so that stdout stays what programs read.
    let answer = ask(question, &mut stdin.lock(), &mut io::stderr())
        .map_err(|error| Failure::Failed(format!("cannot ask on the terminal: {error}; add --yes to go ahead")))?;
    if answer { Ok(()) } else { Err(Failure::Failed("not confirmed; nothing was changed".to_owned())) }
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
    fn only_a_yes_is_a_yes() {
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
