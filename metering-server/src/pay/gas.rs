//! Watches the wallets that pay the gas of payments, and tells the operator before one is empty.
//!
//! A wallet without coins does not make the server "not ready": everything except payments with requests still works,
//! and a balancer that took all nodes out would make it worse.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metering_core::chains::Address;
use metering_pay::SignedPayments;
use metering_pay::offers::GasFunds;
use tokio::time::Instant;

use crate::http::Shutdown;
use crate::operations::metrics;

/// How often to check the wallets.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// How often to say again that a wallet is low.
const SAY_AGAIN_AFTER: Duration = Duration::from_secs(15 * 60);

/// The wallets, by chain id, as of the last check of each.
#[derive(Debug, Default)]
pub(crate) struct GasWatch(Mutex<BTreeMap<u64, GasState>>);

/// A wallet that pays gas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GasState {
    pub(crate) wallet: Address,
    /// Its balance at the last successful check.
    pub(crate) funds: Option<GasFunds>,
    /// Why the last look failed.
    pub(crate) problem: Option<String>,
    said_at: Option<Instant>,
}

/// The state of a wallet to report to the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    None,
    Low,
    Refilled,
}

impl GasState {
    /// Whether it should be refilled.
    pub(crate) fn is_low(&self) -> bool {
        self.funds.is_some_and(GasFunds::is_low)
    }
}

impl GasWatch {
    /// The wallets that were checked, by chain id.
    pub(crate) fn wallets(&self) -> BTreeMap<u64, GasState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Checks the wallets until the server stops.
    pub(super) async fn run(&self, payments: &SignedPayments, shutdown: &Shutdown) {
        if payments.gas_wallets().next().is_none() {
            return;
        }
        loop {
            tokio::select! {
                () = self.look(payments) => {}
                () = shutdown.cancelled() => return,
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = shutdown.cancelled() => return,
            }
        }
    }

    async fn look(&self, payments: &SignedPayments) {
        metrics::unpaid_usage(payments.unpaid_usage());
        for (chain_id, submitter) in payments.gas_wallets() {
            let wallet = submitter.wallet();
            let (reverts, paused_until) = payments.reverted_payments(chain_id);
            metrics::reverted_payments(chain_id, reverts, paused_until.is_some());
            let found = submitter.funds().await.map_err(|problem| problem.to_string());
            if let Err(problem) = &found {
                tracing::warn!(chain_id, %wallet, problem, "could not read the balance of the gas wallet");
            }
            let (news, funds) = (self.record(chain_id, wallet, found.clone(), Instant::now()), found.ok());
            let Some(funds) = funds else { continue };
            metrics::gas_wallet(chain_id, funds);
            let (balance, transactions) = (funds.balance.get(), funds.transactions());
            match news {
                News::None => {}
                News::Low => {
                    tracing::error!(chain_id, %wallet, balance, transactions, "the gas wallet is low: refill it");
                }
                News::Refilled => {
                    tracing::info!(chain_id, %wallet, balance, transactions, "the gas wallet is no longer low");
                }
            }
        }
    }

    fn record(&self, chain_id: u64, wallet: Address, found: Result<GasFunds, String>, now: Instant) -> News {
        let mut wallets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = GasState { wallet, funds: None, problem: None, said_at: None };
        let state = wallets.entry(chain_id).or_insert(unknown);
        let funds = match found {
            Ok(funds) => funds,
            Err(problem) => {
                state.problem = Some(problem);
                return News::None;
            }
        };
        (state.funds, state.problem) = (Some(funds), None);
        match (funds.is_low(), state.said_at) {
            (true, Some(said_at)) if now.duration_since(said_at) < SAY_AGAIN_AFTER => News::None,
            (true, _) => {
                state.said_at = Some(now);
                News::Low
            }
            (false, said_at) => {
                state.said_at = None;
                if said_at.is_some() { News::Refilled } else { News::None }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use metering_core::chains::TokenUnits;

    use super::*;

    const WALLET: Address = Address::from_bytes([1; 20]);

    fn funds(balance: u128) -> Result<GasFunds, String> {
        Ok(GasFunds { balance: TokenUnits::new(balance), cost: TokenUnits::new(100) })
    }

    #[test]
    fn a_low_wallet_is_said_at_once_then_every_quarter_of_an_hour_and_when_it_is_refilled() {
        let (watch, start) = (GasWatch::default(), Instant::now());
        // seconds, balance, news, low
        let table = [
            (0, funds(2_000), News::None, false),
            (60, funds(1_999), News::Low, true),
            (120, funds(1_500), News::None, true),
            (180, Err("timeout".to_owned()), News::None, true),
            (959, funds(1_400), News::None, true),
            (960, funds(0), News::Low, true),
            (1_020, funds(5_000), News::Refilled, false),
            (1_080, funds(4_900), News::None, false),
            (1_140, funds(0), News::Low, true),
        ];
        for (seconds, found, news, low) in table {
            let problem = found.as_ref().err().cloned();
            assert_eq!(watch.record(7, WALLET, found, start + Duration::from_secs(seconds)), news, "after {seconds} s");
            let state = &watch.wallets()[&7];
            assert_eq!((state.is_low(), &state.problem), (low, &problem), "after {seconds} s");
        }
        assert_eq!(watch.record(8, WALLET, funds(0), start), News::Low, "each chain has its own wallet");
    }

    #[test]
    fn free_gas_never_runs_out() {
        let free = GasFunds { balance: TokenUnits::ZERO, cost: TokenUnits::ZERO };
        assert!(!free.is_low());
    }

    #[test]
    fn a_wallet_that_was_never_read_is_not_low() {
        let watch = GasWatch::default();
        assert_eq!(watch.record(7, WALLET, Err("timeout".to_owned()), Instant::now()), News::None);
        assert!(!watch.wallets()[&7].is_low());
    }
}
