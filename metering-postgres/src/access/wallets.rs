//! Wallets that are linked to accounts by an earlier proof of ownership.

use metering_core::AccountId;
use metering_core::chains::Address;

use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::{all, execute, parsed};
use crate::transactions::serialized::SerializedWrite;

/// Links a wallet to an account. An existing link keeps its position in the order.
pub(crate) async fn link(write: &SerializedWrite<'_>, wallet: &Address, account: i64) -> Result<()> {
    let sql = "INSERT INTO wallet_link (id, wallet, account) VALUES ($1, $2, $3) \
               ON CONFLICT (wallet, account) DO NOTHING";
    let id = write.next_id().await?;
    execute(write.client(), sql, &[&id, &wallet.as_bytes().as_slice(), &account]).await.map(drop)
}

/// The accounts that a wallet is linked to and that are not revoked, in the order of linking.
pub(crate) async fn accounts_of<C: GenericClient>(client: &C, wallet: &Address) -> Result<Vec<AccountId>> {
    let sql = "SELECT a.org_id FROM wallet_link w JOIN account a ON a.id = w.account \
               WHERE w.wallet = $1 AND a.revoked_at IS NULL ORDER BY w.id";
    let rows = all(client, sql, &[&wallet.as_bytes().as_slice()]).await?;
    rows.iter().map(|row| parsed(row, 0)).collect()
}
