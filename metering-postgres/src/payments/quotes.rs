use metering_core::AccountId;
use metering_core::access::Email;
use metering_core::backend::decision::{self, Decided, QuoteFacts};
use metering_core::chains::TxRef;
use metering_core::payments::{NonceHash, Payment, PaymentTarget, Quote, QuoteState};
use metering_core::store::QuoteOpened;
use tokio_postgres::Row;

use crate::connection::session::GenericClient;
use crate::error::{Result, corrupt};
use crate::rows::{
    Values, address, all, amount, bytes, execute, first, one, optional_tx, parse, parsed, timestamp, units,
    units_column,
};
use crate::script::Statements;
use crate::transactions::serialized::SerializedWrite;
use metering_sql::owners::owner_facts;

pub(crate) const COLUMNS: &str = "q.nonce, q.agent_name, q.email, q.payer, q.chain_id, q.token, q.recipient, q.amount, q.plan_id, \
     q.credits, q.bonus_credits, q.created_at, q.expires_at, q.state, a.org_id, q.tx_chain_id, q.tx_hash, t.org_id";
/// The tables of [`COLUMNS`].
pub(crate) const TABLES: &str =
    "quote q LEFT JOIN account a ON a.id = q.account LEFT JOIN account t ON t.id = q.top_up";

fn select(condition: &str) -> String {
    format!("SELECT {COLUMNS} FROM {TABLES} WHERE {condition}")
}

/// The quote with this nonce.
pub(crate) async fn by_nonce<C: GenericClient>(client: &C, nonce: &NonceHash) -> Result<Option<Quote>> {
    let row = first(client, &select("q.nonce = $1"), &[&nonce.as_bytes().as_slice()]).await?;
    row.as_ref().map(quote).transpose()
}

/// The quote that waits for a payment ([`Quote::waits`]). The query finds the few with the same amount, and
/// [`Quote::is_paid_by`] decides.
pub(crate) async fn paid_by<C: GenericClient>(client: &C, payment: &Payment) -> Result<Option<Quote>> {
    let condition = "q.chain_id = $1 AND q.token = $2 AND q.recipient = $3 AND q.amount = $4 AND q.payer IN ($5, $6) \
                     AND (q.state = 'open' OR q.top_up IS NOT NULL AND EXISTS (SELECT 1 FROM payment p \
                       WHERE p.chain_id = q.tx_chain_id AND p.tx_hash = q.tx_hash AND p.settlement = 'reversed')) \
                     ORDER BY q.nonce";
    let PaymentTarget { chain_id, token, recipient } = payment.target();
    let amount = units_column(payment.amount);
    let values: Values<'_> = &[
        &chain_id.cast_signed(),
        &token.as_bytes().as_slice(),
        &recipient.as_bytes().as_slice(),
        &amount.as_slice(),
        &payment.payer.as_bytes().as_slice(),
        &Quote::ANY_PAYER.as_bytes().as_slice(),
    ];
    let rows = all(client, &select(condition), values).await?;
    let quotes = rows.iter().map(quote).collect::<Result<Vec<_>>>()?;
    Ok(quotes.into_iter().find(|quote| quote.is_paid_by(payment)))
}

/// The top-up quotes of an account.
pub(crate) async fn top_ups<C: GenericClient>(client: &C, account: &AccountId) -> Result<Vec<Quote>> {
    let condition = "q.top_up = (SELECT id FROM account WHERE org_id = $1) ORDER BY q.created_at, q.nonce";
    let rows = all(client, &select(condition), &[&account.as_str()]).await?;
    rows.iter().map(quote).collect()
}

/// One seek in the index `quote_amount` per target, no matter how many quotes a target has.
const TARGETS: &str = "WITH RECURSIVE target (token, recipient) AS ( \
       SELECT ''::BYTEA, ''::BYTEA \
       UNION ALL \
       SELECT next.token, next.recipient FROM target CROSS JOIN LATERAL ( \
         SELECT q.token, q.recipient FROM quote q \
           WHERE q.chain_id = $1 AND (q.token, q.recipient) > (target.token, target.recipient) \
           ORDER BY q.token, q.recipient LIMIT 1) next) \
     SELECT token, recipient FROM target WHERE token <> '' ORDER BY token, recipient";

/// The distinct targets of a chain's quotes.
pub(crate) async fn targets<C: GenericClient>(client: &C, chain_id: u64) -> Result<Vec<PaymentTarget>> {
    let rows = all(client, TARGETS, &[&chain_id.cast_signed()]).await?;
    let target = |row| Ok(PaymentTarget { chain_id, token: address(row, 0)?, recipient: address(row, 1)? });
    rows.iter().map(target).collect()
}

/// Stores a quote, unless its owner has an account or its amount is in use.
pub(crate) async fn open(write: &SerializedWrite<'_>, new: Quote) -> Result<QuoteOpened> {
    let client = write.client();
    let facts = facts_of(client, &new).await?;
    match decision::open_quote(new, facts)? {
        Decided::Accepted(quote) => insert(client, &quote).await.map(|()| QuoteOpened::Opened),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

async fn facts_of<C: GenericClient>(client: &C, new: &Quote) -> Result<QuoteFacts> {
    // The second column is `Quote::reserves_amount_of`, the third `Quote::counts_against`.
    let sql = "SELECT EXISTS (SELECT 1 FROM quote WHERE nonce = $1), \
               EXISTS (SELECT 1 FROM quote WHERE chain_id = $2 AND token = $3 AND recipient = $4 AND amount = $5 \
                 AND (payer IN ($6, $7) OR $6 = $7) AND ($8 <= honoured_until \
                   OR top_up IS NOT NULL AND $10 <= honoured_until \
                     AND top_up IS DISTINCT FROM (SELECT id FROM account WHERE org_id = $9))), \
               (SELECT COUNT(*) FROM quote WHERE top_up = (SELECT id FROM account WHERE org_id = $9) \
                 AND state = 'open' AND $8 <= honoured_until)";
    let unreserved = new.created_at.saturating_sub(Quote::CLOCK_SKEW);
    let rested = unreserved.saturating_sub(Quote::TOP_UP_REST);
    let PaymentTarget { chain_id, token, recipient } = new.target;
    let amount = units_column(new.amount);
    let values: Values<'_> = &[
        &new.nonce.as_bytes().as_slice(),
        &chain_id.cast_signed(),
        &token.as_bytes().as_slice(),
        &recipient.as_bytes().as_slice(),
        &amount.as_slice(),
        &new.payer.as_bytes().as_slice(),
        &Quote::ANY_PAYER.as_bytes().as_slice(),
        &unreserved.unix_millis(),
        &new.top_up.as_ref().map(AccountId::as_str),
        &rested.unix_millis(),
    ];
    let row = one(client, sql, values).await?;
    let owner = owner_facts(&mut Statements(client), new.email.as_ref(), Some(&new.payer)).await?;
    let unpaid_top_ups = usize::try_from(row.try_get::<_, i64>(2)?).unwrap_or(usize::MAX);
    Ok(QuoteFacts { nonce_in_use: row.try_get(0)?, amount_taken: row.try_get(1)?, owner, unpaid_top_ups })
}

async fn insert<C: GenericClient>(client: &C, new: &Quote) -> Result<()> {
    let sql = "INSERT INTO quote (nonce, agent_name, email, payer, chain_id, token, recipient, amount, plan_id, \
               credits, bonus_credits, created_at, expires_at, honoured_until, state, top_up) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'open', \
                 (SELECT id FROM account WHERE org_id = $15))";
    let amount = units_column(new.amount);
    let values: Values<'_> = &[
        &new.nonce.as_bytes().as_slice(),
        &new.agent_name.as_str(),
        &new.email.as_ref().map(Email::as_str),
        &new.payer.as_bytes().as_slice(),
        &new.target.chain_id.cast_signed(),
        &new.target.token.as_bytes().as_slice(),
        &new.target.recipient.as_bytes().as_slice(),
        &amount.as_slice(),
        &new.plan_id,
        &new.credits.atoms(),
        &new.bonus_credits.atoms(),
        &new.created_at.unix_millis(),
        &new.expires_at.unix_millis(),
        &new.honoured_until().unix_millis(),
        &new.top_up.as_ref().map(AccountId::as_str),
    ];
    execute(client, sql, values).await.map(drop)
}

/// Links an open quote to the account that its payment created, and sets its state.
pub(crate) async fn consume(
    write: &SerializedWrite<'_>,
    nonce: &NonceHash,
    account: i64,
    tx: TxRef,
    state: &QuoteState,
) -> Result<()> {
    let sql = "UPDATE quote SET state = $2, account = $3, tx_chain_id = $4, tx_hash = $5 WHERE nonce = $1";
    let (nonce, hash) = (nonce.as_bytes().as_slice(), tx.hash.as_bytes().as_slice());
    let values: Values<'_> = &[&nonce, &state.as_str(), &account, &tx.chain_id.cast_signed(), &hash];
    execute(write.client(), sql, values).await.map(drop)
}

/// Records that the key of an account's paid quotes has been given out.
pub(crate) async fn key_given_out<C: GenericClient>(client: &C, account: i64) -> Result<()> {
    let sql = "UPDATE quote SET state = 'claimed' WHERE account = $1 AND state = 'paid'";
    execute(client, sql, &[&account]).await.map(drop)
}

pub(crate) fn quote(row: &Row) -> Result<Quote> {
    let chain_id: i64 = row.try_get(4)?;
    let target =
        PaymentTarget { chain_id: chain_id.cast_unsigned(), token: address(row, 5)?, recipient: address(row, 6)? };
    Ok(Quote {
        nonce: NonceHash::from_bytes(bytes(row, 0)?),
        agent_name: parsed(row, 1)?,
        email: row.try_get::<_, Option<&str>>(2)?.map(parse).transpose()?,
        payer: address(row, 3)?,
        top_up: row.try_get::<_, Option<&str>>(17)?.map(parse).transpose()?,
        target,
        amount: units(row, 7)?,
        plan_id: row.try_get(8)?,
        credits: amount(row, 9)?,
        bonus_credits: amount(row, 10)?,
        created_at: timestamp(row, 11)?,
        expires_at: timestamp(row, 12)?,
        state: quote_state(row.try_get(13)?, row.try_get(14)?, optional_tx(row, 15)?)?,
    })
}

fn quote_state(name: &str, account: Option<&str>, tx: Option<TxRef>) -> Result<QuoteState> {
    let account = account.map(parse).transpose()?;
    QuoteState::from_parts(name, account, tx).ok_or_else(|| {
        corrupt(format_args!("the state {name:?} of a quote does not match its account and transaction"))
    })
}

#[cfg(test)]
mod tests {
    use metering_core::PaymentStore;
    use metering_core::chains::Address;
    use metering_core::payments::PaymentTarget;
    use metering_tests::postgres::{Cluster, is_skipped, schema_of};

    use super::TARGETS;
    use crate::PostgresStore;

    #[tokio::test(flavor = "multi_thread")]
    async fn target_search_does_not_scan_quotes() {
        if is_skipped() {
            return;
        }
        let url = Cluster::shared().fresh_schema();
        let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
        let schema = schema_of(&url);
        let run = |sql: &str| Cluster::shared().run(&format!("SET search_path = {schema}; {sql}"));
        run("INSERT INTO quote (nonce, agent_name, payer, chain_id, token, recipient, amount, plan_id, credits, \
               bonus_credits, created_at, expires_at, honoured_until, state) \
               SELECT sha256(n::TEXT::BYTEA), 'a', substr(sha256(n::TEXT::BYTEA), 1, 20), 1 + n % 2, \
                 decode(repeat('00', 20), 'hex'), decode(repeat('0' || n % 3, 20), 'hex'), \
                 substr(sha256(n::TEXT::BYTEA), 1, 16), 'p', 1, 0, 0, 0, 0, 'open' FROM generate_series(1, 20000) n; \
             ANALYZE quote");
        let target = |recipient| {
            let recipient = Address::from_bytes([recipient; 20]);
            PaymentTarget { chain_id: 1, token: Address::ZERO, recipient }
        };
        assert_eq!(store.quoted_targets(1).await.unwrap(), [target(0), target(1), target(2)]);
        let plan = run(&format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {}", TARGETS.replace("$1", "1")));
        let scans: Vec<&str> = plan.lines().filter(|line| line.contains(" on quote")).collect();
        // One row for each of three targets, and a last seek that finds none.
        assert!(matches!(scans[..], [scan] if scan.contains("Index") && scan.ends_with("loops=4)")), "{plan}");
        assert!(scans[0].contains("rows=1 ") || scans[0].contains("rows=0.75 "), "{plan}");
    }
}
