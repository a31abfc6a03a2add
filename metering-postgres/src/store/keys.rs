//! Who a secret belongs to is read with one statement.

use crate::access::keys;
use crate::store::PostgresStore;

metering_sql::key_store! {
    PostgresStore {
        async fn key_holder(&self, secret: &KeyHash) -> Result<Option<KeyHolder>> {
            let secret = *secret;
            self.read(move |client| Box::pin(async move { keys::holder(client, &secret).await })).await
        }

        async fn live_keys(&self, secrets: &[KeyHash], now: Timestamp) -> Result<Vec<bool>> {
            self.read(|client| {
                let secrets = secrets.to_vec();
                Box::pin(async move { keys::live(client, &secrets, now).await })
            })
            .await
        }
    }
}
