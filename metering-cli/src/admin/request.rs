//! `metering admin request`: requests whose credits are or were held.

mod list;
mod show;

use crate::commands::commands;

commands! {
    /// List and show requests whose credits are held until their cost is known.
    #[command(after_help = "\
Example:
  metering admin request list org_0123456789abcdefghij")]
    RequestArgs with session {
        List(list::ListArgs),
        Show(show::ShowArgs),
    }
}
