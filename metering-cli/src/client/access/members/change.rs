//! `members role` and `members remove`.

use std::io::Write;

use clap::Args;
use metering_client::calls::members::{ChangeMember, OfMember, RemoveMember};
use metering_core::access::{MemberId, MemberRole};
use metering_core::wire::{ChangeMemberRequest, MemberResponse, RemovedMemberResponse};

use crate::client::session::ProfileArgs;
use crate::client::session::documents::Document;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::output::Format;

/// Change the role of a member, or of somebody who is invited.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately.

Example:
  metering members role mem_0123456789abcdef0123456789abcdef billing")]
pub(super) struct RoleArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The member's id.
    #[arg(value_name = "ID")]
    id: MemberId,
    /// What the member may do: owner, billing, developer or viewer.
    #[arg(value_name = "ROLE")]
    role: MemberRole,
    #[command(flatten)]
    format: Format,
}

impl RoleArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        let request = ChangeMemberRequest { role: Some(self.role.to_string()) };
        let response = client.call::<ChangeMember>(&OfMember { id: self.id.to_string() }, &request).await?;
        let document: Document<MemberResponse> = Document::of(response)?;
        if self.format.json {
            return document.write_json(out);
        }
        let data = &document.content.data;
        Ok(writeln!(out, "{} is {} now.", data.identity.as_deref().unwrap_or(&data.id), data.role)?)
    }
}

/// Remove a member, or withdraw an invitation.
#[derive(Debug, Args)]
#[command(after_help = "\
The member's browsers are signed out immediately. Asks for confirmation, unless --yes is given.

Example:
  metering members remove mem_0123456789abcdef0123456789abcdef --yes")]
pub(super) struct RemoveArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The member's id.
    #[arg(value_name = "ID")]
    id: MemberId,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    format: Format,
}

impl RemoveArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        if !self.yes {
            confirm(&format!("Remove {} from the account?", self.id)).await?;
        }
        let response = client.call::<RemoveMember>(&OfMember { id: self.id.to_string() }, &()).await?;
        let document: Document<RemovedMemberResponse> = Document::of(response)?;
        if self.format.json {
            return document.write_json(out);
        }
        Ok(writeln!(out, "Removed.")?)
    }
}
