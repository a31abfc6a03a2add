//! `metering admin audit`: who changed what, when and why.

use std::io::Write;

use clap::Args;
use metering_admin::calls::reports::{AuditPage, ListAudit};
use metering_admin::wire::{AuditDocument, AuditEntryDocument};
use metering_admin::{Bounded, EntryNumber};

use super::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::table;

/// Show the audit log, newest entry first.
#[derive(Debug, Args)]
#[command(after_help = "\
An entry without a result is of an earlier version, which stopped before it could write one: look at the subject to see
whether the change was made. With --json, entries have what the subject was before and afterwards.

Examples:
  metering admin audit
  metering admin audit --subject org_0123456789abcdefghij --json")]
pub(crate) struct AuditArgs {
    /// Only entries about this: an account's id, plan:ID@CHAIN_ID, payment:CHAIN_ID:HASH or operator:NAME.
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
    /// Only entries before the one with this number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    before: Option<i64>,
    /// How many entries to show.
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    format: Format,
}

impl AuditArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        let Self { subject, before, limit, format } = self;
        let page = AuditPage {
            subject,
            action: None,
            from: None,
            to: None,
            before: before.map(EntryNumber),
            limit: Bounded(limit),
        };
        let log = administrator.get::<ListAudit>(page).await?;
        if format.json {
            return write_json(out, &log);
        }
        let AuditDocument { entries, next } = log;
        table!(out, &entries, |AuditEntryDocument { id, at, actor, action, subject, reason, outcome, .. }| {
            number("ID").optional(4) => id,
            time("TIME") => at,
            text("ACTOR") => actor,
            word("ACTION") => action,
            text("SUBJECT").optional(2) => subject,
            text("RESULT").optional(3) => outcome.as_ref().map_or("-", |outcome| outcome.result.as_str()),
            text("REASON").optional(5) => reason,
        })?;
        match next {
            Some(next) => Ok(writeln!(out, "\nOlder entries: add --before {next}")?),
            None => Ok(()),
        }
    }
}
