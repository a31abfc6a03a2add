use metering_core::backend::decision::{self, Decided, RedeemChanges};
use metering_core::signups::SessionHash;
use metering_core::store::SignupRedeemed;
use metering_core::{NewAccount, Timestamp};
use metering_sql::sessions;

use crate::access::accounts;
use crate::error::Result;
use crate::script::Statements;
use crate::transactions::serialized::SerializedWrite;

/// Turns an approved session into an account.
pub(crate) async fn redeem(
    write: &SerializedWrite<'_>,
    token: &SessionHash,
    account: NewAccount,
    now: Timestamp,
) -> Result<SignupRedeemed> {
    let db = &mut Statements(write.client());
    let session = sessions::by_token(db, token).await?;
    let facts = accounts::create_facts(write.client(), &account).await?;
    let RedeemChanges { account, token } = match decision::redeem_signup(session, account, facts, now)? {
        Decided::Accepted(changes) => changes,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    accounts::insert(write, &account).await?;
    sessions::delete(db, &token).await?;
    Ok(SignupRedeemed::Account(account.account))
}
