//! `members log`: the log of members' actions.

use std::io::Write;

use clap::Args;
use metering_client::calls::members::{GetAccountLog, LogPage};
use metering_core::store::Cursor;
use metering_core::wire::call::Bounded;

use crate::client::session::options::CallOptions;
use crate::commands::up_to;
use crate::failure::Failure;
use crate::output::newest;
use crate::table::table;

/// Show the actions of members, and changes of members, newest first.
///
/// The newest 1,000 entries of an account are kept.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering members log
  metering members log --limit 20 --json")]
pub(super) struct LogArgs {
    /// How many entries to show: 1 to 100.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = up_to(100))]
    limit: u32,
    /// Continue after this cursor: the value of `next` in the previous JSON output.
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,
    #[command(flatten)]
    options: CallOptions,
}

impl LogArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let page = LogPage { limit: Bounded(self.limit), after: self.after.map(Cursor::new) };
        self.options
            .call::<GetAccountLog>(&page, &(), out, |log, out| {
                if log.data.is_empty() {
                    return Ok(writeln!(out, "Nothing is logged yet.")?);
                }
                table!(out, &log.data, |entry| {
                    time("TIME") => entry.at,
                    text("WHO") => entry.actor_name,
                    word("ACTION") => entry.action,
                    text("ABOUT").optional(1) => entry.subject,
                    number("STATUS").optional(2) => entry.status.map_or_else(String::new, |status| status.to_string()),
                })?;
                newest(out, log.data.len(), log.next.as_ref())
            })
            .await
    }
}
