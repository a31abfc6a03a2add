//! Claims: turns a paid quote into an account with a key.

use metering_core::backend::decision::{self, ClaimChanges, ClaimStep, Decided};
use metering_core::store::{Claim, Claimed};

use crate::access::accounts;
use crate::error::Result;
use crate::payments::{quotes, records};
use crate::transactions::serialized::SerializedWrite;

/// Claims a quote.
pub(crate) async fn claim(write: &SerializedWrite<'_>, claim: Claim) -> Result<Claimed> {
    let client = write.client();
    let quote = quotes::by_nonce(client, &claim.nonce).await?;
    let decided = match decision::claim_step(&claim, quote.as_ref()) {
        ClaimStep::Refused(refusal) => return Ok(refusal),
        ClaimStep::CreateAccount => return create_account(write, claim).await,
        ClaimStep::ReplaceKey(account) => {
            let facts = accounts::key_facts(client, &account, &claim.account.key).await?;
            decision::claim_paid(&claim, facts)?
        }
    };
    match decided {
        Decided::Accepted(changes) => accounts::write_keys(write, changes).await.map(Claimed::Account),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

async fn create_account(write: &SerializedWrite<'_>, claim: Claim) -> Result<Claimed> {
    let client = write.client();
    let tx_used = records::by_tx(client, &claim.payment.tx).await?.is_some();
    let facts = accounts::create_facts(client, &claim.account).await?;
    let ClaimChanges { account, record, nonce, quote } = match decision::claim_open(claim, tx_used, facts)? {
        Decided::Accepted(changes) => changes,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    let row = accounts::insert(write, &account).await?;
    records::insert(write, row, &record).await?;
    quotes::consume(write, &nonce, row, record.payment.tx, &quote).await?;
    Ok(Claimed::Account(account.account))
}
