//! Which email addresses and wallets belong to accounts.

use metering_core::access::Email;
use metering_core::backend::decision::OwnerFacts;
use metering_core::chains::Address;

use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::values;

/// Whether an email address and a wallet are free for a new owner.
pub async fn owner_facts(db: &mut dyn Executor, email: Option<&Email>, payer: Option<&Address>) -> Result<OwnerFacts> {
    let sql = "SELECT EXISTS (SELECT 1 FROM account WHERE email_folded = ?1 AND revoked_at IS NULL), \
               EXISTS (SELECT 1 FROM account WHERE payer_address = ?2 AND revoked_at IS NULL)";
    let rows = db.query(sql, &values![email.map(Email::folded), payer]).await?;
    let row = rows.first().ok_or_else(|| corrupt("a query that always has a row has none"))?;
    Ok(OwnerFacts { email_taken: row.get(0)?, payer_taken: row.get(1)? })
}
