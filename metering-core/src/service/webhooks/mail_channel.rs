//! Mail as a webhook: alerts to the verified address of an account, where the service sends mail.

use super::setup::WebhookSetup;
use crate::access::account::Account;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::events::{
    EventKind, EventKinds, NewWebhook, Webhook, WebhookChange, WebhookId, WebhookSecret, WebhookState, WebhookTerms,
    WebhookUrl,
};
use crate::random::SystemRandomness;
use crate::service::fields::Fields;

/// The events that are mailed: credits run out, or are not topped up any longer.
const MAILED: [EventKind; 4] =
    [EventKind::BalanceLow, EventKind::BalanceExhausted, EventKind::BudgetExhausted, EventKind::TopUpStopped];

impl WebhookSetup {
    /// The address that alerts to an account are mailed to; `None` if there is none.
    fn alert_address(&self, account: &Account) -> Option<WebhookUrl> {
        let can = self.settings.mails && account.email_status.is_verified();
        account.email.as_ref().filter(|_| can).and_then(WebhookUrl::mail_to)
    }

    /// Whether alerts are mailed to an account; `None` if they cannot be.
    pub(super) async fn mails_alerts(&self, account: &Account) -> Result<Option<bool>, Error> {
        let Some(url) = self.alert_address(account) else { return Ok(None) };
        let channel = self.mail_channel(account).await?;
        Ok(Some(channel.is_some_and(|channel| is_on(&channel, &url))))
    }

    /// Has alerts mailed to an account, or not. `None` keeps the setting, and turns mail on if it was never set.
    /// Returns whether they are mailed; `None` if they cannot be.
    pub(in crate::service) async fn set_mail_alerts(
        &self,
        account: &Account,
        wanted: Option<bool>,
        now: Timestamp,
    ) -> Result<Option<bool>, Error> {
        let Some(url) = self.alert_address(account) else { return Ok(None) };
        let Some(channel) = self.mail_channel(account).await? else {
            if wanted != Some(false) {
                self.create_mail_channel(account, url, now).await?;
            }
            return Ok(Some(wanted != Some(false)));
        };
        let is_on = is_on(&channel, &url);
        let Some(wanted) = wanted.filter(|wanted| *wanted != is_on) else { return Ok(Some(is_on)) };
        let change = WebhookChange::Terms { url: wanted.then_some(url), kinds: None, disabled: Some(!wanted) };
        self.store()?.change_webhook(&account.id, &channel.id, change, now).await?;
        self.settings.wake.wake();
        Ok(Some(wanted))
    }

    /// Turns mailed alerts on for an account, with this kind of event, unless they were switched off.
    pub(super) async fn mail_also(&self, account: &Account, kind: EventKind, now: Timestamp) -> Result<(), Error> {
        if self.set_mail_alerts(account, None, now).await? != Some(true) {
            return Ok(());
        }
        let channel = self.mail_channel(account).await?;
        let Some(channel) = channel.filter(|channel| !channel.terms.kinds.has(kind)) else { return Ok(()) };
        let kinds = Some(channel.terms.kinds.iter().chain([kind]).collect());
        let change = WebhookChange::Terms { url: None, kinds, disabled: None };
        self.store()?.change_webhook(&account.id, &channel.id, change, now).await?;
        Ok(())
    }

    /// The URL of mail to an account's own address. An account has one such webhook, or it would get each alert twice, and
    /// switching mail off would leave the second on.
    pub(super) async fn read_mail(
        &self,
        fields: &mut Fields,
        text: &str,
        account: &Account,
    ) -> Result<Option<WebhookUrl>, Error> {
        let Some(own) = self.alert_address(account) else {
            fields.wrong(
                "url",
                "cannot be an email address: this service sends no mail, or the account's address is not verified",
            );
            return Ok(None);
        };
        let asked = text.split_once(':').and_then(|(_, address)| address.parse().ok());
        if asked != own.email() {
            fields.wrong("url", "must be the account's verified address");
            return Ok(None);
        }
        if self.mail_channel(account).await?.is_some() {
            fields.wrong("url", "is mail, which the account has a webhook for already; change that one");
            return Ok(None);
        }
        Ok(Some(own))
    }

    /// The events that a mail webhook selects; if it names none, all that can be mailed.
    pub(super) fn mailed(&self, fields: &mut Fields, kinds: Option<EventKinds>) -> EventKinds {
        let kinds = kinds.unwrap_or_else(|| MAILED.into_iter().collect());
        if kinds.iter().any(|kind| !MAILED.contains(&kind)) {
            let names = MAILED.map(EventKind::as_str).join(", ");
            fields.wrong("events", format_args!("must be among {names}; no other events are mailed"));
        }
        kinds
    }

    async fn mail_channel(&self, account: &Account) -> Result<Option<Webhook>, Error> {
        let webhooks = self.store()?.webhooks(Some(&account.id)).await?;
        Ok(webhooks.into_iter().find(|webhook| webhook.terms.url.email().is_some()))
    }

    /// It does not count against the number of webhooks that an account may have. If another request has created one in the
    /// meantime, the store refuses a second.
    async fn create_mail_channel(&self, account: &Account, url: WebhookUrl, now: Timestamp) -> Result<(), Error> {
        let new = NewWebhook {
            id: WebhookId::generate(&SystemRandomness),
            account: account.id.clone(),
            terms: WebhookTerms { url, kinds: MAILED.into_iter().collect() },
            secret: WebhookSecret::generate(&SystemRandomness),
            max_webhooks: u32::MAX,
            created_at: now,
        };
        self.store()?.create_webhook(new).await?;
        Ok(())
    }
}

fn is_on(channel: &Webhook, address: &WebhookUrl) -> bool {
    channel.state == WebhookState::Active && channel.terms.url == *address
}
