//! `metering members`: people who sign in to the account as themselves.

mod log;
mod member;

use crate::commands::commands;

commands! {
    /// Let others use the account as themselves, each with a role, without the key.
    ///
    /// An owner may do everything. Billing buys and changes billing details. A developer makes and changes keys and webhooks. A
    /// viewer reads. Members sign in on the service's pages, by email or with a wallet. Only the account's first key can
    /// manage members from here.
    #[command(after_help = "\
Examples:
  metering members invite developer --email jo@example.com
  metering members list
  metering members log")]
    MembersArgs {
        List(member::ListArgs),
        Invite(member::InviteArgs),
        Role(member::RoleArgs),
        Remove(member::RemoveArgs),
        Log(log::LogArgs),
    }
}
