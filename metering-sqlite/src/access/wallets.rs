//! Wallets that are linked to accounts by an earlier proof of ownership.

use metering_core::AccountId;
use metering_core::chains::Address;
use rusqlite::{Connection, params};

use crate::error::{Result, store_error};
use crate::rows::{all, parse};

/// Links a wallet to an account. An existing link keeps its position in the order.
pub(crate) fn link(connection: &Connection, wallet: &Address, account: i64) -> Result<()> {
    let sql = "INSERT INTO wallet_link (wallet, account) VALUES (?1, ?2) ON CONFLICT (wallet, account) DO NOTHING";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    statement.execute(params![wallet.as_bytes(), account]).map(drop).map_err(store_error)
}

/// The accounts that a wallet is linked to and that are not revoked, in the order of linking.
pub(crate) fn accounts_of(connection: &Connection, wallet: &Address) -> Result<Vec<AccountId>> {
    let sql = "SELECT a.org_id FROM wallet_link w JOIN account a ON a.id = w.account \
               WHERE w.wallet = ?1 AND a.revoked_at IS NULL ORDER BY w.id";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    all(&mut statement, [wallet.as_bytes()], |row| row.get::<_, String>(0).map(|id| parse(&id)))
}
