//! Imports plans and everything about payments.

use metering_core::access::Email;
use metering_core::chains::TxRef;
use metering_core::payments::{PaymentRecord, Plan, Quote, QuoteState, RecipientRecord, UnreadableArrival};
use metering_core::transfer::{Record, ScanMark, WalletLink};
use metering_core::{AccountId, Credits, Timestamp};

use super::books::{column, of_kind};
use crate::error::Result;
use crate::rows::{execute, units_column};
use crate::script::Statements;
use crate::transactions::serialized::SerializedWrite;

const PAYMENTS: &str = "INSERT INTO payment (id, chain_id, tx_hash, payer, recipient, token, amount, block_number, \
     mined_at, account, used_as, plan_id, recorded_at, block_hash, settlement, reversed_at, plan_label, bonus_credits, \
     token_symbol, token_decimals) \
     SELECT new.id, new.chain_id, new.tx_hash, new.payer, new.recipient, new.token, new.amount, new.block_number, \
     new.mined_at, a.id, new.used_as, new.plan_id, new.recorded_at, new.block_hash, new.settlement, new.reversed_at, \
     new.plan_label, new.bonus_credits, new.token_symbol, new.token_decimals \
     FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BYTEA[], $4::BYTEA[], $5::BYTEA[], $6::BYTEA[], $7::BYTEA[], \
     $8::BIGINT[], $9::BIGINT[], $10::TEXT[], $11::TEXT[], $12::TEXT[], $13::BIGINT[], $14::BYTEA[], $15::TEXT[], \
     $16::BIGINT[], $17::TEXT[], $18::BIGINT[], $19::TEXT[], $20::BIGINT[]) \
     AS new (id, chain_id, tx_hash, payer, recipient, token, amount, block_number, mined_at, org_id, used_as, plan_id, \
     recorded_at, block_hash, settlement, reversed_at, plan_label, bonus_credits, token_symbol, token_decimals) \
     JOIN account a ON a.org_id = new.org_id";

/// An open quote has no account. The schema checks that every other quote has found its account.
const QUOTES: &str = "INSERT INTO quote (nonce, agent_name, email, payer, chain_id, token, recipient, amount, plan_id, \
     credits, bonus_credits, created_at, expires_at, honoured_until, state, account, tx_chain_id, tx_hash, top_up) \
     SELECT new.nonce, new.agent_name, new.email, new.payer, new.chain_id, new.token, new.recipient, new.amount, \
     new.plan_id, new.credits, new.bonus_credits, new.created_at, new.expires_at, new.honoured_until, new.state, a.id, \
     new.tx_chain_id, new.tx_hash, t.id \
     FROM unnest($1::BYTEA[], $2::TEXT[], $3::TEXT[], $4::BYTEA[], $5::BIGINT[], $6::BYTEA[], $7::BYTEA[], \
     $8::BYTEA[], $9::TEXT[], $10::BIGINT[], $11::BIGINT[], $12::BIGINT[], $13::BIGINT[], $14::BIGINT[], $15::TEXT[], \
     $16::TEXT[], $17::BIGINT[], $18::BYTEA[], $19::TEXT[]) \
     AS new (nonce, agent_name, email, payer, chain_id, token, recipient, amount, plan_id, credits, bonus_credits, \
     created_at, expires_at, honoured_until, state, org_id, tx_chain_id, tx_hash, top_up) \
     LEFT JOIN account a ON a.org_id = new.org_id LEFT JOIN account t ON t.org_id = new.top_up";

const LINKS: &str = "INSERT INTO wallet_link (id, wallet, account) SELECT new.id, new.wallet, a.id \
     FROM unnest($1::BIGINT[], $2::BYTEA[], $3::TEXT[]) AS new (id, wallet, org_id) \
     JOIN account a ON a.org_id = new.org_id";

/// Inserts records that are stored as one row each.
pub(super) async fn insert<R: metering_sql::Record>(write: &SerializedWrite<'_>, records: &[R]) -> Result<u64> {
    Ok(metering_sql::insert(&mut Statements(write.client()), records).await?)
}

pub(super) async fn plans(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<Plan> = of_kind!(records, Plan).into_iter().map(|plan| Plan::clone(plan)).collect();
    insert(write, &records).await
}

pub(super) async fn payments(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&PaymentRecord> = of_kind!(records, Payment).into_iter().map(|record| &**record).collect();
    let rows = write.next_ids(records.len()).await?;
    let amounts = column!(records, record => units_column(record.payment.amount));
    execute(
        write.client(),
        PAYMENTS,
        &[
            &rows,
            &column!(records, record => record.payment.tx.chain_id.cast_signed()),
            &column!(records, record => record.payment.tx.hash.as_bytes().as_slice()),
            &column!(records, record => record.payment.payer.as_bytes().as_slice()),
            &column!(records, record => record.payment.recipient.as_bytes().as_slice()),
            &column!(records, record => record.payment.token.as_bytes().as_slice()),
            &column!(amounts, amount => amount.as_slice()),
            &column!(records, record => record.payment.block_number.cast_signed()),
            &column!(records, record => record.payment.mined_at.unix_millis()),
            &column!(records, record => record.account.as_str()),
            &column!(records, record => record.used_as.as_str()),
            &column!(records, record => record.plan_id.as_deref()),
            &column!(records, record => record.recorded_at.unix_millis()),
            &column!(records, record => record.payment.block_hash.as_ref().map(<[u8; 32]>::as_slice)),
            &column!(records, record => record.settlement.as_str()),
            &column!(records, record => record.settlement.reversed_at().map(Timestamp::unix_millis)),
            &column!(records, record => record.sold.as_ref().map(|sold| sold.label.as_str())),
            &column!(records, record => record.sold.as_ref().and_then(|sold| sold.bonus_credits).map(Credits::atoms)),
            &column!(records, record => record.sold.as_ref().map(|sold| sold.token_symbol.as_str())),
            &column!(records, record => record.sold.as_ref().map(|sold| i64::from(sold.token_decimals))),
        ],
    )
    .await
}

/// State, account and transaction of a quote, as its columns store them.
fn state(quote: &Quote) -> (&'static str, Option<&str>, Option<TxRef>) {
    match &quote.state {
        QuoteState::Open => ("open", None, None),
        QuoteState::Paid { account, tx } => ("paid", Some(account.as_str()), Some(*tx)),
        QuoteState::Claimed { account, tx } => ("claimed", Some(account.as_str()), Some(*tx)),
    }
}

pub(super) async fn quotes(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&Quote> = of_kind!(records, Quote).into_iter().map(|quote| &**quote).collect();
    let amounts = column!(records, quote => units_column(quote.amount));
    let states = column!(records, quote => state(quote));
    execute(
        write.client(),
        QUOTES,
        &[
            &column!(records, quote => quote.nonce.as_bytes().as_slice()),
            &column!(records, quote => quote.agent_name.as_str()),
            &column!(records, quote => quote.email.as_ref().map(Email::as_str)),
            &column!(records, quote => quote.payer.as_bytes().as_slice()),
            &column!(records, quote => quote.target.chain_id.cast_signed()),
            &column!(records, quote => quote.target.token.as_bytes().as_slice()),
            &column!(records, quote => quote.target.recipient.as_bytes().as_slice()),
            &column!(amounts, amount => amount.as_slice()),
            &column!(records, quote => quote.plan_id.as_str()),
            &column!(records, quote => quote.credits.atoms()),
            &column!(records, quote => quote.bonus_credits.atoms()),
            &column!(records, quote => quote.created_at.unix_millis()),
            &column!(records, quote => quote.expires_at.unix_millis()),
            &column!(records, quote => quote.honoured_until().unix_millis()),
            &column!(states, state => state.0),
            &column!(states, state => state.1),
            &column!(states, state => state.2.map(|tx| tx.chain_id.cast_signed())),
            &column!(states, state => state.2.as_ref().map(|tx| tx.hash.as_bytes().as_slice())),
            &column!(records, quote => quote.top_up.as_ref().map(AccountId::as_str)),
        ],
    )
    .await
}

pub(super) async fn links(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&WalletLink> = of_kind!(records, Link);
    let rows = write.next_ids(records.len()).await?;
    let wallets = column!(records, link => link.wallet.as_bytes().as_slice());
    execute(write.client(), LINKS, &[&rows, &wallets, &column!(records, link => link.account.as_str())]).await
}

pub(super) async fn scan_marks(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<ScanMark> = of_kind!(records, ScanMark).into_iter().cloned().collect();
    insert(write, &records).await
}

pub(super) async fn recipients(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<RecipientRecord> = of_kind!(records, Recipient).into_iter().cloned().collect();
    insert(write, &records).await
}

pub(super) async fn unreadable(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<UnreadableArrival> = of_kind!(records, Unreadable).into_iter().cloned().collect();
    insert(write, &records).await
}
