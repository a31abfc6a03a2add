//! Commands about members and invitations: `members list`, `members invite`, `members role` and `members remove`.

use std::io::Write;

use clap::Args;
use metering_client::calls::members::{ChangeMember, InviteMember, ListMembers, OfMember, RemoveMember};
use metering_core::access::{Email, MemberId, MemberRole};
use metering_core::wire::{ChangeMemberRequest, InviteMemberRequest, RemovedMemberResponse};

use crate::client::session::options::CallOptions;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::output::notice;
use crate::table::table;

/// List the account's members and open invitations.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering members list
  metering members list --json")]
pub(super) struct ListArgs {
    #[command(flatten)]
    options: CallOptions,
}

impl ListArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        self.options
            .call::<ListMembers>(&(), &(), out, |members, out| {
                if members.data.is_empty() {
                    let advice = "Invite somebody with `metering members invite`.";
                    return Ok(writeln!(out, "The account has no members. {advice}")?);
                }
                table!(out, &members.data, |member| {
                    text("WHO") => member.identity.as_deref().unwrap_or("(a link)"),
                    word("ROLE") => member.role,
                    word("STATE") => member.state,
                    time("SINCE").optional(1) => member.since,
                    id("ID") => member.id,
                })
            })
            .await
    }
}

/// Invite someone: by mail, or with a link that is printed once.
#[derive(Debug, Args)]
#[command(after_help = "\
An invitation works once, for seven days. Whoever has a link that was passed on proves an email address or a wallet to join.

Examples:
  metering members invite developer --email jo@example.com
  metering members invite viewer")]
pub(super) struct InviteArgs {
    /// The member's role: owner, billing, developer or viewer.
    #[arg(value_name = "ROLE")]
    role: MemberRole,
    /// The email address to send the invitation to [default: print a link to pass on].
    #[arg(long, value_name = "ADDRESS")]
    email: Option<Email>,
    #[command(flatten)]
    options: CallOptions,
}

impl InviteArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let email = self.email.map(|email| email.to_string());
        let request = InviteMemberRequest { role: Some(self.role.to_string()), email };
        self.options
            .call::<InviteMember>(&(), &request, out, |invitation, out| {
                match (&invitation.url, &invitation.data.identity) {
                    (Some(url), _) => {
                        writeln!(out, "{url}")?;
                        out.flush()?;
                        notice("The link is shown only once. Whoever follows it first joins; it works for seven days.");
                    }
                    (None, who) => {
                        writeln!(out, "An invitation is on its way to {}.", who.as_deref().unwrap_or("them"))?
                    }
                }
                Ok(())
            })
            .await
    }
}

/// Change the role of a member, or of an invited person.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately.

Example:
  metering members role mem_0123456789abcdef0123456789abcdef billing")]
pub(super) struct RoleArgs {
    /// The member's id.
    #[arg(value_name = "ID")]
    id: MemberId,
    /// The member's role: owner, billing, developer or viewer.
    #[arg(value_name = "ROLE")]
    role: MemberRole,
    #[command(flatten)]
    options: CallOptions,
}

impl RoleArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let of = OfMember { id: self.id.to_string() };
        let request = ChangeMemberRequest { role: Some(self.role.to_string()) };
        self.options
            .call::<ChangeMember>(&of, &request, out, |changed, out| {
                let data = &changed.data;
                Ok(writeln!(out, "{} is {} now.", data.identity.as_deref().unwrap_or(&data.id), data.role)?)
            })
            .await
    }
}

/// Remove a member, or withdraw an invitation.
#[derive(Debug, Args)]
#[command(after_help = "\
The member's browsers are signed out immediately. Asks for confirmation, unless --yes is given.

Example:
  metering members remove mem_0123456789abcdef0123456789abcdef --yes")]
pub(super) struct RemoveArgs {
    /// The member's id.
    #[arg(value_name = "ID")]
    id: MemberId,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    options: CallOptions,
}

impl RemoveArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.options.client()?;
        if !self.yes {
            confirm(&format!("Remove {} from the account?", self.id)).await?;
        }
        let response = client.call::<RemoveMember>(&OfMember { id: self.id.to_string() }, &()).await?;
        self.options.print::<RemovedMemberResponse>(response, out, |_, out| Ok(writeln!(out, "Removed.")?))
    }
}
