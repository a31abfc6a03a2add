//! Prepares payments: checks everything that can go wrong before any money moves, and signs.

use std::time::Duration;

use metering_core::chains::{Address, TokenUnits};
use metering_core::shown_fields;

use super::calls::{Attempt, transfer, units};
use super::error::PayError;
use super::fees;
use super::key::Wallet;
use super::payment::{PaymentOrder, SignedPayment, hash_of};
use super::simulation::{self, output_of};
use super::transaction::Transaction;
use crate::call::Call;
use crate::contract::first_word;
use crate::encoding::Amount;
use crate::failure::{Failure, RpcError};
use crate::results::BatchResults;
use crate::rpc_url::RpcUrl;
use crate::source::Source;

/// Attempts per request.
const ATTEMPTS: u32 = 3;

/// The default limit of a payment's fee: one whole coin of 18 decimals. This is far more than a transfer costs on
/// nearly any chain, and limits the damage from a source that lies about fees.
const FEE_LIMIT: TokenUnits = TokenUnits::new(1_000_000_000_000_000_000);

/// Makes payments on one chain, through one RPC source, for the owner of a wallet.
///
/// The source is trusted, but a malicious one can only hide a payment or make its fee as high as the limit: the
/// transaction is built and signed locally.
///
/// Not run here, because it needs a node:
///
/// ```no_run
/// use std::time::Duration;
///
/// use metering_evm::{Payer, PaymentOrder, PaymentStatus, Wallet};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let key = "0x4646464646464646464646464646464646464646464646464646464646464646";
/// let wallet = Wallet::from_hex(key)?;
/// let payer = Payer::new(&"https://rpc.example.com".parse()?, 8453, Duration::from_secs(10))?
///     .with_fee_limit("1000000000000000".parse()?); // 0.001 of the chain's coin
/// let order = PaymentOrder {
///     chain_id: 8453,
///     recipient: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed".parse()?,
///     token: Some("0x833589fcd6edb6e08f4c7c32d4f71b54bda02913".parse()?), // `None` for the chain's own coin
///     amount: "5003817".parse()?,
/// };
/// let payment = payer.prepare(&wallet, &order).await?;
/// std::fs::write("payment.json", serde_json::to_vec(&payment)?)?; // so that it can be sent again after a crash
/// payer.broadcast(&payment).await?;
/// loop {
///     match payer.status(&payment).await? {
///         PaymentStatus::Mined { succeeded: true, .. } => break,
///         PaymentStatus::Mined { .. } | PaymentStatus::Replaced => return Err("nothing was paid".into()),
///         PaymentStatus::Unknown | PaymentStatus::Pending => tokio::time::sleep(Duration::from_secs(2)).await,
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Payer {
    pub(super) source: Source,
    pub(super) chain_id: u64,
    fee_limit: TokenUnits,
}

/// The wallet's balances that the order needs.
struct Balances {
    native: TokenUnits,
    /// In the token; `None` if there is no token at its address.
    token: Option<TokenUnits>,
}

impl Payer {
    /// A payer on the chain with this id, through the source at `url`. Does not connect yet.
    ///
    /// # Errors
    /// When the HTTP client cannot be set up.
    pub fn new(url: &RpcUrl, chain_id: u64, request_timeout: Duration) -> Result<Self, PayError> {
        let source = Source::new(url, chain_id, ATTEMPTS, request_timeout).map_err(PayError::Source)?;
        Ok(Self { source, chain_id, fee_limit: FEE_LIMIT })
    }

    /// Sets the limit of a payment's fee, in the smallest unit of the chain's coin. By default, one whole coin.
    #[must_use]
    pub fn with_fee_limit(mut self, limit: TokenUnits) -> Self {
        self.fee_limit = limit;
        self
    }

    /// Checks the chain, the balances and the fee, simulates the payment, and signs it. Sends nothing.
    ///
    /// # Errors
    /// Why the payment cannot be made. Nothing was sent.
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
        let attempt = Attempt { from, to, value, input: &input };
        let trial = simulation::run(&self.source, &attempt).await.map_err(|failure| self.failed(&failure))?;
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
            return Err(PayError::Order("payments to the zero address are lost"));
        }
        Ok(())
    }

    async fn balances(&self, of: Address, order: &PaymentOrder) -> Result<Balances, PayError> {
        let calls: Vec<_> =
            [Call::balance(of)].into_iter().chain(order.token.map(|token| Call::token_balance(token, of))).collect();
        let read = |results: &mut BatchResults<'_>| {
            let native = units(results.next::<Amount>()?);
            let token = match order.token {
                Some(_) => output_of(results)?.ok().as_deref().and_then(first_word).map(TokenUnits::from_word),
                None => None,
            };
            Ok(Balances { native, token })
        };
        self.source.send_batch(&calls, read).await.map_err(|failure| self.failed(&failure))
    }

    /// The gas limit of the payment, if it would succeed.
    fn gas(&self, order: &PaymentOrder, outcome: Result<(Vec<u8>, u64), RpcError>) -> Result<u64, PayError> {
        let (output, estimate) =
            outcome.map_err(|error| PayError::WouldRevert(self.source.problem(&Failure::Rpc(error))))?;
        // Tokens from before EIP-20 was final return nothing; all others must return true.
        if order.token.is_some() && !output.is_empty() && !is_yes(&output) {
            return Err(PayError::WouldRevert("the token contract reports that the transfer would fail".to_owned()));
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
            failure => PayError::Rpc(self.source.problem(failure)),
        }
    }
}

shown_fields!(Payer: source, chain_id);

/// Whether it is the word 1, as contracts write `true`.
fn is_yes(output: &[u8]) -> bool {
    first_word(output).is_some_and(|word| word[..31].iter().all(|byte| *byte == 0) && word[31] == 1)
}
