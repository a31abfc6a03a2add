//! Has a server read its configuration again.

use super::action::{Action, NOTHING, Target, json};
use super::{AdminError, Administration};
use crate::wire::admin::ReloadDocument;

impl Administration {
    /// Logs a reload, and what came of it. `reload` is the server's own: the store has no configuration.
    ///
    /// # Errors
    /// Those of `reload`, or when the store fails.
    pub async fn reload_configuration(
        &self,
        action: &Action,
        reload: impl Future<Output = Result<ReloadDocument, AdminError>>,
    ) -> Result<ReloadDocument, AdminError> {
        let target = Target {
            name: "configuration.reload",
            subject: "configuration".to_owned(),
            request: NOTHING.to_owned(),
            before: None,
            action,
        };
        self.audited(target, reload, json).await
    }
}
