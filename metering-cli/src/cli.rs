//! The top-level command line, and tests that every command has help and an example that parses.

use std::io::Write;

use clap::{CommandFactory, Parser, Subcommand};

use crate::admin::Admin;
use crate::client::access::accounts::AccountsArgs;
use crate::client::access::config::ConfigArgs;
use crate::client::access::export::ExportArgs;
use crate::client::access::keys::KeysArgs;
use crate::client::access::members::MembersArgs;
use crate::client::access::recover::RecoverArgs;
use crate::client::access::rotate::RotateArgs;
use crate::client::catalogue::routes::RoutesArgs;
use crate::client::charging::call::CallArgs;
use crate::client::charging::catch_up::CatchUpArgs;
use crate::client::charging::mcp::McpArgs;
use crate::client::charging::requests::RequestsArgs;
use crate::client::charging::signed_receipt::ReceiptArgs;
use crate::client::charging::statement::StatementArgs;
use crate::client::charging::stream::StreamArgs;
use crate::client::events::list::EventsArgs;
use crate::client::events::webhooks::WebhooksArgs;
use crate::client::money::alert::AlertArgs;
use crate::client::money::balance::BalanceArgs;
use crate::client::payments::auto_topup::AutoTopupArgs;
use crate::client::payments::plans::PlansArgs;
use crate::client::payments::processor::PaymentsArgs;
use crate::client::payments::receipts::ReceiptsArgs;
use crate::client::payments::topup::TopupArgs;
use crate::client::signups::signup::SignupArgs;
use crate::client::signups::signup_pay::SignupPayArgs;
use crate::client::usage::UsageArgs;
use crate::completions::Completions;
use crate::failure::{EXIT_CODES, Failure};
use crate::log::LogArgs;
use crate::manual::Manual;
use crate::table::Choice;

/// API keys, exact prepaid credits and metered usage, from the command line.
#[derive(Debug, Parser)]
#[command(name = "metering", version, arg_required_else_help = true, after_help = after_help())]
pub(crate) struct Cli {
    /// Show tables in full on a terminal too, even if rows wrap.
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) wide: bool,
    #[command(flatten)]
    pub(crate) tables: Choice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Plans(PlansArgs),
    Signup(SignupArgs),
    SignupPay(SignupPayArgs),
    Topup(TopupArgs),
    AutoTopup(AutoTopupArgs),
    Receipts(ReceiptsArgs),
    Payments(PaymentsArgs),
    Balance(BalanceArgs),
    Alert(AlertArgs),
    Usage(UsageArgs),
    Requests(RequestsArgs),
    Rotate(RotateArgs),
    Recover(RecoverArgs),
    Keys(KeysArgs),
    Members(MembersArgs),
    Accounts(AccountsArgs),
    Webhooks(WebhooksArgs),
    Events(EventsArgs),
    Export(ExportArgs),
    Routes(RoutesArgs),
    Call(CallArgs),
    Receipt(ReceiptArgs),
    Statement(StatementArgs),
    Stream(StreamArgs),
    CatchUp(CatchUpArgs),
    Mcp(McpArgs),
    Config(ConfigArgs),
    Log(LogArgs),
    Admin(Admin),
    Completions(Completions),
    Manual(Manual),
}

impl Command {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Self::Plans(args) => args.run(out).await,
            Self::Signup(args) => args.run(out).await,
            Self::SignupPay(args) => args.run(out).await,
            Self::Topup(args) => args.run(out).await,
            Self::AutoTopup(args) => args.run(out).await,
            Self::Receipts(args) => args.run(out).await,
            Self::Payments(args) => args.run(out).await,
            Self::Balance(args) => args.run(out).await,
            Self::Alert(args) => args.run(out).await,
            Self::Usage(args) => args.run(out).await,
            Self::Requests(args) => args.run(out).await,
            Self::Rotate(args) => args.run(out).await,
            Self::Recover(args) => args.run(out).await,
            Self::Keys(args) => args.run(out).await,
            Self::Members(args) => args.run(out).await,
            Self::Accounts(args) => args.run(out).await,
            Self::Webhooks(args) => args.run(out).await,
            Self::Events(args) => args.run(out).await,
            Self::Export(args) => args.run(out).await,
            Self::Routes(args) => args.run(out).await,
            Self::Call(args) => args.run(out).await,
            Self::Receipt(args) => args.run(out).await,
            Self::Statement(args) => args.run(out).await,
            Self::Stream(args) => args.run(out).await,
            Self::CatchUp(args) => args.run(out).await,
            Self::Mcp(args) => args.run(out).await,
            Self::Config(args) => args.run(out).await,
            Self::Log(args) => args.run(out).await,
            Self::Admin(admin) => admin.run(out).await,
            Self::Completions(completions) => completions.run(&mut Cli::command(), out),
            Self::Manual(manual) => manual.run(Cli::command(), out),
        }
    }
}

fn after_help() -> String {
    format!(
        "Examples:\n  metering signup --email me@example.com --agent-name my-agent\n  metering call /mpp/ethPrice\n  \
         metering admin account create --agent-name my-agent --credits 10\n\n{EXIT_CODES}"
    )
}

#[cfg(test)]
mod tests {
    mod documents;

    use clap::CommandFactory;
    use metering_tests::documents::shell;

    use super::*;

    /// Collects `command` and all its subcommands, each with the words that lead to it.
    fn commands(words: &str, command: &clap::Command, found: &mut Vec<(String, clap::Command)>) {
        found.push((words.to_owned(), command.clone()));
        for sub in command.get_subcommands() {
            commands(&format!("{words} {}", sub.get_name()), sub, found);
        }
    }

    fn all_commands() -> Vec<(String, clap::Command)> {
        let mut found = Vec::new();
        commands("metering", &Cli::command(), &mut found);
        found
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_a_valid_example() {
        let all = all_commands();
        assert!(all.len() > 20, "{}", all.len());
        for (words, command) in all {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples: Vec<_> = help.lines().map(str::trim).filter(|line| line.starts_with("metering ")).collect();
            assert!(!examples.is_empty(), "{words} has no example");
            for example in examples {
                assert!(example.starts_with(&words), "{words}: {example}");
                let parsed = Cli::try_parse_from(&shell::commands(example)[0]);
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn every_command_and_every_argument_is_described() {
        for (words, command) in all_commands() {
            assert!(command.get_about().is_some(), "{words}");
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{words} {}", argument.get_id());
            }
        }
    }
}
