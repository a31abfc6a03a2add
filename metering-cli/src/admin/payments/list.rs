//! `payments list`: compares payments on the chains with the store's records.

use std::io::Write;

use clap::Args;
use metering_core::PaymentStore;
use metering_core::administration::payments::{FoundPayment, Scan, ScanError, ScanRequest, Token, scan};
use metering_core::payments::Plan;
use metering_core::wire::ArrivalsDocument;

use super::chains::{self, OpenChain};
use super::progress::Progress;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, json_line, notice};
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
  metering admin payments list --config /etc/metering.toml --chain base --from-block 38000000 --all --json")]
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
    Column::Text("CHAIN"),
    Column::Text("TX_HASH"),
    Column::Number("BLOCK"),
    Column::Text("TIME"),
    Column::Text("PAYER"),
    Column::Number("AMOUNT"),
    Column::Text("TOKEN"),
    Column::Text("STATUS"),
    Column::Text("STATE"),
    Column::Text("NOTE"),
];

impl ListArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let store = session.store().await?;
        let plans = store.plans().await?;
        let chains = self.chains(session).await?;
        if chains.len() > 1 && (self.from_block.is_some() || self.to_block.is_some()) {
            let problem = "block numbers belong to one chain; choose it with --chain";
            return Err(Failure::Usage(problem.to_owned()));
        }
        let mut all = Vec::new();
        for chain in chains {
            let scan = self.scan(store.as_ref(), &plans, &chain).await?;
            all.push((chain, scan));
        }
        if self.format.json {
            let mut document = ArrivalsDocument::default();
            for (chain, scan) in &all {
                document.add(chain.readable(), scan, &plans);
            }
            return json_line(out, &document);
        }
        write_table(out, &all, &plans)
    }

    async fn chains(&self, session: &Session) -> Result<Vec<OpenChain>, Failure> {
        if let Some(name) = &self.chain {
            return Ok(vec![chains::open_one(session.sources(), name).await?]);
        }
        let (chains, unreadable) = chains::open_all(session.sources()).await?;
        for name in unreadable {
            notice(&format!("note: chain {name} has no rpc_urls and is skipped"));
        }
        Ok(chains)
    }

    async fn scan(&self, store: &dyn PaymentStore, plans: &[Plan], chain: &OpenChain) -> Result<Scan, Failure> {
        let Self { from_block, to_block, all: with_used, .. } = *self;
        let request = ScanRequest { from_block, to_block, blocks_max: None, with_used };
        let progress = Progress::new();
        let mut show = |next: u64, last: u64| progress.show(&format!("chain {}: block {next} of {last}", chain.name));
        scan(store, plans, chain.readable(), request, &mut show).await.map_err(failure)
    }
}

fn failure(error: ScanError) -> Failure {
    match error {
        ScanError::NotConfirmed { .. } => Failure::Usage(error.to_string()),
        ScanError::Backwards { .. } => Failure::Usage(format!("--from-{error}")),
        ScanError::Store(error) => error.into(),
        ScanError::Chain { chain, error } => chains::unreadable(&chain, &error),
        error => Failure::Failed(error.to_string()),
    }
}

fn write_table(out: &mut dyn Write, all: &[(OpenChain, Scan)], plans: &[Plan]) -> Result<(), Failure> {
    let mut table = Table::new(COLUMNS);
    for (chain, Scan { found, unread, .. }) in all {
        for unread in unread {
            let location = unread.location();
            let hash = location.hash.map_or_else(|| "-".to_owned(), |hash| hash.to_string());
            let dash = &"-";
            table.row([&chain.name, &hash, &location.block_number, dash, dash, dash, dash, &"unreadable", unread]);
        }
        for FoundPayment { arrival, status } in found {
            let token = Token::of(plans, &arrival.target);
            let payment = arrival.payment.as_ref().ok();
            let payer = payment.map_or_else(|| "-".to_owned(), |payment| payment.payer.to_checksummed());
            let amount = payment.and_then(|payment| token.human(payment.amount)).unwrap_or_else(|| "-".to_owned());
            table.row([
                &chain.name,
                &arrival.tx.hash,
                &arrival.block.number,
                &arrival.block.time,
                &payer,
                &amount,
                &token.symbol().unwrap_or("-"),
                &status.as_str(),
                &status.state().unwrap_or("-"),
                &status,
            ]);
        }
    }
    table.write(out)?;
    writeln!(out)?;
    for (chain, Scan { from_block, to_block, found, unread, .. }) in all {
        let count = found.len();
        write!(out, "Chain {}, blocks {from_block} to {to_block}: {count} listed", chain.name)?;
        match unread.len() {
            0 => writeln!(out, ".")?,
            count => writeln!(out, ", {count} unreadable.")?,
        }
    }
    Ok(())
}
