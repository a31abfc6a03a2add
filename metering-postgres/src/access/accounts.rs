//! The scripts for accounts, for what is not a script.

use metering_core::{Account, AccountId};
use metering_sql::accounts;

use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::statements::Statements;

/// The account with this id, and its row number.
pub(crate) async fn by_id<C: GenericClient>(client: &C, id: &AccountId) -> Result<Option<(i64, Account)>> {
    Ok(accounts::by_id(&mut Statements(client), id).await?)
}
