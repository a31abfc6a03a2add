//! Has a server read its configuration again.

use crate::action::Action;
use crate::administration::Administration;
use crate::audited::{Target, done, json};
use crate::call::CONFIGURATION_RELOAD;
use crate::error::AdminError;
use crate::wire::ReloadDocument;

impl Administration {
    /// Reloads, and logs the reload with its outcome. `reload` is the server's own: the store has no configuration, so
    /// the entry follows the reload, which is not begun when the store cannot be written to.
    ///
    /// # Errors
    /// Those of `reload`, or when the store fails.
    pub async fn reload_configuration(
        &self,
        action: &Action,
        reload: impl Future<Output = Result<ReloadDocument, AdminError>>,
    ) -> Result<ReloadDocument, AdminError> {
        self.store.check().await?;
        let entry = Target::named(CONFIGURATION_RELOAD, "configuration", action).entry(self.clock.now());
        match reload.await {
            Ok(reloaded) => {
                let outcome = done(self.clock.now(), json(&reloaded));
                self.store.log_action(entry, outcome).await?;
                Ok(reloaded)
            }
            Err(error) => {
                self.log_refusal(entry, &error).await;
                Err(error)
            }
        }
    }
}
