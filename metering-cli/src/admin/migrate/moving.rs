//! The move itself, in the order that makes it safe to be interrupted.

use metering_core::transfer::{Comparison, SectionComparison, Standing, Sums, compare, copy, survey};
use metering_core::{Clock, StoreError, SystemClock};

use super::progress::Progress;
use super::report::{Ending, Report, differing};
use crate::admin::verify;
use crate::database::{Destination, Origin, Target, causes};
use crate::failure::Failure;

/// A store on its way.
#[derive(Debug)]
pub(super) struct Moving {
    pub(super) from: Origin,
    pub(super) to: Destination,
    pub(super) progress: Progress,
}

impl Moving {
    /// Moves the store, or finds that it was moved before.
    pub(super) async fn run(&mut self) -> Result<Report, Failure> {
        self.check_books().await?;
        // Looked at first, since opening and beginning change what is there.
        self.standing().await?;
        let to = self.to.open().await?;
        let id = self.from.id().await?;
        let found = to.store().begin(&id).await?;
        self.refuse(&found).await?;
        if found == Standing::Finished {
            return self.again(&to).await;
        }
        self.progress.begin("copying");
        let progress = &self.progress;
        let copied = copy(self.from.store(), to.store(), &mut |section, records| progress.step(section, records)).await;
        copied.map_err(|error| interrupted(&error))?;
        let comparison = self.compare(&to).await.map_err(|error| interrupted(&error))?;
        if !comparison.is_equal() {
            return Ok(self.report(Ending::NotEqual, comparison));
        }
        // Equal records make equal books; this is of the tables as they are, whatever was read from them.
        self.progress.begin("verifying");
        let found = to.verify().await.map_err(|error| interrupted(&error))?;
        verify::outcome(&found)?;
        // The mark first: between the two, neither store can be used, which running this again puts right.
        self.from.mark(&self.to.shown(), SystemClock.now()).await?;
        to.store().finish().await.map_err(|error| interrupted(&error))?;
        Ok(self.report(Ending::Moved, comparison))
    }

    /// Looks at both ends.
    pub(super) async fn look(&mut self) -> Result<Report, Failure> {
        self.check_books().await?;
        let (found, upgrade) = self.standing().await?;
        self.progress.begin("reading");
        let progress = &self.progress;
        let sums = survey(self.from.store(), &mut |section, records| progress.step(section, records)).await?;
        let section =
            |(section, from)| SectionComparison { section, from, to: Sums::default(), differing: 0, first: Vec::new() };
        let comparison = Comparison { sections: sums.into_iter().map(section).collect() };
        let ending = match found {
            Standing::Finished => Ending::WouldCompare,
            Standing::Unfinished => Ending::WouldStartOver,
            _ => Ending::WouldMove,
        };
        Ok(Report { upgrade, ..self.report(ending, comparison) })
    }

    /// What stands at the other end, if it is no reason to stop, and between which versions its schema would be upgraded.
    async fn standing(&self) -> Result<(Standing, Option<(i64, i64)>), Failure> {
        let look = self.to.look().await?;
        let found = match &look {
            Some(look) => look.standing(&self.from.id().await?).await?,
            None => Standing::Empty,
        };
        self.refuse(&found).await?;
        Ok((found, look.and_then(|look| look.upgrade())))
    }

    /// A store whose own books do not add up is not moved: which of two wrong numbers would be right there?
    async fn check_books(&self) -> Result<(), Failure> {
        self.progress.begin("verifying");
        let found = self.from.verify().await?;
        verify::outcome(&found).map_err(|failure| match failure {
            Failure::Discrepancies(text) => Failure::Discrepancies(format!(
                "{text} in {}; nothing was moved (`metering admin verify` shows them)",
                self.from.shown()
            )),
            other => other,
        })
    }

    async fn refuse(&self, found: &Standing) -> Result<(), Failure> {
        let to = self.to.shown();
        match found {
            Standing::Occupied(what) => Err(Failure::Conflict(format!(
                "{to} is not empty: {what}; nothing was changed, name an empty database"
            ))),
            Standing::UnderWay => Err(Failure::Conflict(format!("another move to {to} is under way"))),
            Standing::Empty => match self.from.moved().await? {
                None => Ok(()),
                Some(moved) => Err(Failure::Conflict(format!(
                    "{} was moved to {} at {}, and {to} is empty; to move it elsewhere, go back first (--go-back)",
                    self.from.shown(),
                    moved.to,
                    moved.at
                ))),
            },
            Standing::Unfinished | Standing::Finished => Ok(()),
        }
    }

    /// What was moved before is compared again, and left alone.
    async fn again(&self, to: &Target) -> Result<Report, Failure> {
        let comparison = self.compare(to).await?;
        if let Some(first) = comparison.differences().next() {
            return Err(Failure::Conflict(format!(
                "{} was moved to {} before, and one of them was written to since: {}; first: {first}",
                self.from.shown(),
                self.to.shown(),
                differing(&comparison)
            )));
        }
        if self.from.moved().await?.is_none() {
            self.from.mark(&self.to.shown(), SystemClock.now()).await?;
        }
        Ok(self.report(Ending::AlreadyMoved, comparison))
    }

    async fn compare(&self, to: &Target) -> Result<Comparison, StoreError> {
        self.progress.begin("comparing");
        compare(self.from.store(), to.store(), &mut |section, records| self.progress.step(section, records)).await
    }

    fn report(&self, ending: Ending, comparison: Comparison) -> Report {
        Report { from: self.from.shown(), to: self.to.shown(), ending, upgrade: None, comparison }
    }
}

fn interrupted(error: &StoreError) -> Failure {
    let cause = causes(error);
    Failure::Failed(format!("the move did not come to its end: {cause}; run the same command again"))
}
