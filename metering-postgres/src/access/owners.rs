//! Which email addresses and wallets belong to accounts.

use metering_core::access::Email;
use metering_core::backend::decision::OwnerFacts;
use metering_core::chains::Address;

use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::one;

/// Whether an email address and a wallet are free for a new owner.
pub(crate) async fn owner_facts<C: GenericClient>(
    client: &C,
    email: Option<&Email>,
    payer: Option<&Address>,
) -> Result<OwnerFacts> {
    let sql = "SELECT EXISTS (SELECT 1 FROM account WHERE email_folded = $1 AND revoked_at IS NULL), \
               EXISTS (SELECT 1 FROM account WHERE payer_address = $2 AND revoked_at IS NULL)";
    let (email, payer) = (email.map(Email::folded), payer.map(|payer| payer.as_bytes().as_slice()));
    let row = one(client, sql, &[&email, &payer]).await?;
    Ok(OwnerFacts { email_taken: row.try_get(0)?, payer_taken: row.try_get(1)? })
}
