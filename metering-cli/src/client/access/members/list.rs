//! `members list`: members and open invitations.

use std::io::Write;

use clap::Args;
use metering_client::calls::members::ListMembers;
use metering_core::wire::MembersDocument;

use crate::client::session::ProfileArgs;
use crate::client::session::documents::Document;
use crate::failure::Failure;
use crate::output::Format;
use crate::table::{Column, Table};

/// List the account's members and open invitations.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering members list
  metering members list --json")]
pub(super) struct ListArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    format: Format,
}

const COLUMNS: &[Column] = &[
    Column::text("WHO"),
    Column::word("ROLE"),
    Column::word("STATE"),
    Column::time("SINCE").optional(1),
    Column::id("ID"),
];

impl ListArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        let document: Document<MembersDocument> = Document::of(client.call::<ListMembers>(&(), &()).await?)?;
        if self.format.json {
            return document.write_json(out);
        }
        if document.content.data.is_empty() {
            return Ok(writeln!(out, "The account has no members. Invite somebody with `metering members invite`.")?);
        }
        let mut table = Table::new(COLUMNS);
        for member in &document.content.data {
            let who = member.identity.as_deref().unwrap_or("(a link)");
            table.row([&who, &member.role, &member.state, &member.since, &member.id]);
        }
        table.write(out)
    }
}
