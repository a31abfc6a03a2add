//! `metering admin payments`: payments that arrived on the chains, especially unclaimed ones.

mod address;
mod assign;
pub(super) mod chains;
mod list;
pub(super) mod progress;
mod records;
pub(super) mod refusal;

use crate::commands::commands;

commands! {
    /// List payments on the chains, and assign unclaimed ones to accounts.
    #[command(after_help = "\
`list` and `assign` read the chains, so they need the server's configuration file (--config). It also says where the
store is. Variables such as METERING_CHAINS__BASE__RPC_URLS override it, as in the server. With --server, the server
reads its chains, and no configuration file is needed.

Examples:
  metering admin payments list --config /etc/metering.toml
  metering admin payments --server https://admin.example.com list")]
    PaymentsArgs with session {
        List(list::ListArgs),
        Assign(Box<assign::AssignArgs>),
        Records(records::RecordsArgs),
    }
}
