//! Claims: turns a paid quote into an account with a key.

use metering_core::backend::decision::{self, ClaimChanges, ClaimStep, Decided};
use metering_core::store::{Claim, Claimed};
use rusqlite::Connection;

use crate::access::accounts;
use crate::connection::writer::Stale;
use crate::error::Result;
use crate::payments::{quotes, records};

/// Claims a quote, and returns which account that changed. The caller cannot know that in advance: whether an account
/// is created or has its key replaced depends on the quote, which is read here.
pub(crate) fn claim(connection: &Connection, claim: Claim) -> Result<(Stale, Claimed)> {
    let quote = quotes::by_nonce(connection, &claim.nonce)?;
    match decision::claim_step(&claim, quote.as_ref()) {
        ClaimStep::Refused(refusal) => Ok((Stale::Nothing, refusal)),
        ClaimStep::CreateAccount => Ok((Stale::Nothing, create_account(connection, claim)?)),
        ClaimStep::ReplaceKey(account) => {
            let facts = accounts::key_facts(connection, &account, &claim.account.key)?;
            let claimed = match decision::claim_paid(&claim, facts)? {
                Decided::Accepted(changes) => Claimed::Account(accounts::write_key(connection, changes)?),
                Decided::Refused(refusal) => refusal,
            };
            Ok((Stale::Account(account), claimed))
        }
    }
}

fn create_account(connection: &Connection, claim: Claim) -> Result<Claimed> {
    let tx_used = records::by_tx(connection, &claim.payment.tx)?.is_some();
    let facts = accounts::create_facts(connection, &claim.account)?;
    let ClaimChanges { account, record, nonce, quote } = match decision::claim_open(claim, tx_used, facts)? {
        Decided::Accepted(changes) => changes,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    let row = accounts::insert(connection, &account)?;
    records::insert(connection, row, &record)?;
    quotes::consume(connection, &nonce, row, record.payment.tx, &quote)?;
    Ok(Claimed::Account(account.account))
}
