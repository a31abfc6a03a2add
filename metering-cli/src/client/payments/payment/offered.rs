//! Gets a quote that matches the wanted plan, and prints it for a payer with another wallet.

use std::io::Write;

use metering_client::Client;
use metering_core::access::AgentName;
use metering_core::chains::{Address, TokenUnits};
use serde::Serialize;

use crate::client::payments::payment::bill::Bill;
use crate::client::payments::payment::entry::Entry;
use crate::client::payments::payment::market::Market;
use crate::client::payments::payment::quote::Quote;
use crate::failure::Failure;
use crate::output::{notice, write_json};
use crate::table::write_pairs;

/// What to request a quote for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuoteRequest<'a> {
    pub(crate) plan: &'a str,
    pub(crate) chain: Option<&'a str>,
    pub(crate) payer: Address,
    pub(crate) agent_name: &'a AgentName,
    pub(crate) email: Option<&'a str>,
}

/// A quote as it is printed, without its nonce, which stays in the journal.
#[derive(Serialize)]
struct Quoted<'a> {
    status: &'static str,
    plan_id: &'a str,
    payer: String,
    recipient: String,
    amount_atomic: TokenUnits,
    amount_human: String,
    token_contract: String,
    token_symbol: &'a str,
    token_decimals: u8,
    chain_id: u64,
    rpc_hint: Option<&'a str>,
    expires_at: String,
    terms_url: &'a str,
}

impl QuoteRequest<'_> {
    /// Requests a quote and checks it against the listed plan.
    pub(crate) async fn quote(self, client: &Client) -> Result<(Bill, Quote), Failure> {
        let market = Market::fetch(client).await?;
        let offer = market.offer(self.plan, self.chain)?;
        let listed = Bill::of_plan(&market, offer)?;
        let quote = Quote::request(client, offer, self.payer, self.agent_name, self.email).await?;
        Ok((listed.quoted(&quote)?, quote))
    }
}

/// Prints the pending quote.
pub(crate) fn write_quote(entry: &Entry, json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let Some(signup) = entry.signup() else { return Err(entry.conflict()) };
    let bill = &entry.bill;
    let quoted = Quoted {
        status: "quoted",
        plan_id: &bill.plan_id,
        payer: entry.payer.to_checksummed(),
        recipient: bill.recipient.to_checksummed(),
        amount_atomic: bill.amount,
        amount_human: bill.human(),
        token_contract: bill.token.to_checksummed(),
        token_symbol: &bill.token_symbol,
        token_decimals: bill.token_decimals,
        chain_id: bill.chain_id,
        rpc_hint: bill.rpc_hint.as_deref(),
        expires_at: signup.expires_at.to_string(),
        terms_url: &signup.terms_url,
    };
    if json {
        return write_json(out, &quoted);
    }
    let token = if bill.token == Address::ZERO { "the chain's coin" } else { &quoted.token_contract };
    write_pairs(
        out,
        &[
            ("Plan", &format!("{}: {}", bill.plan_id, bill.sells)),
            ("Amount", &format!("{} {}, exactly", quoted.amount_human, bill.token_symbol)),
            ("Token", &token),
            ("To", &quoted.recipient),
            ("From", &quoted.payer),
            ("Chain", &bill.chain_name),
            ("Before", &quoted.expires_at),
            ("Terms", &quoted.terms_url),
        ],
    )?;
    notice("Pay this in one plain transfer, then run:\n  metering signup-pay --tx HASH");
    Ok(())
}
