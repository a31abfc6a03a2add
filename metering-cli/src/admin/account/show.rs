//! `account show`: one account.

use std::io::Write;

use clap::Args;
use metering_core::access::Email;
use metering_core::{Account, AccountId, SignupStore};

use super::document;
use crate::admin::session::{PAGE, Session, find};
use crate::failure::Failure;
use crate::output::Format;

/// Show an account.
#[derive(Debug, Args)]
#[command(after_help = "\
With --email, revoked accounts are ignored. The account that holds the address comes first; if several only wait for its
verification, the newest.

Examples:
  metering admin account show org_0123456789abcdefghij
  metering admin account show --email ops@example.com --json")]
pub(crate) struct ShowArgs {
    /// The account's id.
    #[arg(value_name = "ORG", required_unless_present = "email")]
    org: Option<AccountId>,
    /// The owner's email address, in upper or lower case.
    #[arg(long, value_name = "EMAIL", conflicts_with = "org")]
    email: Option<Email>,
    #[command(flatten)]
    format: Format,
}

impl ShowArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let store = session.store().await?;
        let account = match (&self.org, &self.email) {
            (Some(org), _) => find(store.as_ref(), org).await?,
            (None, Some(email)) => find_by_email(store.as_ref(), email).await?,
            (None, None) => return Err(Failure::Usage("name an account by its id or with --email".to_owned())),
        };
        document::write(out, self.format.json, "", &account)
    }
}

/// The account that holds the address. If none does, reads all accounts for the newest that waits for its verification:
/// an operator can wait.
async fn find_by_email(store: &dyn SignupStore, email: &Email) -> Result<Account, Failure> {
    if let Some(holder) = store.account_by_email(email).await? {
        return Ok(holder);
    }
    let (mut after, mut newest) = (None, None);
    loop {
        let page = store.accounts(after.as_ref(), PAGE).await?;
        let wanted = |account: &Account| account.revoked_at.is_none() && account.email.as_ref() == Some(email);
        newest = page.items.into_iter().rfind(wanted).or(newest);
        if page.next.is_none() {
            let missing = || format!("no account has the email address {email}; revoked accounts are ignored");
            return newest.ok_or_else(|| Failure::NotFound(missing()));
        }
        after = page.next;
    }
}
