//! Quotes.

use crate::executor::Executor;
use crate::fault::Result;
use crate::values;

/// Records that the key of an account's paid quotes has been given out.
pub async fn key_given_out(db: &mut dyn Executor, account: i64) -> Result<()> {
    let sql = "UPDATE quote SET state = 'claimed' WHERE account = ?1 AND state = 'paid'";
    db.execute(sql, &[values![account]]).await.map(drop)
}
