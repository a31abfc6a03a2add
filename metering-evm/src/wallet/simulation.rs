//! Simulates a transaction: whether it would succeed, and what it would cost.

use metering_core::chains::TokenUnits;

use super::calls::{Attempt, count, units};
use super::fees;
use super::transaction::GasPrice;
use crate::call::Call;
use crate::encoding::{Data, Quantity};
use crate::failure::{Failure, RpcError};
use crate::results::BatchResults;
use crate::source::Source;

/// The result of simulating a transaction.
pub(super) struct Simulation {
    /// The returned data and the gas estimate, or why the transaction would fail.
    pub(super) outcome: Result<(Vec<u8>, u64), RpcError>,
    pub(super) price: GasPrice,
    /// The sender's next nonce.
    pub(super) nonce: u64,
    /// The sender's balance of the native coin.
    pub(super) balance: TokenUnits,
}

/// Simulates a transaction on the newest block.
pub(super) async fn run(source: &Source, attempt: &Attempt<'_>) -> Result<Simulation, Failure> {
    let sender = [Call::next_nonce(attempt.from), Call::balance(attempt.from)];
    let calls: Vec<_> =
        [Call::simulate(attempt), Call::estimate(attempt)].into_iter().chain(sender).chain(fees::calls()).collect();
    let read = |results: &mut BatchResults<'_>| {
        let output = output_of(results)?;
        let gas = refusal(results.next_or_error::<Quantity>()?)?;
        let (nonce, balance) = (count(results.next()?), units(results.next()?));
        let price = fees::read(results)?;
        let outcome = output.and_then(|output| Ok((output, count(gas?))));
        Ok(Simulation { outcome, price, nonce, balance })
    };
    source.send_batch(&calls, read).await
}

/// The data that a contract returns, or why it reverts.
pub(super) fn output_of(results: &mut BatchResults<'_>) -> Result<Result<Vec<u8>, RpcError>, Failure> {
    Ok(refusal(results.next_or_error::<Data>()?)?.map(|Data(output)| output))
}

/// Separates reverts by a contract from failures of the source.
fn refusal<T>(output: Result<T, RpcError>) -> Result<Result<T, RpcError>, Failure> {
    match output {
        Err(error) if !error.is_revert() => Err(Failure::Rpc(error)),
        output => Ok(output),
    }
}
