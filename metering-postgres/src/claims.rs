//! Claims: turns a paid quote into an account with a key.

use metering_core::{Claim, Claimed, Created, KeyDelivery, PaymentRecord, PaymentSettlement, PaymentUse, QuoteState};

use crate::error::{Result, corrupt};
use crate::serialized::SerializedWrite;
use crate::{accounts, payments, quotes};

/// Claims a quote.
pub(crate) async fn claim(write: &SerializedWrite<'_>, claim: Claim) -> Result<Claimed> {
    let Some(quote) = quotes::by_nonce(write.client(), &claim.nonce).await? else {
        return Ok(Claimed::NoSuchQuote);
    };
    match quote.state {
        QuoteState::Open => claim_open(write, claim).await,
        QuoteState::Paid { account, tx } if claim.delivery == KeyDelivery::Now && tx == claim.payment.tx => {
            let given = accounts::replace_key(write, &account, &claim.account.key, claim.now).await?;
            Ok(given.map_or(Claimed::AlreadyClaimed, Claimed::Account))
        }
        QuoteState::Paid { .. } | QuoteState::Claimed { .. } => Ok(Claimed::AlreadyClaimed),
    }
}

async fn claim_open(write: &SerializedWrite<'_>, claim: Claim) -> Result<Claimed> {
    let client = write.client();
    let Claim { nonce, payment, account: mut new, delivery, now } = claim;
    if payments::by_tx(client, &payment.tx).await?.is_some() {
        return Ok(Claimed::TxUsed);
    }
    if accounts::email_is_taken(client, new.email.as_ref()).await? {
        new.email = None;
    }
    let made = match accounts::create(write, &new).await? {
        Created::Account(account) => account,
        Created::PayerTaken => return Ok(Claimed::PayerTaken),
        Created::OutOfRange => return Ok(Claimed::OutOfRange),
        Created::EmailTaken => return Err(corrupt("an account without an email address was refused for its address")),
    };
    let row = accounts::by_id(client, &made.id).await?;
    let (row, _) = row.ok_or_else(|| corrupt("an account just created is missing"))?;
    let (tx, account) = (payment.tx, made.id.clone());
    let plan_id = new.entries.into_iter().find_map(|entry| entry.payment).and_then(|paid| paid.plan_id);
    let (used_as, settlement) = (PaymentUse::PaySignup, PaymentSettlement::of_new(&payment));
    let record = PaymentRecord { payment, account, used_as, plan_id, recorded_at: now, settlement };
    payments::insert(write, row, &record).await?;
    quotes::consume(write, &nonce, row, tx, delivery == KeyDelivery::Now).await?;
    Ok(Claimed::Account(made))
}
