//! What the checks found.

use std::fmt::Display;
use std::io::Write;

use serde::Serialize;

use crate::failure::Failure;
use crate::output::write_json;
use crate::table::printable;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// As it should be.
    Ok,
    /// It works, but is unsafe, or will stop working.
    Warning,
    /// It does not work.
    Problem,
}

#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    state: State,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

/// The findings so far, in the order of the checks.
#[derive(Debug, Default, Serialize)]
pub(super) struct Findings {
    findings: Vec<Finding>,
}

impl Findings {
    pub(super) fn ok(&mut self, check: &'static str, found: impl Display) {
        self.add(check, State::Ok, found, None);
    }

    pub(super) fn warning(&mut self, check: &'static str, found: impl Display, advice: impl Display) {
        self.add(check, State::Warning, found, Some(advice.to_string()));
    }

    pub(super) fn problem(&mut self, check: &'static str, found: impl Display, advice: impl Display) {
        self.add(check, State::Problem, found, Some(advice.to_string()));
    }

    fn add(&mut self, check: &'static str, state: State, found: impl Display, advice: Option<String>) {
        self.findings.push(Finding { check, state, found: found.to_string(), advice });
    }

    fn count(&self, state: State) -> usize {
        self.findings.iter().filter(|finding| finding.state == state).count()
    }

    pub(super) fn write(&self, out: &mut dyn Write, json: bool) -> Result<(), Failure> {
        if json {
            return write_json(out, self);
        }
        for Finding { check, state, found, advice } in &self.findings {
            let mark = match state {
                State::Ok => "ok     ",
                State::Warning => "warning",
                State::Problem => "PROBLEM",
            };
            writeln!(out, "{mark}  {check}: {}", printable(found))?;
            if let Some(advice) = advice {
                writeln!(out, "         -> {}", printable(advice))?;
            }
        }
        Ok(())
    }

    /// A failure if anything does not work.
    pub(super) fn outcome(&self) -> Result<(), Failure> {
        match self.count(State::Problem) {
            0 => Ok(()),
            1 => Err(Failure::Failed("1 problem".to_owned())),
            problems => Err(Failure::Failed(format!("{problems} problems"))),
        }
    }

    /// The states of a check's findings, with their texts.
    #[cfg(test)]
    pub(super) fn of(&self, check: &str) -> Vec<(State, &str)> {
        let findings = self.findings.iter().filter(|finding| finding.check == check);
        findings.map(|finding| (finding.state, finding.found.as_str())).collect()
    }
}
