//! The arguments that `signup-pay` and `topup` share.

use std::time::Duration;

use clap::Args;
use metering_evm::RpcUrl;

use crate::client::payments::payment::consent::Consent;
use crate::client::payments::wallet::WalletArgs;
use crate::failure::Failure;

/// The plan to buy, the wallet, and how to pay.
#[derive(Debug, Args)]
pub(crate) struct PaymentArgs {
    /// The plan to buy; `metering plans` lists all plans. Not needed to continue a pending payment.
    #[arg(long, value_name = "PLAN")]
    pub(crate) plan: Option<String>,
    /// The plan's chain, by id or name, if the plan is sold on several chains.
    #[arg(long, value_name = "CHAIN")]
    pub(crate) chain: Option<String>,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    /// Abandon the pending payment. Asks for the word `abandon` on standard input, unless it is certain that nothing
    /// was paid.
    #[arg(long)]
    pub(crate) abandon: bool,
    /// How long to wait for the payment to be confirmed and registered, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    wait: u64,
    #[command(flatten)]
    pub(crate) wallet: WalletArgs,
    /// The chain's JSON-RPC URL; by default, the public one that the service names, if any.
    #[arg(long, value_name = "URL", env = "METERING_CLIENT_RPC_URL", hide_env_values = true, help_heading = "Wallet")]
    rpc_url: Option<String>,
}

impl PaymentArgs {
    pub(crate) const fn consent(&self) -> Consent {
        Consent { yes: self.yes }
    }

    pub(crate) const fn wait(&self) -> Duration {
        Duration::from_secs(self.wait)
    }

    /// The URL that was given. Errors do not repeat it, because it often contains a provider's key.
    pub(crate) fn rpc_url(&self) -> Result<Option<RpcUrl>, Failure> {
        let given = self.rpc_url.as_deref().filter(|text| !text.is_empty());
        let read = given.map(str::parse).transpose();
        read.map_err(|error: metering_evm::RpcUrlError| Failure::Usage(format!("the chain's JSON-RPC URL {error}")))
    }
}
