//! Executes signed authorizations, and pays the gas.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{BoxFuture, FutureExt};
use metering_core::Timestamp;
use metering_core::chains::{Address, ChainError, TokenUnits};
use metering_pay::offers::{GasFunds, SignedAuthorization, Submission, SubmitError, Submitter};

use super::calls::{Attempt, count, units};
use super::error::PayError;
use super::fees;
use super::key::Wallet;
use super::payer::Payer;
use super::payment::{SignedPayment, hash_of};
use super::permit_call::permit_call;
use super::signed_transaction::{SignedTransaction, fee_max};
use super::simulation::{self, Simulation};
use super::transaction::{GasPrice, Transaction};
use super::transfer_call::transfer_call;
use crate::call::Call;
use crate::rpc_url::RpcUrl;

/// The default limit of a transaction's fee: 0.01 of a coin of 18 decimals.
const FEE_LIMIT: TokenUnits = TokenUnits::new(10_000_000_000_000_000);

/// The default gas limit of a transfer: twice the gas of a transfer from a wallet with a key. A contract wallet that
/// checks its signatures at a normal cost stays below it.
const GAS_LIMIT: u64 = 200_000;

/// The gas that a `transferWithAuthorization` of USDC uses, rounded up.
const USUAL_GAS: u64 = 100_000;

/// The limits of a transaction.
#[derive(Debug, Clone, Copy)]
struct Limits {
    gas: u64,
    /// In the smallest unit of the chain's coin.
    fee: TokenUnits,
}

/// The wallet of a service, whose coins pay the gas of other people's transfers.
///
/// Like a [`Payer`], it trusts its RPC sources little: transactions are built and signed locally, and no fee is above
/// the limit. It uses the first source, and each of the others only when those before it fail.
///
/// ```
/// use std::time::Duration;
///
/// use metering_pay::offers::Submitter;
/// use metering_evm::{GasWallet, Wallet};
///
/// let wallet = Wallet::from_hex("0x4646464646464646464646464646464646464646464646464646464646464646")?;
/// let sources = ["https://one.example.com".parse()?, "https://two.example.com".parse()?];
/// let gas = GasWallet::new(wallet, &sources, 8453, Duration::from_secs(5))?
///     .with_fee_limit("1000000000000000".parse()?); // 0.001 of the chain's coin
/// assert_eq!(gas.wallet().to_string(), "0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GasWallet {
    wallet: Wallet,
    chain_id: u64,
    fee_limit: TokenUnits,
    gas_limit: u64,
    /// The price of a whole coin of the chain in the smallest units of tokens, if known.
    coin_prices: Mutex<BTreeMap<Address, TokenUnits>>,
    /// One for each source, at least one.
    payers: Vec<Payer>,
}

impl GasWallet {
    /// A wallet on the chain with this id, through the sources at these URLs. Does not connect yet.
    ///
    /// # Errors
    /// When there is no source, or an HTTP client cannot be set up.
    pub fn new(wallet: Wallet, urls: &[RpcUrl], chain_id: u64, request_timeout: Duration) -> Result<Self, PayError> {
        if urls.is_empty() {
            return Err(PayError::Source("there is none".to_owned()));
        }
        let payers = urls.iter().map(|url| Payer::new(url, chain_id, request_timeout));
        let payers = payers.collect::<Result<_, _>>()?;
        let (fee_limit, gas_limit, coin_prices) = (FEE_LIMIT, GAS_LIMIT, Mutex::default());
        Ok(Self { wallet, chain_id, fee_limit, gas_limit, coin_prices, payers })
    }

    /// Sets the limit of a transaction's fee, in the smallest unit of the chain's coin. By default, 0.01 of a coin with
    /// 18 decimals.
    #[must_use]
    pub fn with_fee_limit(mut self, limit: TokenUnits) -> Self {
        self.fee_limit = limit;
        self
    }

    /// Sets the limit of the gas of a transfer. 200,000 by default.
    #[must_use]
    pub const fn with_gas_limit(mut self, limit: u64) -> Self {
        self.gas_limit = limit;
        self
    }

    /// Sets the price of a whole coin of the chain (18 decimals) in a token, in the token's smallest units. From then
    /// on, the fee of a transfer of this token never exceeds the value of the transfer.
    pub fn set_coin_price(&self, token: Address, price: TokenUnits) {
        self.coin_prices.lock().unwrap_or_else(PoisonError::into_inner).insert(token, price);
    }

    /// The call that executes an authorization, or transfers this much of a permit.
    fn call_of(&self, signed: &SignedAuthorization, used: Option<TokenUnits>) -> (Address, Vec<u8>) {
        match used {
            Some(amount) => permit_call(signed, self.wallet.address(), amount),
            None => transfer_call(signed),
        }
    }

    /// The limits of a transfer's gas and fee.
    fn limits_of(&self, signed: &SignedAuthorization) -> Limits {
        let price = self.coin_prices.lock().unwrap_or_else(PoisonError::into_inner).get(&signed.token).copied();
        let worth = price.map(|price| fees::worth(signed.authorization.value, price));
        Limits { gas: self.gas_limit, fee: worth.map_or(self.fee_limit, |worth| worth.min(self.fee_limit)) }
    }

    /// The first result that is not a failure of a source.
    async fn try_each<'a, 'p: 'a, T>(
        &'p self,
        work: impl Fn(&'p Payer) -> BoxFuture<'a, Result<T, SubmitError>> + Send,
    ) -> Result<T, SubmitError> {
        let mut failures = Vec::new();
        for payer in &self.payers {
            match work(payer).await {
                Err(SubmitError::Chain(failure)) => failures.push(failure),
                result => return result,
            }
        }
        Err(SubmitError::Chain(combined(failures)))
    }

    fn check_chain(&self, signed: &SignedAuthorization) -> Result<(), SubmitError> {
        let (expected, found) = (signed.chain_id, self.chain_id);
        if expected == found { Ok(()) } else { Err(ChainError::WrongChain { expected, found }.into()) }
    }

    /// The gas limit and the price of a call, if it would succeed and the wallet can pay for it.
    async fn cost(
        &self,
        to: Address,
        input: &[u8],
        replaced: &[GasPrice],
        limits: Limits,
    ) -> Result<(u64, GasPrice), SubmitError> {
        let attempt = Attempt { from: self.wallet.address(), to, value: 0, input };
        let (estimate, price, balance) = self.try_each(|payer| simulate(payer, attempt).boxed()).await?;
        if estimate > limits.gas {
            return Err(SubmitError::GasAboveLimit { need: estimate, limit: limits.gas });
        }
        let (gas, price) = (fees::gas_limit(estimate).min(limits.gas), fees::outbid(price, replaced));
        let (need, limit) = (fee_max(gas, price), limits.fee);
        if need > limit {
            return Err(SubmitError::FeesAboveLimit { need, limit });
        }
        if balance < need {
            return Err(SubmitError::ShortOfGas { have: balance, need });
        }
        Ok((gas, price))
    }

    async fn sign_call(
        &self,
        to: Address,
        input: Vec<u8>,
        nonce: u64,
        replaced: &[Submission],
        (limits, now): (Limits, Timestamp),
    ) -> Result<Submission, SubmitError> {
        let prices: Result<Vec<_>, _> = replaced.iter().map(|old| read(old).map(|old| old.price)).collect();
        let (gas, price) = self.cost(to, &input, &prices?, limits).await?;
        let transaction = Transaction { chain_id: self.chain_id, nonce, price, gas, to, value: 0, input };
        let raw = transaction.signed(&self.wallet.sign_digest(transaction.digest()));
        Ok(Submission { hash: hash_of(&raw), raw, signed_at: now })
    }
}

#[async_trait]
impl Submitter for GasWallet {
    fn wallet(&self) -> Address {
        self.wallet.address()
    }

    async fn mined(&self) -> Result<u64, SubmitError> {
        self.try_each(|payer| mined(payer, self.wallet.address()).boxed()).await
    }

    async fn funds(&self) -> Result<GasFunds, SubmitError> {
        self.try_each(|payer| funds(payer, self.wallet.address()).boxed()).await
    }

    async fn check(&self, signed: &SignedAuthorization, used: Option<TokenUnits>) -> Result<(), SubmitError> {
        self.check_chain(signed)?;
        let (to, input) = self.call_of(signed, used);
        self.cost(to, &input, &[], self.limits_of(signed)).await.map(|_| ())
    }

    async fn sign(
        &self,
        signed: &SignedAuthorization,
        used: Option<TokenUnits>,
        place: u64,
        replaced: &[Submission],
        now: Timestamp,
    ) -> Result<Submission, SubmitError> {
        self.check_chain(signed)?;
        let (to, input) = self.call_of(signed, used);
        self.sign_call(to, input, place, replaced, (self.limits_of(signed), now)).await
    }

    async fn sign_nothing(
        &self,
        place: u64,
        replaced: &[Submission],
        now: Timestamp,
    ) -> Result<Submission, SubmitError> {
        let limits = Limits { gas: u64::MAX, fee: self.fee_limit };
        self.sign_call(self.wallet.address(), Vec::new(), place, replaced, (limits, now)).await
    }

    async fn send(&self, submission: &Submission) -> Result<(), SubmitError> {
        let transaction = read(submission)?;
        let payment = SignedPayment {
            hash: submission.hash,
            chain_id: self.chain_id,
            from: self.wallet.address(),
            nonce: transaction.nonce,
            fee_max: transaction.fee_max(),
            raw: submission.raw.clone(),
        };
        if !payment.matches_hash() {
            return Err(damaged());
        }
        let payment = &payment;
        self.try_each(|payer| send(payer, payment).boxed()).await
    }
}

/// The gas that a call would use, the usual price and the wallet's balance, if the call would succeed.
async fn simulate(payer: &Payer, attempt: Attempt<'_>) -> Result<(u64, GasPrice, TokenUnits), SubmitError> {
    let trial = simulation::run(&payer.source, &attempt).await.map_err(|failure| refused(payer.failed(&failure)))?;
    let Simulation { outcome, price, balance, nonce: _ } = trial;
    match outcome {
        Ok((_, estimate)) => Ok((estimate, price, balance)),
        Err(error) => Err(SubmitError::WouldFail(payer.source.shown(&error.message))),
    }
}

async fn mined(payer: &Payer, wallet: Address) -> Result<u64, SubmitError> {
    let mined = payer.source.send_batch(&[Call::mined_count(wallet)], |results| Ok(count(results.next()?))).await;
    mined.map_err(|failure| refused(payer.failed(&failure)))
}

async fn funds(payer: &Payer, wallet: Address) -> Result<GasFunds, SubmitError> {
    let calls: Vec<_> = [Call::balance(wallet)].into_iter().chain(fees::calls()).collect();
    let funds = payer.source.send_batch(&calls, |results| {
        let balance = units(results.next()?);
        Ok(GasFunds { balance, cost: fee_max(fees::gas_limit(USUAL_GAS), fees::read(results)?) })
    });
    funds.await.map_err(|failure| refused(payer.failed(&failure)))
}

async fn send(payer: &Payer, payment: &SignedPayment) -> Result<(), SubmitError> {
    match payer.broadcast(payment).await {
        Ok(()) => Ok(()),
        Err(error @ PayError::Refused(_)) => Err(shortage(payer, payment).await.unwrap_or_else(|| refused(error))),
        Err(error) => Err(refused(error)),
    }
}

/// Whether a node refused a transaction because the wallet's balance has become too low.
async fn shortage(payer: &Payer, payment: &SignedPayment) -> Option<SubmitError> {
    let calls = [Call::balance(payment.from)];
    let have = payer.source.send_batch(&calls, |results| Ok(units(results.next()?))).await.ok()?;
    (have < payment.fee_max).then_some(SubmitError::ShortOfGas { have, need: payment.fee_max })
}

/// The failures of all sources as one.
fn combined(failures: Vec<ChainError>) -> ChainError {
    let mut reasons = Vec::new();
    for failure in failures {
        match failure {
            ChainError::Unavailable(why) => reasons.push(why),
            other => return other,
        }
    }
    ChainError::Unavailable(reasons.join("; "))
}

fn read(submission: &Submission) -> Result<SignedTransaction, SubmitError> {
    SignedTransaction::read(&submission.raw).ok_or_else(damaged)
}

fn damaged() -> SubmitError {
    ChainError::Unreadable("the stored transaction is damaged".to_owned()).into()
}

/// Translates a payer's error into the outcome of an authorization.
fn refused(error: PayError) -> SubmitError {
    match error {
        PayError::Replaced | PayError::NonceTaken => SubmitError::PlaceTaken,
        PayError::WrongChain { expected, found } => ChainError::WrongChain { expected, found }.into(),
        PayError::Damaged => damaged(),
        PayError::Rpc(why) | PayError::Refused(why) => ChainError::Unavailable(why).into(),
        other => ChainError::Unavailable(other.to_string()).into(),
    }
}
