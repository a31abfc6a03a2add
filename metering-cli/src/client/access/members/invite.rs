//! `members invite`: an invitation, by mail or as a link.

use std::io::Write;

use clap::Args;
use metering_client::calls::members::InviteMember;
use metering_core::access::{Email, MemberRole};
use metering_core::wire::{InvitationResponse, InviteMemberRequest};

use crate::client::session::ProfileArgs;
use crate::client::session::documents::Document;
use crate::failure::Failure;
use crate::output::{Format, notice};

/// Invite somebody: by mail, or with a link that is printed once.
#[derive(Debug, Args)]
#[command(after_help = "\
An invitation works once, for seven days. Whoever has a link that was passed on proves an email address or a wallet to join.

Examples:
  metering members invite developer --email jo@example.com
  metering members invite viewer")]
pub(super) struct InviteArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// What the member may do: owner, billing, developer or viewer.
    #[arg(value_name = "ROLE")]
    role: MemberRole,
    /// Where to send the invitation [default: print a link to pass on].
    #[arg(long, value_name = "ADDRESS")]
    email: Option<Email>,
    #[command(flatten)]
    format: Format,
}

impl InviteArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let email = self.email.map(|email| email.to_string());
        let request = InviteMemberRequest { role: Some(self.role.to_string()), email };
        let client = self.profile.open()?.client()?;
        let response = client.call::<InviteMember>(&(), &request).await?;
        let document: Document<InvitationResponse> = Document::of(response)?;
        if self.format.json {
            return document.write_json(out);
        }
        let InvitationResponse { data, url } = &document.content;
        match (url, &data.identity) {
            (Some(url), _) => {
                writeln!(out, "{url}")?;
                out.flush()?;
                notice("The link is shown only once. Whoever follows it first joins; it works for seven days.");
            }
            (None, who) => writeln!(out, "An invitation is on its way to {}.", who.as_deref().unwrap_or("them"))?,
        }
        Ok(())
    }
}
