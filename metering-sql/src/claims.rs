//! Claims: turns a paid quote into an account with a key.

use metering_core::backend::decision::{self, ClaimChanges, ClaimStep, Decided};
use metering_core::payments::Payment;
use metering_core::store::{Claim, Claimed};

use crate::executor::Executor;
use crate::fault::Result;
use crate::offers::rows;
use crate::{accounts, key_replacement, payments, quotes};

/// Claims a quote: creates its account, or replaces the account's key.
pub async fn claim(db: &mut dyn Executor, claim: &Claim) -> Result<Claimed> {
    let quote = quotes::by_nonce(db, &claim.nonce).await?;
    match decision::claim_step(claim, quote.as_ref()) {
        ClaimStep::Refused(refusal) => Ok(refusal),
        ClaimStep::CreateAccount => create_account(db, claim).await,
        ClaimStep::ReplaceKey(account) => {
            let facts = key_replacement::facts(db, &account, &claim.account.key).await?;
            match decision::claim_paid(claim, facts)? {
                Decided::Accepted(changes) => key_replacement::write(db, &changes).await.map(Claimed::Account),
                Decided::Refused(refusal) => Ok(refusal),
            }
        }
    }
}

async fn create_account(db: &mut dyn Executor, claim: &Claim) -> Result<Claimed> {
    let Payment { payer, tx, .. } = claim.payment;
    let tx_used = payments::by_tx(db, &tx).await?.is_some() || rows::is_for_usage(db, &payer, tx).await?;
    let facts = accounts::create_facts(db, &claim.account).await?;
    let ClaimChanges { account, record, nonce, quote } = match decision::claim_open(claim.clone(), tx_used, facts)? {
        Decided::Accepted(changes) => changes,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    let (row, tx) = (accounts::insert(db, &account).await?, record.payment.tx);
    payments::insert(db, &[record]).await?;
    quotes::consume(db, &nonce, row, tx, &quote).await?;
    Ok(Claimed::Account(account.account))
}
