//! `metering accounts`: child accounts, for the account's own customers.

mod child;
mod create;
mod list;

use crate::commands::commands;

commands! {
    /// Manage child accounts: accounts of your own customers, each with its own keys, balance and statements.
    ///
    /// You fill them with your credits. A child account cannot see its parent account. Only the account's first key can
    /// do this.
    #[command(after_help = "\
Examples:
  metering accounts create customer-1
  metering accounts give org_0123456789abcdefghij 5
  metering accounts list
  metering accounts usage --days 7")]
    AccountsArgs {
        Create(create::CreateArgs),
        List(list::ListArgs),
        Usage(list::UsageArgs),
        Give(child::GiveArgs),
        Take(child::TakeArgs),
        Limits(child::LimitsArgs),
        Rotate(child::RotateArgs),
        Close(child::CloseArgs),
    }
}
