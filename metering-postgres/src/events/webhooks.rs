//! Webhooks of accounts, and the operator's own one.

use std::ops::Deref;

use metering_core::events::{
    NewWebhook, SigningSecret, Webhook, WebhookChange, WebhookId, WebhookSecret, WebhookState, WebhookTerms, WebhookUrl,
};
use metering_core::store::WebhookCreated;
use metering_core::{AccountId, Timestamp};
use tokio_postgres::Row;

use crate::access::accounts;
use crate::connection::session::GenericClient;
use crate::error::{Result, corrupt};
use crate::events::heads::{self, Line, OPERATOR};
use crate::events::outbox;
use crate::rows::{Values, all, bytes, execute, exists, first, optional_parsed, optional_timestamp, parsed, timestamp};
use crate::transactions::serialized::SerializedWrite;

/// The columns that [`webhook`] reads from [`TABLES`].
pub(crate) const COLUMNS: &str = "w.public_id, a.org_id, w.url, w.kinds, w.state, w.secret, w.secret_expires_at, \
     w.old_secret, w.old_secret_expires_at, w.created_at";

/// Webhooks with their accounts.
pub(crate) const TABLES: &str = "webhook w LEFT JOIN account a ON a.id = w.account";

/// How many secrets a webhook has columns for.
const SECRETS: usize = 2;

/// Deliveries that one transaction deletes. All other serialized writes wait for it.
const BATCH_DELIVERIES: u64 = 1_000;

/// A webhook's own row number, and that of its account.
pub(crate) struct Rows {
    pub(crate) webhook: i64,
    pub(crate) account: Option<i64>,
}

/// The webhooks of an account in the order of creation; with `None`, the operator's own.
pub(crate) async fn of_account<C: GenericClient>(client: &C, account: Option<&AccountId>) -> Result<Vec<Webhook>> {
    let listed = |condition: &str| format!("SELECT {COLUMNS} FROM {TABLES} WHERE {condition} ORDER BY w.id");
    let rows = match account {
        Some(account) => all(client, &listed("a.org_id = $1"), &[&account.as_str()]).await?,
        None => all(client, &listed("w.account IS NULL"), &[]).await?,
    };
    rows.iter().map(|row| webhook(row, 0)).collect()
}

/// A webhook of an account; with `None`, of the operator.
pub(crate) async fn find<C: GenericClient>(
    client: &C,
    account: Option<&AccountId>,
    id: &WebhookId,
) -> Result<Option<(Rows, Webhook)>> {
    let sql = format!("SELECT {COLUMNS}, w.id, w.account FROM {TABLES} WHERE w.public_id = $1");
    let Some(row) = first(client, &sql, &[&id.as_bytes().as_slice()]).await? else { return Ok(None) };
    let found = webhook(&row, 0)?;
    let rows = Rows { webhook: row.try_get(10)?, account: row.try_get(11)? };
    Ok(Some((rows, found)).filter(|(_, found)| found.account.as_ref() == account))
}

/// Creates a webhook of an account.
pub(crate) async fn create(write: &SerializedWrite<'_>, new: NewWebhook) -> Result<WebhookCreated> {
    let client = write.client();
    let found = accounts::by_id(client, &new.account).await?.filter(|(_, account)| account.revoked_at.is_none());
    let Some((account, _)) = found else { return Ok(WebhookCreated::NoSuchAccount) };
    let own = of_account(client, Some(&new.account)).await?.len();
    if !u32::try_from(own).is_ok_and(|own| own < new.max_webhooks) {
        return Ok(WebhookCreated::TooMany);
    }
    let webhook = new.into_webhook();
    insert(client, write.next_id().await?, Some(account), &webhook).await?;
    Ok(WebhookCreated::Webhook(webhook))
}

/// Sets the operator's own webhook, and switches it on if a deletion of it was begun.
pub(crate) async fn set_operator(write: &SerializedWrite<'_>, terms: WebhookTerms, now: Timestamp) -> Result<()> {
    let client = write.client();
    let sql = "UPDATE webhook SET url = $1, kinds = $2, state = $3 WHERE id = 0";
    let active = WebhookState::Active.as_str();
    if execute(client, sql, &[&terms.url.as_str(), &terms.kinds.to_string(), &active]).await? > 0 {
        return Ok(());
    }
    let (id, state, secrets) = (WebhookId::OPERATOR, WebhookState::Active, Vec::new());
    let webhook = Webhook { id, account: None, terms, state, secrets, created_at: now };
    insert(client, OPERATOR, None, &webhook).await
}

/// Changes a webhook of an account.
pub(crate) async fn change(
    write: &SerializedWrite<'_>,
    account: &AccountId,
    id: &WebhookId,
    change: WebhookChange,
    now: Timestamp,
) -> Result<Option<Webhook>> {
    let client = write.client();
    let Some((rows, before)) = find(client, Some(account), id).await? else { return Ok(None) };
    let webhook = before.clone().after(change, now);
    let line = Line { webhook: rows.webhook, account: rows.account.unwrap_or(outbox::NO_ACCOUNT) };
    let (is_switched, may_be_repaired) = (webhook.state != before.state, webhook.may_be_repaired(&before));
    if is_switched || may_be_repaired {
        heads::lock(client, &[line]).await?;
    }
    if is_switched {
        heads::unmark(client, line).await?;
    }
    let sql = "UPDATE webhook SET url = $2, kinds = $3, state = $4, secret = $5, secret_expires_at = $6, \
               old_secret = $7, old_secret_expires_at = $8 WHERE id = $1";
    let (kinds, secrets) = (webhook.terms.kinds.to_string(), exposed(&webhook)?);
    let [(secret, until), (old, old_until)] = secret_columns(&secrets);
    let values: Values<'_> = &[
        &rows.webhook,
        &webhook.terms.url.as_str(),
        &kinds,
        &webhook.state.as_str(),
        &secret,
        &until,
        &old,
        &old_until,
    ];
    execute(client, sql, values).await?;
    if is_switched {
        heads::mark(client, &[line]).await?;
    }
    if may_be_repaired {
        heads::hasten(client, line, now).await?;
    }
    Ok(Some(webhook))
}

/// Begins the deletion of a webhook of an account, or with `None` of the operator's: switches it off, so that it gets no
/// more deliveries, and returns its row. `None` if there is none.
pub(crate) async fn begin_deletion(
    write: &SerializedWrite<'_>,
    account: Option<&AccountId>,
    id: &WebhookId,
) -> Result<Option<i64>> {
    let client = write.client();
    // Without reading all of it: a row that is damaged can be deleted too.
    let sql = "SELECT id, coalesce(account, 0) FROM webhook WHERE public_id = $1";
    let id = id.as_bytes().as_slice();
    let row = match account {
        Some(account) => {
            let sql = format!("{sql} AND account = (SELECT id FROM account WHERE org_id = $2)");
            first(client, &sql, &[&id, &account.as_str()]).await?
        }
        None => first(client, &format!("{sql} AND account IS NULL"), &[&id]).await?,
    };
    let Some(row) = row else { return Ok(None) };
    let line = Line::read(&row, 0)?;
    if line.webhook != OPERATOR {
        heads::lock(client, &[line]).await?;
        heads::unmark(client, line).await?;
    }
    // Waits for those who insert deliveries to it, and later ones then see its state: while its deliveries are being
    // deleted, no new one is taken for the head of its line, or not, because of one that is about to go.
    execute(client, "SELECT FROM webhook WHERE id = $1 FOR UPDATE", &[&line.webhook]).await?;
    execute(client, "UPDATE webhook SET state = 'disabled' WHERE id = $1", &[&line.webhook]).await?;
    Ok(Some(line.webhook))
}

/// How far the deletion of a webhook is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deletion {
    /// It has more deliveries.
    Unfinished,
    /// The webhook is deleted.
    Done,
    /// Somebody else deleted it, or switched it on again.
    Superseded,
}

/// Deletes a portion of the deliveries of a webhook that is switched off, and after the last one the webhook.
pub(crate) async fn delete_some(write: &SerializedWrite<'_>, webhook: i64) -> Result<Deletion> {
    let client = write.client();
    if !exists(client, "SELECT FROM webhook WHERE id = $1 AND state = 'disabled'", &[&webhook]).await? {
        return Ok(Deletion::Superseded);
    }
    // The limit is a literal, as in the deletion of expired rows, and the order is the index's. The head of a line, the
    // oldest, is deleted last: if the webhook is switched on again before, its lines have their heads.
    let order = "ORDER BY state, id DESC NULLS LAST";
    let some = format!("SELECT id FROM delivery WHERE webhook = $1 {order} LIMIT {BATCH_DELIVERIES}");
    let sql = format!("DELETE FROM delivery WHERE id = ANY (ARRAY ({some}))");
    if execute(client, &sql, &[&webhook]).await? == BATCH_DELIVERIES {
        return Ok(Deletion::Unfinished);
    }
    execute(client, "DELETE FROM webhook WHERE id = $1", &[&webhook]).await?;
    Ok(Deletion::Done)
}

async fn insert<C: GenericClient>(client: &C, row: i64, account: Option<i64>, webhook: &Webhook) -> Result<()> {
    let sql = "INSERT INTO webhook (id, public_id, account, url, kinds, state, secret, secret_expires_at, old_secret, \
               old_secret_expires_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    let (kinds, secrets) = (webhook.terms.kinds.to_string(), exposed(webhook)?);
    let [(secret, until), (old, old_until)] = secret_columns(&secrets);
    let values: Values<'_> = &[
        &row,
        &webhook.id.as_bytes().as_slice(),
        &account,
        &webhook.terms.url.as_str(),
        &kinds,
        &webhook.state.as_str(),
        &secret,
        &until,
        &old,
        &old_until,
        &webhook.created_at.unix_millis(),
    ];
    execute(client, sql, values).await.map(drop)
}

/// The secrets of a webhook as text, newest first, each with when it expires. They are wiped from memory on drop.
///
/// # Errors
/// When it has more than there are columns.
pub(crate) fn exposed(
    webhook: &Webhook,
) -> Result<Vec<(impl Deref<Target = String> + Send + Sync + use<>, Option<i64>)>> {
    if webhook.secrets.len() > SECRETS {
        return Err(corrupt(format_args!("webhook {} has more than {SECRETS} secrets", webhook.id)));
    }
    let secrets = webhook.secrets.iter();
    Ok(secrets.map(|secret| (secret.secret.expose(), secret.expires_at.map(Timestamp::unix_millis))).collect())
}

/// The columns of [`exposed`] secrets.
pub(crate) fn secret_columns<S>(exposed: &[(S, Option<i64>)]) -> [(Option<&str>, Option<i64>); SECRETS]
where
    S: Deref<Target = String>,
{
    [0, 1].map(|place| exposed.get(place).map_or((None, None), |(secret, until)| (Some(secret.as_str()), *until)))
}

/// Reads a webhook from [`COLUMNS`], which start at `first`. Errors name neither its URL nor its secrets.
pub(crate) fn webhook(row: &Row, first: usize) -> Result<Webhook> {
    let id = WebhookId::from_bytes(bytes(row, first)?);
    let invalid = |what: &dyn std::fmt::Display| corrupt(format_args!("webhook {id}: {what}"));
    let state: &str = row.try_get(first + 4)?;
    // What customers may choose was checked when they did; the operator's rules may have changed since.
    let url = WebhookUrl::parse_trusted(row.try_get(first + 2)?).map_err(|error| invalid(&error))?;
    let mut secrets = Vec::new();
    for column in [first + 5, first + 7] {
        let Some(text) = row.try_get::<_, Option<&str>>(column)? else { continue };
        let secret = WebhookSecret::parse(text).map_err(|error| invalid(&error))?;
        secrets.push(SigningSecret { secret, expires_at: optional_timestamp(row, column + 1)? });
    }
    Ok(Webhook {
        id,
        account: optional_parsed(row, first + 1)?,
        terms: WebhookTerms { url, kinds: parsed(row, first + 3)? },
        state: WebhookState::from_name(state).ok_or_else(|| invalid(&format_args!("unknown state {state:?}")))?,
        secrets,
        created_at: timestamp(row, first + 9)?,
    })
}
