//! `payments list`: compares payments on the chains with the store's records.

use std::io::Write;

use clap::Args;
use metering_core::chains::{Address, TokenUnits, TxHash};
use metering_core::payments::{PaymentRecord, PaymentTarget, Plan};
use metering_core::service::{Arrival, Arrivals, payment_targets};
use metering_core::{PaymentStore, Timestamp};
use serde::Serialize;

use super::chains::{self, OpenChain};
use super::progress::Progress;
use super::status::{PaymentStatus, QuoteDocument};
use super::token::Token;
use super::unreadable::{self, Unread, UnreadDocument};
use crate::admin::session::{PAGE, Session};
use crate::failure::Failure;
use crate::output::{Format, json_line, notice};
use crate::table::{Column, Table};

/// How many blocks are read at once.
const CHUNK_BLOCKS: u64 = 2_000;
/// How far back the list goes by default. Payments that the watcher passed over are before its mark.
const LOOK_BACK_BLOCKS: u64 = 10_000;

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

/// The result of scanning one chain.
struct ChainScan {
    chain: OpenChain,
    from_block: u64,
    to_block: u64,
    found: Vec<(Arrival, PaymentStatus)>,
    unreadable: Vec<Unread>,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    payments: Vec<ArrivalDocument<'a>>,
    /// Arrivals that could not be read.
    unreadable: Vec<UnreadDocument<'a>>,
    scanned: Vec<ScannedDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct ScannedDocument<'a> {
    chain: &'a str,
    chain_id: u64,
    from_block: u64,
    to_block: u64,
}

#[derive(Debug, Serialize)]
struct ArrivalDocument<'a> {
    chain: &'a str,
    chain_id: u64,
    tx_hash: TxHash,
    block_number: u64,
    mined_at: Timestamp,
    payer_address: Option<Address>,
    recipient: Address,
    token_contract: Address,
    token_symbol: Option<&'a str>,
    amount_atomic: Option<TokenUnits>,
    amount_human: Option<String>,
    status: &'static str,
    /// If an account has it: `unsettled`, `final` or `reversed`.
    state: Option<&'static str>,
    /// The account that has it, or else the accounts of the wallet it came from.
    org_ids: Vec<String>,
    quote: Option<QuoteDocument<'a>>,
    note: String,
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
            all.push(self.scan(store.as_ref(), &plans, chain).await?);
        }
        if self.format.json {
            return json_line(out, &document(&all, &plans));
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

    async fn scan(&self, store: &dyn PaymentStore, plans: &[Plan], chain: OpenChain) -> Result<ChainScan, Failure> {
        let (from_block, to_block) = self.range(store, &chain).await?;
        let targets = payment_targets(store, &chain.chain, plans).await?;
        let progress = Progress::new();
        let (mut found, mut unread) = (Vec::new(), Vec::new());
        let mut next = from_block;
        while next <= to_block {
            progress.show(&format!("chain {}: block {next} of {to_block}", chain.name));
            let last = to_block.min(next.saturating_add(CHUNK_BLOCKS - 1));
            let Arrivals { read, unread: missed } = chain.arrivals(&targets, next, last).await?;
            unread.extend(missed.into_iter().map(|(place, error)| Unread::now(place, &error)));
            for arrival in read {
                let status = PaymentStatus::of(store, &arrival).await?;
                if self.all || !status.is_used() {
                    found.push((arrival, status));
                }
            }
            next = last.saturating_add(1);
        }
        let listed: Vec<_> = found.iter().map(|(arrival, _)| arrival.tx).collect();
        let reversed = reversed(store, chain.chain.chain_id).await?;
        let gone = reversed.into_iter().filter(|record| !listed.contains(&record.payment.tx));
        found.extend(gone.filter_map(|record| Some((as_recorded(&record)?, PaymentStatus::Used(record)))));
        let unreadable = unreadable::known(store, chain.chain.chain_id, from_block..=to_block, unread).await?;
        Ok(ChainScan { chain, from_block, to_block, found, unreadable })
    }

    /// The first and the last block.
    async fn range(&self, store: &dyn PaymentStore, chain: &OpenChain) -> Result<(u64, u64), Failure> {
        let confirmed = chain.confirmed_block().await?;
        let to = self.to_block.unwrap_or(confirmed);
        if to > confirmed {
            return Err(Failure::Usage(format!(
                "block {to} is not confirmed yet; the newest confirmed block is {confirmed}"
            )));
        }
        let from = match self.from_block {
            Some(from) => from,
            None => {
                let mark = store.scan_mark(chain.chain.chain_id).await?.unwrap_or(confirmed);
                mark.min(to).saturating_sub(LOOK_BACK_BLOCKS)
            }
        };
        if from > to {
            return Err(Failure::Usage(format!("--from-block {from} is after block {to}, the last block to read")));
        }
        Ok((from, to))
    }
}

/// Payments whose credits were reversed: the chain no longer has them, or does not have them again yet.
async fn reversed(store: &dyn PaymentStore, chain_id: u64) -> Result<Vec<PaymentRecord>, Failure> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.unsettled_payments(chain_id, after.as_ref(), PAGE).await?;
        found.extend(page.items.into_iter().filter(|record| record.settlement.reversed_at().is_some()));
        after = page.next;
        if after.is_none() {
            return Ok(found);
        }
    }
}

/// The arrival of a payment, rebuilt from its record.
fn as_recorded(record: &PaymentRecord) -> Option<Arrival> {
    let payment = record.payment.clone();
    let block = payment.block()?;
    Some(Arrival { tx: payment.tx, target: payment.target(), block, payment: Ok(payment) })
}

fn document<'a>(all: &'a [ChainScan], plans: &'a [Plan]) -> Document<'a> {
    let scanned = all.iter().map(|ChainScan { chain, from_block, to_block, .. }| ScannedDocument {
        chain: &chain.name,
        chain_id: chain.chain.chain_id,
        from_block: *from_block,
        to_block: *to_block,
    });
    let payments = all.iter().flat_map(|scanned| {
        scanned.found.iter().map(|(arrival, status)| ArrivalDocument::new(&scanned.chain, arrival, status, plans))
    });
    let unreadable = all.iter().flat_map(|ChainScan { chain, unreadable, .. }| {
        unreadable.iter().map(|unread| UnreadDocument::new(&chain.name, unread))
    });
    Document { payments: payments.collect(), unreadable: unreadable.collect(), scanned: scanned.collect() }
}

impl<'a> ArrivalDocument<'a> {
    fn new(chain: &'a OpenChain, arrival: &'a Arrival, status: &'a PaymentStatus, plans: &'a [Plan]) -> Self {
        let PaymentTarget { chain_id, token: token_contract, recipient } = arrival.target;
        let payment = arrival.payment.as_ref().ok();
        let token = Token::of(plans, &arrival.target);
        Self {
            chain: &chain.name,
            chain_id,
            tx_hash: arrival.tx.hash,
            block_number: arrival.block.number,
            mined_at: arrival.block.time,
            payer_address: payment.map(|payment| payment.payer),
            recipient,
            token_contract,
            token_symbol: token.symbol(),
            amount_atomic: payment.map(|payment| payment.amount),
            amount_human: payment.and_then(|payment| token.human(payment.amount)),
            status: status.as_str(),
            state: status.state(),
            org_ids: status.accounts().into_iter().map(ToString::to_string).collect(),
            quote: status.quote(),
            note: status.to_string(),
        }
    }
}

fn write_table(out: &mut dyn Write, all: &[ChainScan], plans: &[Plan]) -> Result<(), Failure> {
    let mut table = Table::new(COLUMNS);
    for ChainScan { chain, found, unreadable, .. } in all {
        for unread in unreadable {
            let place = unread.place();
            let hash = place.hash.map_or_else(|| "-".to_owned(), |hash| hash.to_string());
            let dash = &"-";
            table.row([&chain.name, &hash, &place.block_number, dash, dash, dash, dash, &"unreadable", unread]);
        }
        for (arrival, status) in found {
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
    for ChainScan { chain, from_block, to_block, found, unreadable } in all {
        let count = found.len();
        write!(out, "Chain {}, blocks {from_block} to {to_block}: {count} listed", chain.name)?;
        match unreadable.len() {
            0 => writeln!(out, ".")?,
            count => writeln!(out, ", {count} unreadable.")?,
        }
    }
    Ok(())
}
