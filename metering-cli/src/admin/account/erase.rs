//! `account erase`: erases the stored personal data of an account's owner, and keeps the postings.

use std::io::Write;

use clap::Args;
use metering_admin::calls::accounts::{EraseAccount, ErasureOf, OfAccount, ShowErasure};
use metering_admin::wire::{EraseRequest, ErasureDocument};
use metering_core::AccountId;

use crate::admin::session::Session;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::table;

/// Permanently erase the stored personal data of an account's owner, and revoke the account. Its postings stay.
#[derive(Debug, Args)]
#[command(after_help = "\
The account keeps its id, balance, ledger, usage and payments. Everything else about its owner goes: email address, wallet,
names, networks, webhooks, events, sessions, saved card, access of programs, paths of requests, and what the audit log says
beyond who did what and when. Stripe keeps its customer (docs/privacy.md).
Receipts for purchases keep who bought, unless --receipts is given: tax law often demands them for years. Backups made
before still have everything.

Asks for confirmation, unless --yes is given. Takes effect immediately, in running servers too. It can be repeated.

Examples:
  metering admin account erase org_0123456789abcdefghij --dry-run
  metering admin account erase org_0123456789abcdefghij --yes --reason \"Request of 28 November\"")]
pub(crate) struct EraseArgs {
    /// The account's id.
    #[arg(value_name = "ORG")]
    org: AccountId,
    /// Erase buyers' details from receipts too.
    #[arg(long)]
    receipts: bool,
    /// Only show what would be erased.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    format: Format,
}

impl EraseArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        let of = ErasureOf { id: self.org.clone(), receipts: Some(self.receipts) };
        let found = administrator.get::<ShowErasure>(of).await?;
        if self.dry_run {
            return write(out, self.format.json, "Nothing was changed. This would be erased:", &found);
        }
        if found.erased.is_empty() && found.account.erased_at.is_some() {
            return write(out, self.format.json, "The owner was already erased.", &found);
        }
        if !self.yes {
            confirm(&format!(
                "Permanently erase the owner of account {} ({}), and revoke it with a balance of {} credits?",
                found.account.org_id, found.account.agent_name, found.account.credit_balance
            ))
            .await?;
        }
        let wanted = EraseRequest { receipts: self.receipts, reason: String::new() };
        let erased = administrator.call::<EraseAccount>(OfAccount { id: self.org }, wanted).await?;
        write(out, self.format.json, "The owner is erased, and the account is revoked.", &erased)
    }
}

fn write(out: &mut dyn Write, json: bool, headline: &str, document: &ErasureDocument) -> Result<(), Failure> {
    if json {
        return write_json(out, document);
    }
    writeln!(out, "{headline}")?;
    if document.erased.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    table!(out, &document.erased, |row| {
        word("KIND") => row.kind,
        number("RECORDS") => row.records,
    })
}
