//! Wallets that are linked to accounts by an earlier proof of ownership.

use metering_core::AccountId;
use metering_core::chains::Address;

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{Record, table};
use crate::transfer::WalletLink;
use crate::values;

// The numbers of the rows are the order of linking.
table! { "wallet_link" by ["wallet", "account"] of WalletLink { Own(wallet), Account(account) } }

/// Links a wallet to an account. An existing link keeps its position in the order.
pub async fn link(db: &mut dyn Executor, link: &WalletLink) -> Result<()> {
    let sql = format!("{} ON CONFLICT (wallet, account) DO NOTHING", WalletLink::TABLE.insert_numbered());
    let id = db.next_ids(1).await?.into_iter().next().flatten();
    db.execute(&sql, &[[link.values()?, values![id]].concat()]).await.map(drop)
}

/// The accounts that a wallet is linked to and that are not revoked, in the order of linking.
pub async fn accounts_of(db: &mut dyn Executor, wallet: &Address) -> Result<Vec<AccountId>> {
    let sql = "SELECT a.org_id FROM wallet_link w JOIN account a ON a.id = w.account \
               WHERE w.wallet = ?1 AND a.revoked_at IS NULL ORDER BY w.id";
    db.query(sql, &values![wallet]).await?.iter().map(|row| row.get(0)).collect()
}

/// The wallets that are linked to an account, in the order of linking.
pub async fn of_account(db: &mut dyn Executor, account: &AccountId) -> Result<Vec<Address>> {
    let sql = "SELECT w.wallet FROM wallet_link w JOIN account a ON a.id = w.account WHERE a.org_id = ?1 ORDER BY w.id";
    db.query(sql, &values![account]).await?.iter().map(|row| row.get(0)).collect()
}
