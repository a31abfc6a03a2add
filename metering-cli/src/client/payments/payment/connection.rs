//! The chain that a bill is paid on: signs and sends a payment, and finds out what happened to it.

use std::time::Duration;

use metering_evm::RpcUrl;
use metering_evm::{PayError, Payer, PaymentStatus, SignedPayment, Wallet};

use crate::client::payments::payment::bill::Bill;
use crate::failure::Failure;

/// The timeout of one request to the chain's node.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The connection to the chain of a bill.
#[derive(Debug)]
pub(crate) struct ChainConnection {
    payer: Payer,
    confirmations: u64,
}

/// The fate of a signed payment on the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TxState {
    /// The chain does not know it.
    Unknown,
    /// It is pending, or has paid.
    Live,
    /// It did not pay, and never will.
    Dead(TxFailure),
}

/// How a payment certainly failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TxFailure {
    /// Another transaction of the wallet replaced it.
    Replaced,
    /// It failed on the chain.
    Failed,
}

impl ChainConnection {
    /// Connects to the given URL, or else to the bill's public one; `None` if there is neither.
    pub(crate) fn open(bill: &Bill, given: Option<RpcUrl>) -> Result<Option<Self>, Failure> {
        let hint = || bill.rpc_hint.as_deref().map(str::parse::<RpcUrl>).transpose();
        let url = match given {
            Some(url) => Some(url),
            None => hint().map_err(|_| no_url(bill, "the one that the service names is not a URL"))?,
        };
        let Some(url) = url else { return Ok(None) };
        let payer = Payer::new(&url, bill.chain_id, REQUEST_TIMEOUT).map_err(failed)?;
        Ok(Some(Self { payer, confirmations: bill.confirmations }))
    }

    /// Like [`ChainConnection::open`], for steps that need the chain.
    pub(crate) fn required(connection: Option<Self>, bill: &Bill) -> Result<Self, Failure> {
        connection.ok_or_else(|| no_url(bill, "the service names none"))
    }

    /// Signs the payment; nothing is sent.
    pub(crate) async fn sign(&self, wallet: &Wallet, bill: &Bill) -> Result<SignedPayment, Failure> {
        self.payer.prepare(wallet, &bill.order()).await.map_err(failed)
    }

    /// Sends it; sending it again changes nothing. Even after an error, it may have been sent.
    pub(crate) async fn send(&self, signed: &SignedPayment) -> Result<(), Failure> {
        self.payer.broadcast(signed).await.map_err(failed)
    }

    /// What happened to it.
    pub(crate) async fn state(&self, signed: &SignedPayment) -> Result<TxState, Failure> {
        let status = self.payer.status(signed).await.map_err(failed)?;
        Ok(match status {
            PaymentStatus::Unknown => TxState::Unknown,
            PaymentStatus::Replaced => TxState::Dead(TxFailure::Replaced),
            // As long as the block can be replaced by a reorganisation, the payment may still succeed in another block.
            PaymentStatus::Mined { succeeded: false, confirmations } if confirmations >= self.confirmations => {
                TxState::Dead(TxFailure::Failed)
            }
            PaymentStatus::Pending | PaymentStatus::Mined { .. } => TxState::Live,
        })
    }
}

fn no_url(bill: &Bill, why: &str) -> Failure {
    Failure::Usage(format!(
        "a JSON-RPC URL for {} is needed: set one with --rpc-url or METERING_CLIENT_RPC_URL ({why})",
        bill.chain_name
    ))
}

fn failed(error: PayError) -> Failure {
    let text = error.to_string();
    match error {
        PayError::Rpc(_) | PayError::NonceTaken | PayError::FeesAboveLimit { .. } => Failure::TryLater(text),
        _ => Failure::Failed(text),
    }
}
