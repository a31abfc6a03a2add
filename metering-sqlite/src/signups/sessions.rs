use metering_core::backend::decision::{self, Decided, RedeemChanges};
use metering_core::signups::SessionHash;
use metering_core::store::SignupRedeemed;
use metering_core::{NewAccount, Timestamp};
use metering_sql::sessions;

use crate::access::accounts;
use crate::error::Result;
use crate::journal::Snapshot;
use crate::script::Statements;

/// Turns an approved session into an account.
pub(crate) fn redeem(
    snapshot: &Snapshot<'_>,
    token: &SessionHash,
    account: NewAccount,
    now: Timestamp,
) -> Result<SignupRedeemed> {
    let db = &mut Statements::new(snapshot);
    let session = metering_sql::now(sessions::by_token(db, token))?;
    let facts = accounts::create_facts(snapshot, &account)?;
    let RedeemChanges { account, token } = match decision::redeem_signup(session, account, facts, now)? {
        Decided::Accepted(changes) => changes,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    accounts::insert(snapshot, &account)?;
    metering_sql::now(sessions::delete(db, &token))?;
    Ok(SignupRedeemed::Account(account.account))
}
