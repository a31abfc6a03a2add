//! Reads tokens with signed authorizations. The sources must agree on each response.

use async_trait::async_trait;
use metering_core::Timestamp;
use metering_core::chains::{Address, ChainError, TxHash};
use metering_pay::offers::{Asset, AuthorizationId, Spendable, TokenReader};

use super::EvmReader;
use crate::agreement::{self, Describe};
use crate::failure::Failure;
use crate::poll::{Poll, PollState, SourceResponse};
use crate::source::Source;
use crate::token;

impl EvmReader {
    /// The response that `agree` sources give. Sources return `before` until the event has happened, so `before` is
    /// accepted only if no better response arrives within a moment.
    async fn newest<'s, T, A, F>(&'s self, before: T, query: A) -> Result<T, ChainError>
    where
        T: Clone + PartialEq + Describe,
        A: Fn(&'s Source) -> F,
        F: Future<Output = Result<T, Failure>>,
    {
        let state = |responses: &[SourceResponse<T>]| match agreement::newest(self.agree, &before, responses) {
            Some(value) if value == before => PollState::Sufficient,
            Some(_) => PollState::Final,
            None => PollState::Open,
        };
        let poll = Poll::take(&self.sources, query, state).await;
        if let Some(error) = poll.too_few_responses(self.agree, self.chain_id) {
            return Err(error);
        }
        let newest = agreement::newest(self.agree, &before, &poll.responses);
        newest.ok_or_else(|| agreement::disagreement(&poll.responses))
    }

    fn check_chain(&self, id: &AuthorizationId) -> Result<(), ChainError> {
        let (expected, found) = (id.chain_id, self.chain_id);
        if expected == found { Ok(()) } else { Err(ChainError::WrongChain { expected, found }) }
    }
}

#[async_trait]
impl TokenReader for EvmReader {
    async fn asset(&self, token: Address) -> Result<Option<Asset>, ChainError> {
        self.common(|source| token::asset(source, self.chain_id, token)).await
    }

    async fn is_used(&self, id: &AuthorizationId) -> Result<bool, ChainError> {
        self.check_chain(id)?;
        self.newest(false, |source| token::is_used(source, id)).await
    }

    async fn executed_in(&self, id: &AuthorizationId, since: Timestamp) -> Result<Option<TxHash>, ChainError> {
        self.check_chain(id)?;
        self.newest(None, |source| token::executed_in(source, id, since)).await
    }

    async fn is_permit_used(&self, id: &AuthorizationId) -> Result<bool, ChainError> {
        self.check_chain(id)?;
        self.newest(false, |source| token::is_permit_used(source, id)).await
    }

    async fn spendable(&self, token: Address, owner: Address) -> Result<Spendable, ChainError> {
        self.common(|source| token::spendable(source, token, owner)).await
    }
}
