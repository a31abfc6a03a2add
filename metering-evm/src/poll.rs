//! Asking all sources of a chain at once.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use metering_core::ChainError;
use tokio::time::{Instant, timeout_at};

use crate::failure::Failure;
use crate::source::Source;

/// How long the others may take to say something better, once there is an answer that will do. Without it a source
/// that stopped days ago would speak for the chain, being the fastest to say that it knows nothing.
const GRACE: Duration = Duration::from_secs(1);

/// What the answers so far are worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// They do not suffice.
    Open,
    /// They suffice, and another might make them better.
    Sufficient,
    /// Nothing can make them better.
    Final,
}

/// An answer, and the host that gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said<T> {
    pub(crate) host: String,
    pub(crate) answer: T,
}

/// What the sources said.
#[derive(Debug)]
pub(crate) struct Poll<T> {
    /// The answers, as they came.
    pub(crate) said: Vec<Said<T>>,
    complaints: Vec<String>,
    /// How many of the complaints are about what was asked for, and not about the source.
    unreadable: usize,
    /// Of which chains sources are that are of another one.
    strangers: Vec<u64>,
}

impl<T> Poll<T> {
    /// Asks every source, until its answers suffice by `standing` or all have spoken. Whoever is still thinking then
    /// is not waited for.
    pub(crate) async fn take<'s, A, F>(sources: &'s [Source], ask: A, standing: impl Fn(&[Said<T>]) -> Standing) -> Self
    where
        A: Fn(&'s Source) -> F,
        F: Future<Output = Result<T, Failure>>,
    {
        let asked = sources.iter().map(|source| {
            let answer = ask(source);
            async move { (source, answer.await) }
        });
        let mut answers: FuturesUnordered<_> = asked.collect();
        let mut poll = Self { said: Vec::new(), complaints: Vec::new(), unreadable: 0, strangers: Vec::new() };
        let mut until: Option<Instant> = None;
        loop {
            let next = match until {
                None => answers.next().await,
                Some(until) => timeout_at(until, answers.next()).await.unwrap_or_default(),
            };
            match next {
                None => break,
                Some((source, Ok(answer))) => poll.said.push(Said { host: source.host(), answer }),
                Some((source, Err(failure))) => poll.fail(source, &failure),
            }
            match standing(&poll.said) {
                Standing::Open => {}
                Standing::Sufficient => _ = until.get_or_insert_with(|| Instant::now() + GRACE),
                Standing::Final => break,
            }
        }
        poll
    }

    fn fail(&mut self, source: &Source, failure: &Failure) {
        let complaint = source.complaint(failure);
        // Others may make up for it, and then nobody else would tell.
        tracing::warn!(source = complaint, "an RPC source failed");
        self.complaints.push(complaint);
        self.unreadable += usize::from(failure.is_of_the_subject());
        if let Failure::WrongChain(found) = failure {
            self.strangers.push(*found);
        }
    }

    /// A source that is of another chain.
    pub(crate) fn stranger(&self, expected: u64) -> Option<ChainError> {
        self.strangers.first().map(|found| ChainError::WrongChain { expected, found: *found })
    }

    /// Why a transaction cannot be read, when sources that work again would not be enough to read it.
    pub(crate) fn unreadable(&self, agree: usize) -> Option<ChainError> {
        let others = self.complaints.len() - self.unreadable;
        let readable = self.said.len() + others >= agree;
        (!readable && self.unreadable > 0).then(|| ChainError::Unreadable(self.complaints.join("; ")))
    }

    /// Why there are too few answers, when fewer than `agree` of them are there.
    pub(crate) fn shortage(&self, agree: usize, expected: u64) -> Option<ChainError> {
        if self.said.len() >= agree {
            return None;
        }
        if self.said.is_empty() && self.strangers.len() == self.complaints.len() {
            return self.stranger(expected);
        }
        let why = self.complaints.join("; ");
        let answered = self.said.len();
        Some(ChainError::Unavailable(format!("{answered} of the {agree} sources needed answered: {why}")))
    }
}
