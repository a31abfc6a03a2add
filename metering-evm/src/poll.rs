//! Queries all sources of a chain at once.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use metering_core::ChainError;
use tokio::time::{Instant, timeout_at};

use crate::failure::Failure;
use crate::source::Source;

/// How long to wait for better responses once the responses are sufficient. Without this, a source that stopped syncing
/// days ago could decide, since it is the fastest to say that it knows nothing.
const GRACE: Duration = Duration::from_secs(1);

/// Whether the responses so far are sufficient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// They are not sufficient.
    Open,
    /// They are sufficient, but another response might improve the result.
    Sufficient,
    /// They are sufficient, and no other response can improve the result.
    Final,
}

/// A response, and the host that sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said<T> {
    pub(crate) host: String,
    pub(crate) answer: T,
}

/// The responses and failures of the sources.
#[derive(Debug)]
pub(crate) struct Poll<T> {
    /// The responses, in the order of arrival.
    pub(crate) said: Vec<Said<T>>,
    complaints: Vec<String>,
    /// How many of the failures are about the subject of the request, and not about the source.
    unreadable: usize,
    /// The chain ids of sources that serve another chain.
    strangers: Vec<u64>,
}

impl<T> Poll<T> {
    /// Queries every source until `standing` finds the responses sufficient or all sources have responded. Does not
    /// wait for the remaining sources.
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
        // Log it here: if the other sources are sufficient, the failure is not reported anywhere else.
        tracing::warn!(source = complaint, "an RPC source failed");
        self.complaints.push(complaint);
        self.unreadable += usize::from(failure.is_of_the_subject());
        if let Failure::WrongChain(found) = failure {
            self.strangers.push(*found);
        }
    }

    /// The error for a source that serves another chain, if there is one.
    pub(crate) fn stranger(&self, expected: u64) -> Option<ChainError> {
        self.strangers.first().map(|found| ChainError::WrongChain { expected, found: *found })
    }

    /// The error if a transaction cannot be read, even if all failed sources recover.
    pub(crate) fn unreadable(&self, agree: usize) -> Option<ChainError> {
        let others = self.complaints.len() - self.unreadable;
        let readable = self.said.len() + others >= agree;
        (!readable && self.unreadable > 0).then(|| ChainError::Unreadable(self.complaints.join("; ")))
    }

    /// The error if there are fewer than `agree` responses.
    pub(crate) fn shortage(&self, agree: usize, expected: u64) -> Option<ChainError> {
        if self.said.len() >= agree {
            return None;
        }
        if self.said.is_empty() && self.strangers.len() == self.complaints.len() {
            return self.stranger(expected);
        }
        let why = self.complaints.join("; ");
        let answered = self.said.len();
        Some(ChainError::Unavailable(format!("{answered} of the {agree} required sources responded: {why}")))
    }
}
