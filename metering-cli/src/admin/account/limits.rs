//! `account limits`: changes an account's rate limits.

use std::io::Write;

use clap::Args;
use metering_admin::calls::accounts::{OfAccount, SetLimits};
use metering_admin::wire::LimitsRequest;
use metering_core::AccountId;

use super::document;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::Format;

/// Change an account's rate limits. A limit that is not given stays as it is.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately, in running servers too. Requests already accepted in the current minute and day still count.

Examples:
  metering admin account limits org_0123456789abcdefghij --rpm 600
  metering admin account limits org_0123456789abcdefghij --rpm 0 --rpd 0
  metering admin account limits org_0123456789abcdefghij --tpm 200000")]
pub(crate) struct LimitsArgs {
    /// The account's id.
    #[arg(value_name = "ORG")]
    org: AccountId,
    /// Requests per calendar minute; 0 for no limit.
    #[arg(long, value_name = "N", required_unless_present_any = ["rpd", "tpm"])]
    rpm: Option<u32>,
    /// Requests per UTC day; 0 for no limit.
    #[arg(long, value_name = "N")]
    rpd: Option<u32>,
    /// Tokens per calendar minute, on routes that count them; 0 for no limit.
    #[arg(long, value_name = "N")]
    tpm: Option<u32>,
    #[command(flatten)]
    format: Format,
}

impl LimitsArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let limits = LimitsRequest {
            requests_per_minute: self.rpm,
            requests_per_day: self.rpd,
            tokens_per_minute: self.tpm,
            reason: String::new(),
        };
        let account = session.administrator().await?.call::<SetLimits>(OfAccount { id: self.org }, limits).await?;
        document::write(out, self.format.json, "The rate limits were changed.", &account)
    }
}
