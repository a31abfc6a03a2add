//! Claims: turns a paid quote into an account with a key.

use metering_core::{Claim, Claimed, Created, KeyDelivery, PaymentRecord, PaymentSettlement, PaymentUse, QuoteState};
use rusqlite::Connection;

use crate::error::{Result, corrupt};
use crate::writer::Stale;
use crate::{accounts, payments, quotes};

/// Claims a quote, and returns which account that changed. The caller cannot know that in advance: whether an account
/// is created or has its key replaced depends on the quote, which is read here.
pub(crate) fn claim(connection: &Connection, claim: Claim) -> Result<(Stale, Claimed)> {
    let Some(quote) = quotes::by_nonce(connection, &claim.nonce)? else {
        return Ok((Stale::Nothing, Claimed::NoSuchQuote));
    };
    match quote.state {
        QuoteState::Open => Ok((Stale::Nothing, claim_open(connection, claim)?)),
        QuoteState::Paid { account, tx } if claim.delivery == KeyDelivery::Now && tx == claim.payment.tx => {
            let given = accounts::replace_key(connection, &account, &claim.account.key, claim.now)?;
            Ok((Stale::Account(account), given.map_or(Claimed::AlreadyClaimed, Claimed::Account)))
        }
        QuoteState::Paid { .. } | QuoteState::Claimed { .. } => Ok((Stale::Nothing, Claimed::AlreadyClaimed)),
    }
}

fn claim_open(connection: &Connection, claim: Claim) -> Result<Claimed> {
    let Claim { nonce, payment, account: mut new, delivery, now } = claim;
    if payments::by_tx(connection, &payment.tx)?.is_some() {
        return Ok(Claimed::TxUsed);
    }
    if accounts::email_is_taken(connection, new.email.as_ref())? {
        new.email = None;
    }
    let made = match accounts::create(connection, &new)? {
        Created::Account(account) => account,
        Created::PayerTaken => return Ok(Claimed::PayerTaken),
        Created::OutOfRange => return Ok(Claimed::OutOfRange),
        Created::EmailTaken => return Err(corrupt("an account without an email address was refused for its address")),
    };
    let (row, _) =
        accounts::by_id(connection, &made.id)?.ok_or_else(|| corrupt("an account just created is missing"))?;
    let (tx, account) = (payment.tx, made.id.clone());
    let plan_id = new.entries.into_iter().find_map(|entry| entry.payment).and_then(|paid| paid.plan_id);
    let (used_as, settlement) = (PaymentUse::PaySignup, PaymentSettlement::of_new(&payment));
    let record = PaymentRecord { payment, account, used_as, plan_id, recorded_at: now, settlement };
    payments::write(connection, row, &record)?;
    quotes::consume(connection, &nonce, row, tx, delivery == KeyDelivery::Now)?;
    Ok(Claimed::Account(made))
}
