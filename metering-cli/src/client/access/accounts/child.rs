//! What all commands about one child account take.

use clap::Args;
use metering_client::Response;
use metering_client::calls::child_accounts::OfChild;
use metering_core::AccountId;
use metering_core::wire::call::Call;

use crate::client::session::options::CallOptions;
use crate::confirm::confirm;
use crate::failure::Failure;

/// Which child account, and how to print the response.
#[derive(Debug, Args)]
pub(super) struct ChildArgs {
    /// The child account.
    #[arg(value_name = "ORG")]
    org: AccountId,
    #[command(flatten)]
    pub(super) options: CallOptions,
}

impl ChildArgs {
    pub(super) fn id(&self) -> OfChild {
        OfChild { id: self.org.to_string() }
    }
}

/// A child account, for what cannot be undone.
#[derive(Debug, Args)]
pub(super) struct ConfirmedArgs {
    #[command(flatten)]
    pub(super) child: ChildArgs,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
}

impl ConfirmedArgs {
    /// Makes a call if it is confirmed. `what` begins the question.
    pub(super) async fn call<C>(&self, what: &str) -> Result<Response, Failure>
    where
        C: Call<Parameters = OfChild, Body = ()>,
    {
        let client = self.child.options.client()?;
        if !self.yes {
            confirm(&format!("{what} account {}?", self.child.org)).await?;
        }
        Ok(client.call::<C>(&self.child.id(), &()).await?)
    }
}
