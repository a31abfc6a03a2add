//! The balance below which the owner of an account is notified.

use super::{Webhooks, read_threshold};
use crate::access::credentials::Caller;
use crate::access::role::Right;
use crate::access::scope::Scope;
use crate::error::Error;
use crate::events::EventKind;
use crate::wire::{BalanceAlertDocument, BalanceAlertRequest};

impl Webhooks<'_> {
    /// The balance below which the event `balance.low` is sent.
    ///
    /// # Errors
    /// As [`Webhooks::list`].
    pub async fn balance_alert(self, caller: impl Into<Caller<'_>>) -> Result<BalanceAlertDocument, Error> {
        let account = self.access.authorize(caller, Scope::Read).await?;
        let email = self.setup.mails_alerts(&account).await?;
        Ok(BalanceAlertDocument::new(&account.id, account.alert, email))
    }

    /// Sets the balance below which the event `balance.low` is sent, and whether it is also mailed to the account's
    /// verified address, where the service sends mail. By default it is, unless that was switched off before.
    ///
    /// # Errors
    /// As [`Webhooks::list`], but the key must be allowed to manage; and [`Error::ValidationFailed`].
    pub async fn set_balance_alert(
        self,
        caller: impl Into<Caller<'_>>,
        request: &BalanceAlertRequest,
    ) -> Result<BalanceAlertDocument, Error> {
        let account = self.owner(caller, Right::Pay).await?;
        let below = read_threshold(request)?;
        let changed = self.setup.store()?.set_balance_alert(&account.id, below).await?.ok_or(Error::Unauthorized)?;
        let email = match (below, request.email) {
            // Without a threshold nothing is low, so nobody is notified by default.
            (None, None) => self.setup.mails_alerts(&changed).await?,
            (_, wanted) => self.setup.set_mail_alerts(&changed, wanted, self.access.now()).await?,
        };
        Ok(BalanceAlertDocument::new(&changed.id, changed.alert, email))
    }

    /// Also mails the stop of automatic top-ups to the verified address of the caller's account, like alerts, if the service
    /// sends mail and the owner has not switched it off.
    ///
    /// # Errors
    /// As [`Webhooks::set_balance_alert`].
    pub async fn mail_stopped_top_ups(self, caller: impl Into<Caller<'_>>) -> Result<(), Error> {
        let account = self.owner(caller, Right::Pay).await?;
        self.setup.mail_also(&account, EventKind::TopUpStopped, self.access.now()).await
    }
}
