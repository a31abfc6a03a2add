//! Queries all sources of a chain in parallel.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use metering_core::chains::ChainError;
use tokio::time::{Instant, timeout_at};

use crate::failure::Failure;
use crate::source::Source;

/// How long to wait for better responses once the responses are sufficient. Without this, a source that stopped syncing
/// days ago could decide, since it is the fastest to report that a transaction is unknown.
const GRACE: Duration = Duration::from_secs(1);

/// Whether the responses so far are sufficient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PollState {
    /// They are not sufficient.
    Open,
    /// They are sufficient, but another response might improve the result.
    Sufficient,
    /// They are sufficient, and no other response can improve the result.
    Final,
}

/// A response, and the host that sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceResponse<T> {
    pub(crate) host: String,
    pub(crate) value: T,
}

/// The responses and failures of the sources.
#[derive(Debug)]
pub(crate) struct Poll<T> {
    /// The responses, in the order of arrival.
    pub(crate) responses: Vec<SourceResponse<T>>,
    problems: Vec<String>,
    /// How many of the failures are about the subject of the request, and not about the source.
    unreadable: usize,
    /// The chain ids of sources that serve another chain.
    wrong_chains: Vec<u64>,
}

impl<T> Poll<T> {
    /// Queries every source until `state` finds the responses sufficient or all sources have responded. Does not
    /// wait for the remaining sources.
    pub(crate) async fn take<'s, A, F>(
        sources: &'s [Source],
        query: A,
        state: impl Fn(&[SourceResponse<T>]) -> PollState,
    ) -> Self
    where
        A: Fn(&'s Source) -> F,
        F: Future<Output = Result<T, Failure>>,
    {
        let queries = sources.iter().map(|source| {
            let response = query(source);
            async move { (source, response.await) }
        });
        let mut results: FuturesUnordered<_> = queries.collect();
        let mut poll = Self { responses: Vec::new(), problems: Vec::new(), unreadable: 0, wrong_chains: Vec::new() };
        let mut silent: Vec<&Source> = sources.iter().collect();
        let mut until: Option<Instant> = None;
        loop {
            let next = match until {
                None => results.next().await,
                Some(until) => match timeout_at(until, results.next()).await {
                    Ok(next) => next,
                    Err(_) => {
                        let problem = format!("no response within {} s of the others", GRACE.as_secs());
                        silent.iter().for_each(|source| source.failed(&problem));
                        break;
                    }
                },
            };
            let Some((source, response)) = next else { break };
            silent.retain(|other| !std::ptr::eq(*other, source));
            match response {
                Ok(value) => {
                    source.worked();
                    poll.responses.push(SourceResponse { host: source.host(), value });
                }
                Err(failure) => poll.fail(source, &failure),
            }
            match state(&poll.responses) {
                PollState::Open => {}
                PollState::Sufficient => _ = until.get_or_insert_with(|| Instant::now() + GRACE),
                PollState::Final => break,
            }
        }
        poll
    }

    fn fail(&mut self, source: &Source, failure: &Failure) {
        let problem = source.problem(failure);
        // Log it here: if the other sources are sufficient, the failure is not reported anywhere else.
        if failure.is_of_a_working_source() {
            tracing::debug!(source = problem, "an RPC source could not respond");
        } else {
            source.failed(&source.shown(&failure.to_string()));
        }
        self.problems.push(problem);
        self.unreadable += usize::from(failure.is_about_the_subject());
        if let Failure::WrongChain(found) = failure {
            self.wrong_chains.push(*found);
        }
    }

    /// The error for a source that serves another chain, if there is one.
    pub(crate) fn wrong_chain(&self, expected: u64) -> Option<ChainError> {
        self.wrong_chains.first().map(|found| ChainError::WrongChain { expected, found: *found })
    }

    /// The error if a transaction cannot be read, even if all failed sources recover.
    pub(crate) fn unreadable(&self, agree: usize) -> Option<ChainError> {
        let others = self.problems.len() - self.unreadable;
        let readable = self.responses.len() + others >= agree;
        (!readable && self.unreadable > 0).then(|| ChainError::Unreadable(self.problems.join("; ")))
    }

    /// The error if there are fewer than `agree` responses.
    pub(crate) fn too_few_responses(&self, agree: usize, expected: u64) -> Option<ChainError> {
        if self.responses.len() >= agree {
            return None;
        }
        if self.responses.is_empty() && self.wrong_chains.len() == self.problems.len() {
            return self.wrong_chain(expected);
        }
        let why = self.problems.join("; ");
        let answered = self.responses.len();
        Some(ChainError::Unavailable(format!("{answered} of the {agree} required sources responded: {why}")))
    }
}
