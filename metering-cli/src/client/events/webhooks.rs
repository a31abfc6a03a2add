//! `metering webhooks`: the URLs that the account's events are sent to.

mod deliveries;
mod issued;
mod webhook;

use crate::commands::commands;

commands! {
    /// Send the account's events to your server, and see its responses.
    ///
    /// Requests are signed as the Standard Webhooks specification says, and retried for three days until the server
    /// responds with a 2xx status. Only the account's first key can change webhooks; keys with the scope read list them.
    #[command(after_help = "\
Examples:
  metering webhooks create https://hooks.example.com/metering --events balance.low,balance.exhausted
  metering webhooks test we_0123456789abcdef0123456789abcdef
  metering webhooks list")]
    WebhooksArgs {
        List(webhook::ListArgs),
        Create(webhook::CreateArgs),
        Show(webhook::ShowArgs),
        Set(webhook::SetArgs),
        Rotate(webhook::RotateArgs),
        Test(deliveries::TestArgs),
        Deliveries(deliveries::DeliveriesArgs),
        Resend(deliveries::ResendArgs),
        Delete(webhook::DeleteArgs),
    }
}
