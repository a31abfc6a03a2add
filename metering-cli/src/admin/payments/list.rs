//! `payments list`: compares payments on the chains with the store's records.

use std::io::Write;

use clap::Args;
use metering_admin::payments::ScanRequest;
use metering_admin::wire::{ArrivalsDocument, ScannedDocument};

use super::address::checksummed;
use crate::admin::administrator::Administrator;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, notice, write_json};
use crate::table::{Column, Table};

/// List payments that arrived and belong to no account.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads all transfers to the recipients of plans, on sale or not, in the tokens of those plans, and to the addresses where
quotes of the last three months were to be paid. Reads only blocks with as many confirmations as a payment needs.
Without --from-block, starts 10,000 blocks before the block that the server's watcher has reached, or before the newest
confirmed block if no watcher has run. If a plan is paid in the native coin, every block is fetched in full, so a long
range takes a long time. Payments that were credited and then removed by a reorganisation are always listed, with the
state `reversed`.
Anything that cannot be read, such as a transaction whose receipt is too large, is listed as `unreadable` with the
reason; the server's watcher skips it. If it is a payment, credit it with `metering admin account grant`.

Examples:
  metering admin payments list --config /etc/metering.toml
  metering admin payments list --config /etc/metering.toml --chain base --from-block 38000000 --all --json
  metering admin payments list --server https://admin.example.com")]
pub(crate) struct ListArgs {
    /// The chain, by the name of its configuration section; by default, all chains with rpc_urls.
    #[arg(long, value_name = "NAME")]
    chain: Option<String>,
    /// The first block.
    #[arg(long, value_name = "N")]
    from_block: Option<u64>,
    /// The last block [default: the newest confirmed one].
    #[arg(long, value_name = "N")]
    to_block: Option<u64>,
    /// Also list payments that belong to an account.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    format: Format,
}

const COLUMNS: &[Column] = &[
    Column::word("CHAIN").optional(2),
    Column::id("TX HASH"),
    Column::number("BLOCK").optional(6),
    Column::time("TIME").optional(3),
    Column::id("PAYER").optional(4),
    Column::number("AMOUNT"),
    Column::word("TOKEN"),
    Column::state("STATUS"),
    Column::state("STATE").optional(5),
    Column::text("NOTE").optional(7),
];

impl ListArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        let chains = self.chains(&administrator).await?;
        if chains.len() > 1 && (self.from_block.is_some() || self.to_block.is_some()) {
            let problem = "block numbers belong to one chain; choose it with --chain";
            return Err(Failure::Usage(problem.to_owned()));
        }
        let Self { from_block, to_block, all: with_used, .. } = self;
        let request = ScanRequest { from_block, to_block, blocks_max: None, with_used };
        let mut document = ArrivalsDocument::default();
        for chain in chains {
            document.append(administrator.arrivals(&chain, request).await?);
        }
        if self.format.json { write_json(out, &document) } else { write_table(out, &document) }
    }

    /// The names of the chains to read.
    async fn chains(&self, administrator: &Administrator) -> Result<Vec<String>, Failure> {
        if let Some(name) = &self.chain {
            return Ok(vec![name.clone()]);
        }
        let chains = administrator.chains().await?;
        for name in chains.unreadable {
            notice(&format!("note: chain {name} has no rpc_urls and is skipped"));
        }
        Ok(chains.readable)
    }
}

fn write_table(out: &mut dyn Write, document: &ArrivalsDocument) -> Result<(), Failure> {
    let mut table = Table::new(COLUMNS);
    for ScannedDocument { chain, .. } in &document.scanned {
        for unread in document.unreadable.iter().filter(|unread| unread.chain == *chain) {
            let (hash, dash) = (unread.tx_hash.as_deref().unwrap_or("-"), &"-");
            let note = unread.note();
            table.row([chain, &hash, &unread.block_number, dash, dash, dash, dash, &"unreadable", dash, &note]);
        }
        for payment in document.payments.iter().filter(|payment| payment.chain == *chain) {
            let payer = payment.payer_address.as_deref().map_or_else(|| "-".to_owned(), checksummed);
            table.row([
                chain,
                &payment.tx_hash,
                &payment.block_number,
                &payment.mined_at,
                &payer,
                &payment.amount_human.as_deref().unwrap_or("-"),
                &payment.token_symbol.as_deref().unwrap_or("-"),
                &payment.status,
                &payment.state.as_deref().unwrap_or("-"),
                &payment.note,
            ]);
        }
    }
    table.write(out)?;
    writeln!(out)?;
    for ScannedDocument { chain, from_block, to_block, .. } in &document.scanned {
        let count = document.payments.iter().filter(|payment| payment.chain == *chain).count();
        write!(out, "Chain {chain}, blocks {from_block} to {to_block}: {count} listed")?;
        match document.unreadable.iter().filter(|unread| unread.chain == *chain).count() {
            0 => writeln!(out, ".")?,
            count => writeln!(out, ", {count} unreadable.")?,
        }
    }
    Ok(())
}
