//! Has a server read its configuration again.

use crate::action::Action;
use crate::administration::Administration;
use crate::audited::{Target, json};
use crate::call::CONFIGURATION_RELOAD;
use crate::error::AdminError;
use crate::wire::ReloadDocument;

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
        self.audited(Target::named(CONFIGURATION_RELOAD, "configuration", action), reload, json).await
    }
}
