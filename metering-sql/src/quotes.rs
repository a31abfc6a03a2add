//! Quotes.

use metering_core::AccountId;
use metering_core::backend::decision::{self, Decided, QuoteFacts};
use metering_core::chains::TxRef;
use metering_core::payments::{NonceHash, Payment, PaymentTarget, Quote, QuoteState};
use metering_core::store::QuoteOpened;

use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::owners::owner_facts;
use crate::record::{Record, find, insert, list, set, table};
use crate::row::Reader;
use crate::table::Table;
use crate::value::Value;
use crate::values;

impl Record for Quote {
    const TABLE: Table = table!("quote" by ["nonce"] {
        Own(nonce), Own(agent_name), Own(email), Own(payer), Account(top_up), Own(chain_id), Own(token), Own(recipient),
        Own(amount), Own(plan_id), Own(credits), Own(bonus_credits), Own(created_at), Own(expires_at),
        Own(honoured_until), Account(account), Own(tx_chain_id), Own(tx_hash), Own(state)
    });

    fn values(&self) -> Result<Vec<Value>> {
        let PaymentTarget { chain_id, token, recipient } = self.target;
        let (account, tx) = match &self.state {
            QuoteState::Open => (None, None),
            QuoteState::Paid { account, tx } | QuoteState::Claimed { account, tx } => (Some(account), Some(*tx)),
        };
        let mut values = values![self.nonce, self.agent_name, self.email, self.payer, self.top_up];
        values.extend(values![chain_id, token, recipient, self.amount, self.plan_id, self.credits]);
        values.extend(values![self.bonus_credits, self.created_at, self.expires_at, self.honoured_until(), account]);
        values.extend(values![tx.map(|tx| tx.chain_id), tx.map(|tx| tx.hash), self.state.as_str()]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (nonce, agent_name, email, payer, top_up) =
            (row.next()?, row.next()?, row.next()?, row.next()?, row.next()?);
        let target = PaymentTarget { chain_id: row.next()?, token: row.next()?, recipient: row.next()? };
        let (amount, plan_id, credits, bonus_credits) = (row.next()?, row.next()?, row.next()?, row.next()?);
        let (created_at, expires_at) = (row.next()?, row.next()?);
        row.skip();
        let (account, tx, state): (_, _, String) = (row.next()?, row.optional_tx()?, row.next()?);
        let state = QuoteState::from_parts(&state, account, tx)
            .ok_or_else(|| row.corrupt(format_args!("{state:?} does not match the account and the transaction")))?;
        Ok(Self {
            nonce,
            agent_name,
            email,
            payer,
            top_up,
            target,
            amount,
            plan_id,
            credits,
            bonus_credits,
            created_at,
            expires_at,
            state,
        })
    }
}

/// The distinct targets of the quotes of the chain `?1`, by token and recipient.
///
/// One seek in the index `quote_amount` for each, no matter how many quotes a target has: the first part finds the
/// tokens, the second the recipients of each. Neither database could use the index to search for both at once.
pub const TARGETS: &str = "WITH RECURSIVE tokens (token) AS ( \
       SELECT (SELECT q.token FROM quote q WHERE q.chain_id = ?1 ORDER BY q.token LIMIT 1) \
       UNION ALL \
       SELECT (SELECT q.token FROM quote q WHERE q.chain_id = ?1 AND q.token > tokens.token ORDER BY q.token LIMIT 1) \
       FROM tokens WHERE tokens.token IS NOT NULL), \
     targets (token, recipient) AS ( \
       SELECT tokens.token, (SELECT q.recipient FROM quote q WHERE q.chain_id = ?1 AND q.token = tokens.token \
         ORDER BY q.recipient LIMIT 1) \
       FROM tokens WHERE tokens.token IS NOT NULL \
       UNION ALL \
       SELECT targets.token, (SELECT q.recipient FROM quote q WHERE q.chain_id = ?1 AND q.token = targets.token \
         AND q.recipient > targets.recipient ORDER BY q.recipient LIMIT 1) \
       FROM targets WHERE targets.recipient IS NOT NULL) \
     SELECT token, recipient FROM targets WHERE recipient IS NOT NULL ORDER BY token, recipient";

/// The quote with this nonce.
pub async fn by_nonce(db: &mut dyn Executor, nonce: &NonceHash) -> Result<Option<Quote>> {
    find(db, "WHERE nonce = ?1", &values![nonce]).await
}

/// The quote that waits for a payment ([`Quote::waits`]). The query finds the few with the same amount, and
/// [`Quote::is_paid_by`] decides.
pub async fn paid_by(db: &mut dyn Executor, payment: &Payment) -> Result<Option<Quote>> {
    let rest = "WHERE chain_id = ?1 AND token = ?2 AND recipient = ?3 AND amount = ?4 AND payer IN (?5, ?6) \
                AND (state = 'open' OR top_up IS NOT NULL AND EXISTS (SELECT 1 FROM payment p \
                  WHERE p.chain_id = quote.tx_chain_id AND p.tx_hash = quote.tx_hash AND p.settlement = 'reversed')) \
                ORDER BY nonce";
    let PaymentTarget { chain_id, token, recipient } = payment.target();
    let values = values![chain_id, token, recipient, payment.amount, payment.payer, Quote::ANY_PAYER];
    let found: Vec<Quote> = list(db, rest, &values).await?;
    Ok(found.into_iter().find(|quote| quote.is_paid_by(payment)))
}

/// The top-up quotes of an account.
pub async fn top_ups(db: &mut dyn Executor, account: &AccountId) -> Result<Vec<Quote>> {
    let rest = "WHERE top_up = (SELECT o.id FROM account o WHERE o.org_id = ?1) ORDER BY created_at, nonce";
    list(db, rest, &values![account]).await
}

/// The distinct targets of a chain's quotes.
pub async fn targets(db: &mut dyn Executor, chain_id: u64) -> Result<Vec<PaymentTarget>> {
    let rows = db.query(TARGETS, &values![chain_id]).await?;
    rows.iter().map(|row| Ok(PaymentTarget { chain_id, token: row.get(0)?, recipient: row.get(1)? })).collect()
}

/// Stores a quote, unless its owner has an account or its amount is in use.
pub async fn open(db: &mut dyn Executor, new: &Quote) -> Result<QuoteOpened> {
    let facts = facts_of(db, new).await?;
    match decision::open_quote(new.clone(), facts)? {
        Decided::Accepted(quote) => insert(db, &[quote]).await.map(|_| QuoteOpened::Opened),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

async fn facts_of(db: &mut dyn Executor, new: &Quote) -> Result<QuoteFacts> {
    // The second column is `Quote::reserves_amount_of`, the third `Quote::counts_against`.
    let sql = "SELECT EXISTS (SELECT 1 FROM quote WHERE nonce = ?1), \
               EXISTS (SELECT 1 FROM quote WHERE chain_id = ?2 AND token = ?3 AND recipient = ?4 AND amount = ?5 \
                 AND (payer IN (?6, ?7) OR ?6 = ?7) AND (?8 <= honoured_until \
                   OR top_up IS NOT NULL AND ?10 <= honoured_until \
                     AND top_up IS DISTINCT FROM (SELECT id FROM account WHERE org_id = ?9))), \
               (SELECT COUNT(*) FROM quote WHERE top_up = (SELECT id FROM account WHERE org_id = ?9) \
                 AND state = 'open' AND ?8 <= honoured_until)";
    let unreserved = new.created_at.saturating_sub(Quote::CLOCK_SKEW);
    let rested = unreserved.saturating_sub(Quote::TOP_UP_REST);
    let PaymentTarget { chain_id, token, recipient } = new.target;
    let mut values = values![new.nonce, chain_id, token, recipient, new.amount, new.payer, Quote::ANY_PAYER];
    values.extend(values![unreserved, new.top_up, rested]);
    let rows = db.query(sql, &values).await?;
    let row = rows.first().ok_or_else(|| corrupt("a query that always has a row has none"))?;
    let unpaid_top_ups = usize::try_from(row.get::<u32>(2)?).unwrap_or(usize::MAX);
    let owner = owner_facts(db, new.email.as_ref(), Some(&new.payer)).await?;
    Ok(QuoteFacts { nonce_in_use: row.get(0)?, amount_taken: row.get(1)?, owner, unpaid_top_ups })
}

/// Links an open quote to the account that its payment created or credited, and sets its state.
pub async fn consume(
    db: &mut dyn Executor,
    nonce: &NonceHash,
    account: i64,
    tx: TxRef,
    state: &QuoteState,
) -> Result<()> {
    let values = values![nonce, state.as_str(), account, tx.chain_id, tx.hash];
    set::<Quote>(db, &["state", "account", "tx_chain_id", "tx_hash"], &[values]).await.map(drop)
}

/// Records that the key of an account's paid quotes has been given out.
pub async fn key_given_out(db: &mut dyn Executor, account: i64) -> Result<()> {
    let sql = "UPDATE quote SET state = 'claimed' WHERE account = ?1 AND state = 'paid'";
    db.execute(sql, &[values![account]]).await.map(drop)
}
