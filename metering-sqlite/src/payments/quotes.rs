use metering_core::backend::decision::{self, Decided, QuoteFacts};
use metering_core::chains::TxRef;
use metering_core::payments::{NonceHash, Payment, PaymentTarget, Quote, QuoteState};
use metering_core::store::QuoteOpened;
use metering_core::{AccountId, Credits};
use rusqlite::{Connection, Row, params};

use crate::error::{Result, corrupt, store_error};
use crate::journal::Snapshot;
use crate::rows::{address, all, first, optional_tx, parse, timestamp, units, units_column};
use crate::script::Statements;
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
pub(crate) fn by_nonce(connection: &Connection, nonce: &NonceHash) -> Result<Option<Quote>> {
    let mut statement = connection.prepare_cached(&select("q.nonce = ?1")).map_err(store_error)?;
    first(&mut statement, [nonce.as_bytes()], quote)
}

/// The quote that waits for a payment ([`Quote::waits`]). The query finds the few with the same amount, and
/// [`Quote::is_paid_by`] decides.
pub(crate) fn paid_by(connection: &Connection, payment: &Payment) -> Result<Option<Quote>> {
    let condition = "q.chain_id = ?1 AND q.token = ?2 AND q.recipient = ?3 AND q.amount = ?4 AND q.payer IN (?5, ?6) \
                     AND (q.state = 'open' OR q.top_up IS NOT NULL AND EXISTS (SELECT 1 FROM payment p \
                       WHERE p.chain_id = q.tx_chain_id AND p.tx_hash = q.tx_hash AND p.settlement = 'reversed')) \
                     ORDER BY q.nonce";
    let mut statement = connection.prepare_cached(&select(condition)).map_err(store_error)?;
    let PaymentTarget { chain_id, token, recipient } = payment.target();
    let (amount, payer) = (units_column(payment.amount), payment.payer.as_bytes());
    let any = Quote::ANY_PAYER;
    let values = params![chain_id.cast_signed(), token.as_bytes(), recipient.as_bytes(), amount, payer, any.as_bytes()];
    Ok(all(&mut statement, values, quote)?.into_iter().find(|quote| quote.is_paid_by(payment)))
}

/// The top-up quotes of an account.
pub(crate) fn top_ups(connection: &Connection, account: &AccountId) -> Result<Vec<Quote>> {
    let condition = "q.top_up = (SELECT id FROM account WHERE org_id = ?1) ORDER BY q.created_at, q.nonce";
    let mut statement = connection.prepare_cached(&select(condition)).map_err(store_error)?;
    all(&mut statement, [account.as_str()], quote)
}

/// The next target after a given one: two seeks in the index `quote_amount`, no matter how many quotes a target has.
/// Comparing (token, recipient) as a pair would read all quotes of the same token.
const NEXT_TARGET: &str = "SELECT token, recipient FROM ( \
       SELECT token, recipient FROM quote WHERE chain_id = ?1 AND token = ?2 AND recipient > ?3 \
         ORDER BY recipient LIMIT 1) \
     UNION ALL \
     SELECT token, recipient FROM ( \
       SELECT token, recipient FROM quote WHERE chain_id = ?1 AND token > ?2 ORDER BY token, recipient LIMIT 1) \
     LIMIT 1";

/// The distinct targets of a chain's quotes.
pub(crate) fn targets(connection: &Connection, chain_id: u64) -> Result<Vec<PaymentTarget>> {
    let mut statement = connection.prepare_cached(NEXT_TARGET).map_err(store_error)?;
    let mut targets: Vec<PaymentTarget> = Vec::new();
    loop {
        let last = targets.last().copied();
        let token: &[u8] = last.as_ref().map_or(&[], |last| last.token.as_bytes());
        let recipient: &[u8] = last.as_ref().map_or(&[], |last| last.recipient.as_bytes());
        let next = first(&mut statement, params![chain_id.cast_signed(), token, recipient], |row| {
            Ok(Ok(PaymentTarget { chain_id, token: address(row, 0)?, recipient: address(row, 1)? }))
        })?;
        match next {
            Some(next) => targets.push(next),
            None => return Ok(targets),
        }
    }
}

/// Stores a quote, unless its owner has an account or its amount is in use.
pub(crate) fn open(connection: &Snapshot<'_>, new: Quote) -> Result<QuoteOpened> {
    let facts = facts_of(connection, &new)?;
    match decision::open_quote(new, facts)? {
        Decided::Accepted(quote) => insert(connection, &quote).map(|()| QuoteOpened::Opened).map_err(store_error),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

fn facts_of(connection: &Snapshot<'_>, new: &Quote) -> Result<QuoteFacts> {
    // The second column is `Quote::reserves_amount_of`, the third `Quote::counts_against`.
    let sql = "SELECT EXISTS (SELECT 1 FROM quote WHERE nonce = ?1), \
               EXISTS (SELECT 1 FROM quote WHERE chain_id = ?2 AND token = ?3 AND recipient = ?4 AND amount = ?5 \
                 AND (payer IN (?6, ?7) OR ?6 = ?7) AND (?8 <= honoured_until \
                   OR top_up IS NOT NULL AND ?10 <= honoured_until \
                     AND top_up IS NOT (SELECT id FROM account WHERE org_id = ?9))), \
               (SELECT COUNT(*) FROM quote WHERE top_up = (SELECT id FROM account WHERE org_id = ?9) \
                 AND state = 'open' AND ?8 <= honoured_until)";
    let unreserved = new.created_at.saturating_sub(Quote::CLOCK_SKEW);
    let rested = unreserved.saturating_sub(Quote::TOP_UP_REST);
    let PaymentTarget { chain_id, token, recipient } = new.target;
    let values = params![
        new.nonce.as_bytes(),
        chain_id.cast_signed(),
        token.as_bytes(),
        recipient.as_bytes(),
        units_column(new.amount),
        new.payer.as_bytes(),
        Quote::ANY_PAYER.as_bytes(),
        unreserved.unix_millis(),
        new.top_up.as_ref().map(AccountId::as_str),
        rested.unix_millis(),
    ];
    let owner = metering_sql::now(owner_facts(&mut Statements::new(connection), new.email.as_ref(), Some(&new.payer)))?;
    let read = |row: &Row<'_>| {
        let unpaid_top_ups = usize::try_from(row.get::<_, i64>(2)?).unwrap_or(usize::MAX);
        Ok(QuoteFacts { nonce_in_use: row.get(0)?, amount_taken: row.get(1)?, owner, unpaid_top_ups })
    };
    connection.prepare_cached(sql).and_then(|mut s| s.query_row(values, read)).map_err(store_error)
}

fn insert(connection: &Connection, new: &Quote) -> rusqlite::Result<()> {
    let sql = "INSERT INTO quote (nonce, agent_name, email, payer, chain_id, token, recipient, amount, plan_id, \
               credits, bonus_credits, created_at, expires_at, honoured_until, state, top_up) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, 'open', \
                 (SELECT id FROM account WHERE org_id = ?15))";
    let values = params![
        new.nonce.as_bytes(),
        new.agent_name.as_str(),
        new.email.as_ref().map(metering_core::access::Email::as_str),
        new.payer.as_bytes(),
        new.target.chain_id.cast_signed(),
        new.target.token.as_bytes(),
        new.target.recipient.as_bytes(),
        units_column(new.amount),
        new.plan_id,
        new.credits.atoms(),
        new.bonus_credits.atoms(),
        new.created_at.unix_millis(),
        new.expires_at.unix_millis(),
        new.honoured_until().unix_millis(),
        new.top_up.as_ref().map(AccountId::as_str),
    ];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}

/// Links an open quote to the account that its payment created, and sets its state.
pub(crate) fn consume(
    connection: &Connection,
    nonce: &NonceHash,
    account: i64,
    tx: TxRef,
    state: &QuoteState,
) -> Result<()> {
    let sql = "UPDATE quote SET state = ?2, account = ?3, tx_chain_id = ?4, tx_hash = ?5 WHERE nonce = ?1";
    let values = params![nonce.as_bytes(), state.as_str(), account, tx.chain_id.cast_signed(), tx.hash.as_bytes()];
    connection.execute(sql, values).map(drop).map_err(store_error)
}

/// Records that the key of an account's paid quotes has been given out.
pub(crate) fn key_given_out(connection: &Connection, account: i64) -> Result<()> {
    let sql = "UPDATE quote SET state = 'claimed' WHERE account = ?1 AND state = 'paid'";
    connection.execute(sql, [account]).map(drop).map_err(store_error)
}

pub(crate) fn quote(row: &Row<'_>) -> rusqlite::Result<Result<Quote>> {
    let nonce = NonceHash::from_bytes(row.get(0)?);
    let (agent_name, email): (String, Option<String>) = (row.get(1)?, row.get(2)?);
    let payer = address(row, 3)?;
    let chain_id = row.get::<_, i64>(4)?.cast_unsigned();
    let target = PaymentTarget { chain_id, token: address(row, 5)?, recipient: address(row, 6)? };
    let (amount, plan_id) = (units(row, 7)?, row.get(8)?);
    let credits = Credits::from_atoms(row.get(9)?);
    let bonus_credits = Credits::from_atoms(row.get(10)?);
    let (created_at, expires_at) = (timestamp(row, 11)?, timestamp(row, 12)?);
    let (state, account): (String, Option<String>) = (row.get(13)?, row.get(14)?);
    let (tx, top_up) = (optional_tx(row, 15)?, row.get::<_, Option<String>>(17)?);
    let read = || {
        let (agent_name, email) = (parse(&agent_name)?, email.as_deref().map(parse).transpose()?);
        let state = quote_state(&state, account.as_deref(), tx)?;
        Ok(Quote {
            nonce,
            agent_name,
            email,
            payer,
            top_up: top_up.as_deref().map(parse).transpose()?,
            target,
            amount,
            plan_id,
            credits,
            bonus_credits,
            created_at,
            expires_at,
            state,
        })
    };
    Ok(read())
}

fn quote_state(name: &str, account: Option<&str>, tx: Option<TxRef>) -> Result<QuoteState> {
    let account = account.map(parse).transpose()?;
    QuoteState::from_parts(name, account, tx).ok_or_else(|| {
        corrupt(format_args!("the state {name:?} of a quote does not match its account and transaction"))
    })
}

#[cfg(test)]
mod tests {
    use metering_core::chains::Address;
    use metering_core::payments::PaymentTarget;
    use rusqlite::{Connection, StatementStatus, params};

    use super::{NEXT_TARGET, targets};

    /// A database of quotes in one token, with two recipients on chain 1 and one on chain 2.
    fn filled(quotes: i64) -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        crate::migrations::migrate(&mut connection).unwrap();
        let sql = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1) \
                   INSERT INTO quote (nonce, agent_name, payer, chain_id, token, recipient, amount, plan_id, credits, \
                   bonus_credits, created_at, expires_at, honoured_until, state) \
                   SELECT randomblob(32), 'a', randomblob(20), 1 + (n % 3 = 0), zeroblob(20), \
                   CASE WHEN n % 3 = 1 THEN zeroblob(20) ELSE x'0100000000000000000000000000000000000000' END, randomblob(16), 'p', 1, 0, 0, 0, \
                   0, 'open' FROM n";
        connection.execute(sql, [quotes]).unwrap();
        connection
    }

    #[test]
    fn each_payment_target_is_listed_once() {
        let mut first = [0; 20];
        first[0] = 1;
        let target = |chain_id, recipient| PaymentTarget { chain_id, token: Address::ZERO, recipient };
        let (zero, one) = (Address::ZERO, Address::from_bytes(first));
        let connection = filled(300);
        assert_eq!(targets(&connection, 1).unwrap(), [target(1, zero), target(1, one)]);
        assert_eq!(targets(&connection, 2).unwrap(), [target(2, one)]);
        assert_eq!(targets(&connection, 3).unwrap(), []);
    }

    #[test]
    fn target_search_does_not_scan_quotes() {
        let steps = |quotes: i64| {
            let connection = filled(quotes);
            let mut statement = connection.prepare(NEXT_TARGET).unwrap();
            let empty: &[u8] = &[];
            let found =
                statement.query(params![1, empty, empty]).unwrap().mapped(|row| row.get::<_, Vec<u8>>(0)).count();
            assert_eq!(found, 1);
            let zero: &[u8] = &[0; 20];
            assert!(statement.exists(params![1, zero, zero]).unwrap());
            statement.get_status(StatementStatus::VmStep)
        };
        let (few, many) = (steps(30), steps(30_000));
        assert!(many <= few + 10, "{few} steps, but {many} with a thousand times as many quotes");
    }
}
