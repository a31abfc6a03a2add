//! The move itself. The order of its steps makes it safe to interrupt.

use metering_core::{Clock, StoreError, SystemClock};
use metering_sql::transfer::{Comparison, SectionComparison, Sums, TargetState, compare, copy, survey};

use super::progress::{Sections, counts};
use super::report::{Ending, Report, differing};
use crate::admin::verify;
use crate::database::{Destination, Origin, Target, causes};
use crate::failure::Failure;
use crate::progress::{Progress, Unit};

/// A move in progress.
#[derive(Debug)]
pub(super) struct Migration {
    pub(super) from: Origin,
    pub(super) to: Destination,
    pub(super) progress: Progress,
}

impl Migration {
    /// Moves the store, or compares both stores if it was moved before.
    pub(super) async fn run(&mut self) -> Result<Report, Failure> {
        self.check_books().await?;
        // Check first, because opening and beginning change the target.
        self.target_state().await?;
        let to = self.to.open().await?;
        let id = self.from.id().await?;
        let found = to.store().begin(&id).await?;
        self.refuse(&found).await?;
        if found == TargetState::Finished {
            return self.compare_again(&to).await;
        }
        let counts = counts(self.from.store()).await?;
        let mut sections = Sections::new(&self.progress, "Copying", &counts);
        let copied = copy(self.from.store(), to.store(), &mut |section, records| sections.step(section, records)).await;
        copied.map_err(|error| interrupted(&error))?;
        let comparison = self.compare(&to).await.map_err(|error| interrupted(&error))?;
        if !comparison.is_equal() {
            return self.report(Ending::NotEqual, comparison).await;
        }
        // Equal records imply equal books, but this checks the tables themselves, not the records read from them.
        self.progress.begin("Verifying the copy", Unit::Steps, None);
        let found = to.verify().await.map_err(|error| interrupted(&error))?;
        verify::outcome(found.discrepancies.len())?;
        // Set the marker first: after an interruption, neither store can be used until the command is run again.
        self.from.mark(&self.to.shown(), SystemClock.now()).await?;
        to.store().finish().await.map_err(|error| interrupted(&error))?;
        self.report(Ending::Moved, comparison).await
    }

    /// The dry run: reads both ends and changes nothing.
    pub(super) async fn dry_run(&mut self) -> Result<Report, Failure> {
        self.check_books().await?;
        let (found, upgrade) = self.target_state().await?;
        let counts = counts(self.from.store()).await?;
        let mut sections = Sections::new(&self.progress, "Reading", &counts);
        let sums = survey(self.from.store(), &mut |section, records| sections.step(section, records)).await?;
        let section =
            |(section, from)| SectionComparison { section, from, to: Sums::default(), differing: 0, first: Vec::new() };
        let comparison = Comparison { sections: sums.into_iter().map(section).collect() };
        let ending = match found {
            TargetState::Finished => Ending::WouldCompare,
            TargetState::Unfinished => Ending::WouldStartOver,
            _ => Ending::WouldMove,
        };
        Ok(Report { upgrade, ..self.report(ending, comparison).await? })
    }

    /// The status of the target, unless it prevents the move, and the versions of a schema upgrade.
    async fn target_state(&self) -> Result<(TargetState, Option<(i64, i64)>), Failure> {
        let look = self.to.look().await?;
        let found = match &look {
            Some(look) => look.target_state(&self.from.id().await?).await?,
            None => TargetState::Empty,
        };
        self.refuse(&found).await?;
        Ok((found, look.and_then(|look| look.upgrade())))
    }

    /// Refuses to move a store whose books do not add up: after the move, there would be no way to tell which of two
    /// numbers is right.
    async fn check_books(&self) -> Result<(), Failure> {
        self.progress.begin("Verifying the books", Unit::Steps, None);
        let found = self.from.verify().await?;
        verify::outcome(found.discrepancies.len()).map_err(|failure| match failure {
            Failure::Discrepancies(text) => Failure::Discrepancies(format!(
                "{text} in {}; nothing was moved (`metering admin verify` shows them)",
                self.from.shown()
            )),
            other => other,
        })
    }

    async fn refuse(&self, found: &TargetState) -> Result<(), Failure> {
        let to = self.to.shown();
        match found {
            TargetState::Occupied(what) => Err(Failure::Conflict(format!(
                "{to} is not empty: {what}; nothing was changed. Name an empty database"
            ))),
            TargetState::InProgress => Err(Failure::Conflict(format!("another move to {to} is in progress"))),
            TargetState::Empty => match self.from.moved().await? {
                None => Ok(()),
                Some(moved) => Err(Failure::Conflict(format!(
                    "{} was moved to {} at {}, and {to} is empty; to move it elsewhere, first run with --go-back",
                    self.from.shown(),
                    moved.to,
                    moved.at
                ))),
            },
            TargetState::Unfinished | TargetState::Finished => Ok(()),
        }
    }

    /// Compares the stores of an earlier move. Sets the "moved" marker if it is missing; changes nothing else.
    async fn compare_again(&self, to: &Target) -> Result<Report, Failure> {
        let comparison = self.compare(to).await?;
        if let Some(first) = comparison.differences().next() {
            return Err(Failure::Conflict(format!(
                "{} was already moved to {}, and one of them has been written to since: {}; first: {first}",
                self.from.shown(),
                self.to.shown(),
                differing(&comparison)
            )));
        }
        if self.from.moved().await?.is_none() {
            self.from.mark(&self.to.shown(), SystemClock.now()).await?;
        }
        self.report(Ending::AlreadyMoved, comparison).await
    }

    async fn compare(&self, to: &Target) -> Result<Comparison, StoreError> {
        let counts = counts(self.from.store()).await?;
        let mut sections = Sections::new(&self.progress, "Comparing", &counts);
        compare(self.from.store(), to.store(), &mut |section, records| sections.step(section, records)).await
    }

    /// The log, which is not moved, is read last: until the store has its marker, a server may publish more of it.
    async fn report(&self, ending: Ending, comparison: Comparison) -> Result<Report, Failure> {
        let (from, to, log) = (self.from.shown(), self.to.shown(), self.from.log().await?);
        Ok(Report { from, to, ending, upgrade: None, comparison, log })
    }
}

fn interrupted(error: &StoreError) -> Failure {
    let cause = causes(error);
    Failure::Failed(format!("the move did not finish: {cause}; run the same command again"))
}
