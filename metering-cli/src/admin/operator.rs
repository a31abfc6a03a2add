//! `metering admin operator`: the operators who administer the service over HTTP.

use std::io::Write;

use clap::Args;
use metering_admin::calls::operators::{
    CreateOperator, ListOperators, OfOperator, RevokeOperator, RotateOperatorToken,
};
use metering_admin::wire::{CreateOperatorRequest, CreatedOperatorDocument};
use metering_core::operators::{MalformedRole, OperatorName, Role};

use super::session::Session;
use crate::commands::commands;
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::{table, write_pairs};

commands! {
    /// Create, list and revoke operators, and give them new tokens. They sign in to the console and use `--server`.
    #[command(after_help = "\
Example:
  metering admin operator create jo --role manager")]
    OperatorArgs with session {
        Create(CreateArgs),
        List(ListArgs),
        RotateToken(RotateTokenArgs),
        Revoke(RevokeArgs),
    }
}

/// Create an operator and print the token. The token is shown only once.
#[derive(Debug, Args)]
#[command(after_help = "\
Names are never used again, not even after a revocation, so that the audit log stays clear.

Examples:
  metering admin operator create jo --role manager
  metering admin operator create dashboards --role viewer --json")]
struct CreateArgs {
    /// The name: 1 to 64 letters, digits, dots, hyphens, underscores or at signs.
    #[arg(value_name = "NAME")]
    name: OperatorName,
    /// viewer (reads everything) or manager (takes every action too).
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: Role,
    #[command(flatten)]
    format: Format,
}

/// List all operators.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering admin operator list")]
struct ListArgs {
    #[command(flatten)]
    format: Format,
}

/// Give an operator a new token under the same name: the old token stops working immediately, and sessions end.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately, in running servers too. With --server, also for your own token.

Example:
  metering admin operator rotate-token jo --reason \"Yearly rotation\"")]
struct RotateTokenArgs {
    /// The operator's name.
    #[arg(value_name = "NAME")]
    name: OperatorName,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    format: Format,
}

/// Revoke an operator: the token stops working immediately, and sessions end.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately, in running servers too.

Example:
  metering admin operator revoke jo --reason \"Left the company\"")]
struct RevokeArgs {
    /// The operator's name.
    #[arg(value_name = "NAME")]
    name: OperatorName,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    format: Format,
}

fn role(text: &str) -> Result<Role, MalformedRole> {
    text.parse()
}

impl CreateArgs {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let (name, role) = (self.name.to_string(), self.role.as_str().to_owned());
        let wanted = CreateOperatorRequest { name, role, reason: String::new() };
        let created = session.administrator_or_new().await?.call::<CreateOperator>((), wanted).await?;
        print_token(out, self.format, &created)
    }
}

impl RotateTokenArgs {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        let question = format!("Replace the token of operator {}? The old one stops working immediately.", self.name);
        self.confirmation.ask(&question).await?;
        let created = administrator.act::<RotateOperatorToken>(OfOperator { name: self.name }).await?;
        print_token(out, self.format, &created)
    }
}

/// Prints a token, or says what to do if that fails: a closed pipe is a failure here, because the token cannot be printed
/// again.
fn print_token(out: &mut dyn Write, format: Format, created: &CreatedOperatorDocument) -> Result<(), Failure> {
    write_token(out, format, created).and_then(|()| Ok(out.flush()?)).map_err(|failure| {
        Failure::Failed(format!(
            "could not print the token of operator {} ({failure}), so it is lost; make another one with `metering admin \
             operator rotate-token`",
            created.operator.name
        ))
    })
}

fn write_token(out: &mut dyn Write, format: Format, created: &CreatedOperatorDocument) -> Result<(), Failure> {
    if format.json {
        return write_json(out, created);
    }
    let CreatedOperatorDocument { token, operator } = created;
    write_pairs(out, &[("Operator", &operator.name), ("Role", &operator.role), ("Token", &token.token().expose())])?;
    writeln!(out, "\nThe token is shown only once; save it now. Sign in with it at /console on the server's")?;
    Ok(writeln!(out, "admin_listen address, or set METERING_CLIENT_OPERATOR_TOKEN for `metering admin --server`.")?)
}

impl ListArgs {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let found = session.administrator().await?.get::<ListOperators>(()).await?;
        if self.format.json {
            return write_json(out, &found);
        }
        table!(out, &found.operators, |operator| {
            text("NAME") => operator.name,
            word("ROLE") => operator.role,
            state("STATUS") => operator.status,
            time("CREATED").optional(1) => operator.created_at,
        })
    }
}

impl RevokeArgs {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        self.confirmation.ask(&format!("Permanently revoke operator {}?", self.name)).await?;
        let operator = administrator.act::<RevokeOperator>(OfOperator { name: self.name }).await?;
        if self.format.json {
            return write_json(out, &operator);
        }
        let since = operator.revoked_at.unwrap_or_default();
        Ok(writeln!(out, "Operator {} was revoked at {since}.", operator.name)?)
    }
}
