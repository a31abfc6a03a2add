//! Prepares payments: finds out what can be wrong with one before any money moves, and signs it.

use std::fmt;
use std::time::Duration;

use metering_core::{Address, TokenUnits};

use super::error::PayError;
use super::fees;
use super::key::Wallet;
use super::payment::{PaymentOrder, SignedPayment, hash_of};
use super::questions::{Attempt, count, transfer, units};
use super::transaction::{GasPrice, Transaction};
use crate::answers::Answers;
use crate::call::Call;
use crate::encoding::{Amount, Data, Quantity};
use crate::failure::{Failure, RpcError};
use crate::rpc_url::RpcUrl;
use crate::source::Source;

/// How often a request is tried.
const ATTEMPTS: u32 = 3;

/// What a payment's fee may be unless the payer says otherwise: one whole coin of 18 decimals. It is far more than any
/// transfer costs on nearly any chain, and what a source that lies about fees is held to.
const FEE_LIMIT: TokenUnits = TokenUnits::new(1_000_000_000_000_000_000);

/// Makes payments on one chain, by one RPC source, for the owner of a wallet.
///
/// The owner's source is believed: it can hide a payment or make it cost up to the limit of fees, and nothing else,
/// since what is signed is made here.
pub struct Payer {
    pub(super) source: Source,
    pub(super) chain_id: u64,
    fee_limit: TokenUnits,
}

/// What the wallet has, as far as the order is concerned.
struct Balances {
    native: TokenUnits,
    /// Of the token; `None` when there is none at its address.
    token: Option<TokenUnits>,
}

/// What trying out showed.
struct Trial {
    /// `None` when the payment is refused, with the reason.
    outcome: Result<(Vec<u8>, u64), RpcError>,
    price: GasPrice,
    nonce: u64,
}

impl Payer {
    /// A payer on the chain of this id, by the source at `url`. Connects to nothing yet.
    ///
    /// # Errors
    /// When the machine cannot do TLS.
    pub fn new(url: &RpcUrl, chain_id: u64, request_timeout: Duration) -> Result<Self, PayError> {
        // Another part of the process may have chosen a provider already; any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let source = Source::of_chain(url, chain_id, ATTEMPTS, request_timeout).map_err(PayError::Source)?;
        Ok(Self { source, chain_id, fee_limit: FEE_LIMIT })
    }

    /// Sets what a payment's fee may be at most, in the smallest unit of the chain's coin; one whole coin by default.
    #[must_use]
    pub fn with_fee_limit(mut self, limit: TokenUnits) -> Self {
        self.fee_limit = limit;
        self
    }

    /// Checks the chain, the balances and the fee, tries the payment out, and signs it. Sends nothing.
    ///
    /// # Errors
    /// Whatever stands in the way of the payment. Nothing was sent; the wallet is as it was.
    pub async fn prepare(&self, wallet: &Wallet, order: &PaymentOrder) -> Result<SignedPayment, PayError> {
        self.check(order)?;
        let from = wallet.address();
        let balances = self.balances(from, order).await?;
        let have = match order.token {
            Some(token) => balances.token.ok_or(PayError::NoToken(token))?,
            None => balances.native,
        };
        if have < order.amount {
            return Err(PayError::ShortOfTokens { have, need: order.amount });
        }
        let (to, value, input) = match order.token {
            Some(token) => (token, 0, transfer(order.recipient, order.amount)),
            None => (order.recipient, order.amount.get(), Vec::new()),
        };
        let trial = self.try_out(&Attempt { from, to, value, input: &input }).await?;
        let gas = self.gas(order, trial.outcome)?;
        let fee_max = TokenUnits::new(u128::from(gas).saturating_mul(trial.price.most()));
        self.check_fee(fee_max, value, balances.native)?;
        let transaction =
            Transaction { chain_id: self.chain_id, nonce: trial.nonce, price: trial.price, gas, to, value, input };
        let raw = transaction.signed(&wallet.sign_digest(transaction.digest()));
        Ok(SignedPayment { hash: hash_of(&raw), chain_id: self.chain_id, from, nonce: trial.nonce, fee_max, raw })
    }

    fn check(&self, order: &PaymentOrder) -> Result<(), PayError> {
        if order.chain_id != self.chain_id {
            return Err(PayError::WrongChain { expected: order.chain_id, found: self.chain_id });
        }
        if order.amount == TokenUnits::ZERO {
            return Err(PayError::Order("the amount is zero"));
        }
        if order.recipient == Address::ZERO {
            return Err(PayError::Order("what is paid to the zero address is lost"));
        }
        Ok(())
    }

    async fn balances(&self, of: Address, order: &PaymentOrder) -> Result<Balances, PayError> {
        let calls: Vec<_> =
            [Call::balance(of)].into_iter().chain(order.token.map(|token| Call::token_balance(token, of))).collect();
        let read = |answers: &mut Answers<'_>| {
            let native = units(answers.next::<Amount>()?);
            let token = match order.token {
                Some(_) => answer_of(answers)?.ok().as_deref().and_then(first_word).map(TokenUnits::from_word),
                None => None,
            };
            Ok(Balances { native, token })
        };
        self.source.ask(&calls, read).await.map_err(|failure| self.failed(&failure))
    }

    async fn try_out(&self, attempt: &Attempt<'_>) -> Result<Trial, PayError> {
        let mut calls = vec![Call::try_out(attempt), Call::estimate(attempt), Call::next_nonce(attempt.from)];
        calls.extend(fees::questions());
        let read = |answers: &mut Answers<'_>| {
            let answer = answer_of(answers)?;
            let gas = refusal(answers.next_or_error::<Quantity>()?)?;
            let nonce = count(answers.next()?);
            let price = fees::read(answers)?;
            let outcome = answer.and_then(|answer| Ok((answer, count(gas?))));
            Ok(Trial { outcome, price, nonce })
        };
        self.source.ask(&calls, read).await.map_err(|failure| self.failed(&failure))
    }

    /// The gas that the payment is allowed, if it would succeed.
    fn gas(&self, order: &PaymentOrder, outcome: Result<(Vec<u8>, u64), RpcError>) -> Result<u64, PayError> {
        let (answer, estimate) =
            outcome.map_err(|error| PayError::WouldRevert(self.source.complaint(&Failure::Rpc(error))))?;
        // Tokens from before EIP-20 was final answer nothing; the others must say yes.
        if order.token.is_some() && !answer.is_empty() && !is_yes(&answer) {
            return Err(PayError::WouldRevert("the token says that it would not move".to_owned()));
        }
        Ok(fees::gas_limit(estimate))
    }

    fn check_fee(&self, fee_max: TokenUnits, value: u128, have: TokenUnits) -> Result<(), PayError> {
        if fee_max > self.fee_limit {
            return Err(PayError::FeesAboveLimit { need: fee_max, limit: self.fee_limit });
        }
        let need = TokenUnits::new(fee_max.get().saturating_add(value));
        if have < need { Err(PayError::ShortOfFees { have, need }) } else { Ok(()) }
    }

    pub(super) fn failed(&self, failure: &Failure) -> PayError {
        match failure {
            Failure::WrongChain(found) => PayError::WrongChain { expected: self.chain_id, found: *found },
            failure => PayError::Rpc(self.source.complaint(failure)),
        }
    }
}

impl fmt::Debug for Payer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payer").field("source", &self.source).field("chain_id", &self.chain_id).finish_non_exhaustive()
    }
}

/// What a contract answers, or why it refuses.
fn answer_of(answers: &mut Answers<'_>) -> Result<Result<Vec<u8>, RpcError>, Failure> {
    Ok(refusal(answers.next_or_error::<Data>()?)?.map(|Data(answer)| answer))
}

/// Tells what a contract refused from what the source could not answer.
fn refusal<T>(answer: Result<T, RpcError>) -> Result<Result<T, RpcError>, Failure> {
    match answer {
        Err(error) if !error.is_revert() => Err(Failure::Rpc(error)),
        answer => Ok(answer),
    }
}

fn first_word(answer: &[u8]) -> Option<[u8; 32]> {
    answer.first_chunk().copied()
}

/// Whether it is the word 1, as contracts write `true`.
fn is_yes(answer: &[u8]) -> bool {
    first_word(answer).is_some_and(|word| word[..31].iter().all(|byte| *byte == 0) && word[31] == 1)
}
