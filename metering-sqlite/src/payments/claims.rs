//! Claims: turns a paid quote into an account with a key.

use metering_core::backend::decision::{self, ClaimChanges, ClaimStep, Decided};
use metering_core::store::{Claim, Claimed};

use crate::access::{accounts, key_changes};
use crate::error::Result;
use crate::journal::Snapshot;
use crate::payments::{quotes, records};

/// Claims a quote: creates its account, or replaces the account's key.
pub(crate) fn claim(connection: &Snapshot<'_>, claim: Claim) -> Result<Claimed> {
    let quote = quotes::by_nonce(connection, &claim.nonce)?;
    match decision::claim_step(&claim, quote.as_ref()) {
        ClaimStep::Refused(refusal) => Ok(refusal),
        ClaimStep::CreateAccount => create_account(connection, claim),
        ClaimStep::ReplaceKey(account) => {
            let facts = key_changes::replace_facts(connection, &account, &claim.account.key)?;
            match decision::claim_paid(&claim, facts)? {
                Decided::Accepted(changes) => key_changes::write_all(connection, changes).map(Claimed::Account),
                Decided::Refused(refusal) => Ok(refusal),
            }
        }
    }
}

fn create_account(connection: &Snapshot<'_>, claim: Claim) -> Result<Claimed> {
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
