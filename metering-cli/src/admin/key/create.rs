//! `key create`: creates a child of an account's first key.

use std::io::Write;

use clap::Args;
use metering_admin::calls::accounts::OfAccount;
use metering_admin::calls::keys::CreateKey;
use metering_admin::wire::NewKeyRequest;
use metering_core::AccountId;

use super::issued::IssuedSecret;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::keys::terms::NewTerms;
use crate::output::Format;

/// Create a key and print its secret. The secret is shown only once.
#[derive(Debug, Args)]
#[command(after_help = "\
The key is a child of the account's first key: it cannot be used for more than that, and stops with it.

Examples:
  metering admin key create org_0123456789abcdefghij --name batch --limit 10 --limit-reset monthly
  metering admin key create org_0123456789abcdefghij --name office --network 203.0.113.0/24 --scopes call,read,manage")]
pub(crate) struct CreateArgs {
    /// The account's id.
    #[arg(value_name = "ORG")]
    org: AccountId,
    #[command(flatten)]
    terms: NewTerms,
    #[command(flatten)]
    format: Format,
}

impl CreateArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let wanted = NewKeyRequest { key: self.terms.request(), reason: String::new() };
        let issued =
            session.administrator().await?.call::<CreateKey>(OfAccount { id: self.org.clone() }, wanted).await?;
        IssuedSecret { org: &self.org, issued }.print(out, self.format.json)
    }
}
