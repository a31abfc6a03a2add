//! Who a secret belongs to is read as the charge path reads it.

use crate::access::key_holders;
use crate::store::SqliteStore;

metering_sql::key_store! {
    SqliteStore {
        async fn key_holder(&self, secret: &KeyHash) -> Result<Option<KeyHolder>> {
            let secret = *secret;
            self.read(move |snapshot| key_holders::holder(snapshot, &secret)).await
        }

        async fn live_keys(&self, secrets: &[KeyHash], now: Timestamp) -> Result<Vec<bool>> {
            let secrets = secrets.to_vec();
            self.read(move |snapshot| key_holders::are_live(snapshot, &secrets, now)).await
        }
    }
}
