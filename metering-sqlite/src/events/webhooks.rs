//! The rows of webhooks. Their secrets are stored in plain text, and appear in no error.

use std::ops::Deref;

use metering_core::events::{
    EventKinds, NewWebhook, SigningSecret, Webhook, WebhookChange, WebhookId, WebhookSecret, WebhookState,
    WebhookTerms, WebhookUrl,
};
use metering_core::store::WebhookCreated;
use metering_core::{AccountId, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::access::accounts;
use crate::error::{Result, corrupt_column, store_error};
use crate::events::line::{self, Line};
use crate::journal::Snapshot;
use crate::rows::{all, first, parse, timestamp};

/// The columns that [`webhook`] reads from [`TABLES`].
pub(crate) const COLUMNS: &str = "w.public_id, b.org_id, w.url, w.kinds, w.state, w.secret, w.old_secret, \
     w.old_secret_until, w.created_at";

pub(crate) const TABLES: &str = "webhook w LEFT JOIN account b ON b.id = w.account";

const OF_OWNER: &str = "coalesce(w.account, 0) = ?1 ORDER BY w.id";

/// The row number of the operator's own webhooks, as the index `webhook_owner` has it.
pub(super) const OPERATOR: i64 = 0;

/// The row number of the operator's own webhook.
const OPERATORS_ROW: i64 = 0;

fn select(condition: &str) -> String {
    format!("SELECT w.id, {COLUMNS} FROM {TABLES} WHERE {condition}")
}

/// The webhooks of an account in the order of creation; with `None`, the operator's own.
pub(crate) fn list(connection: &Connection, account: Option<&AccountId>) -> Result<Vec<Webhook>> {
    let Some(owner) = owner(connection, account)? else { return Ok(Vec::new()) };
    let mut statement = connection.prepare_cached(&select(OF_OWNER)).map_err(store_error)?;
    all(&mut statement, [owner], |row| webhook(row, 1))
}

/// The row number of an account, or that of the operator. `None` if there is no such account.
pub(super) fn owner(connection: &Connection, account: Option<&AccountId>) -> Result<Option<i64>> {
    let Some(account) = account else { return Ok(Some(OPERATOR)) };
    let sql = "SELECT id FROM account WHERE org_id = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    first(&mut statement, [account.as_str()], |row| Ok(Ok(row.get(0)?)))
}

/// The webhook with this id, if it is the account's, or with `None` the operator's own; and its row number.
pub(super) fn by_id(
    connection: &Connection,
    account: Option<&AccountId>,
    id: &WebhookId,
) -> Result<Option<(i64, Webhook)>> {
    let mut statement = connection.prepare_cached(&select("w.public_id = ?1")).map_err(store_error)?;
    let found = first(&mut statement, [id.as_bytes()], |row| {
        let number: i64 = row.get(0)?;
        Ok(webhook(row, 1)?.map(|webhook| (number, webhook)))
    })?;
    Ok(found.filter(|(_, webhook)| webhook.account.as_ref() == account))
}

/// Creates a webhook of an account.
pub(crate) fn create(snapshot: &Snapshot<'_>, new: NewWebhook) -> Result<WebhookCreated> {
    let found = accounts::by_id(snapshot, &new.account)?;
    let Some((row, _)) = found.filter(|(_, account)| account.revoked_at.is_none()) else {
        return Ok(WebhookCreated::NoSuchAccount);
    };
    let sql = "SELECT count(*) FROM webhook WHERE coalesce(account, 0) = ?1";
    let own: u32 = snapshot.query_row(sql, [row], |row| row.get(0)).map_err(store_error)?;
    if own >= new.max_webhooks {
        return Ok(WebhookCreated::TooMany);
    }
    let webhook = new.into_webhook();
    insert(snapshot, Some(row), &webhook)?;
    Ok(WebhookCreated::Webhook(webhook))
}

fn insert(connection: &Connection, account: Option<i64>, webhook: &Webhook) -> Result<()> {
    let sql = "INSERT INTO webhook (public_id, account, url, kinds, state, secret, old_secret, old_secret_until, \
                 created_at, id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let (current, old, old_until) = secret_columns(webhook);
    let values = params![
        webhook.id.as_bytes(),
        account,
        webhook.terms.url.as_str(),
        webhook.terms.kinds.to_string(),
        webhook.state.as_str(),
        current.as_ref().map(|text| text.as_str()),
        old.as_ref().map(|text| text.as_str()),
        old_until,
        webhook.created_at.unix_millis(),
        // SQLite chooses the number of a customer's webhook.
        account.is_none().then_some(OPERATORS_ROW),
    ];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map(drop).map_err(store_error)
}

/// Changes a webhook of an account.
pub(crate) fn change(
    connection: &Connection,
    account: &AccountId,
    id: &WebhookId,
    change: WebhookChange,
    now: Timestamp,
) -> Result<Option<Webhook>> {
    let Some((row, before)) = by_id(connection, Some(account), id)? else { return Ok(None) };
    let webhook = before.clone().after(change, now);
    update(connection, row, &webhook)?;
    let line = Line { webhook: row, account: owner(connection, Some(account))? };
    if webhook.state == WebhookState::Active {
        line.promote(connection)?;
    } else {
        line.demote(connection)?;
    }
    if webhook.may_be_repaired(&before) {
        line.hasten(connection, now)?;
    }
    Ok(Some(webhook))
}

fn update(connection: &Connection, row: i64, webhook: &Webhook) -> Result<()> {
    let sql = "UPDATE webhook SET url = ?2, kinds = ?3, state = ?4, secret = ?5, old_secret = ?6, \
                 old_secret_until = ?7 WHERE id = ?1";
    let (current, old, old_until) = secret_columns(webhook);
    let values = params![
        row,
        webhook.terms.url.as_str(),
        webhook.terms.kinds.to_string(),
        webhook.state.as_str(),
        current.as_ref().map(|text| text.as_str()),
        old.as_ref().map(|text| text.as_str()),
        old_until,
    ];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map(drop).map_err(store_error)
}

/// Sets the operator's own webhook.
pub(crate) fn set_operators(connection: &Connection, terms: WebhookTerms, now: Timestamp) -> Result<()> {
    let id = WebhookId::OPERATOR;
    match by_id(connection, None, &id)? {
        Some((row, webhook)) => {
            // It may have been switched off to be deleted.
            let was_active = webhook.state == WebhookState::Active;
            update(connection, row, &Webhook { terms, state: WebhookState::Active, ..webhook })?;
            if was_active { Ok(()) } else { line::promote_operators(connection) }
        }
        None => {
            let (state, secrets) = (WebhookState::Active, Vec::new());
            insert(connection, None, &Webhook { id, account: None, terms, state, secrets, created_at: now })
        }
    }
}

/// Switches a webhook off, so that it can be deleted. Its row number, if there is such a webhook.
pub(crate) fn switch_off(connection: &Connection, account: Option<&AccountId>, id: &WebhookId) -> Result<Option<i64>> {
    let Some((row, webhook)) = by_id(connection, account, id)? else { return Ok(None) };
    update(connection, row, &Webhook { state: WebhookState::Disabled, ..webhook })?;
    if account.is_some() {
        Line { webhook: row, account: owner(connection, account)? }.demote(connection)?;
    }
    Ok(Some(row))
}

/// Deletes at most `limit` deliveries of a webhook that is switched off. If none is left, deletes the webhook, and
/// returns `true`.
pub(crate) fn delete_slice(connection: &Connection, row: i64, limit: usize) -> Result<bool> {
    // Neither is deleted if it was switched on meanwhile.
    let sql = format!(
        "DELETE FROM delivery WHERE id IN (SELECT id FROM delivery WHERE webhook = ?1 LIMIT {limit}) \
         AND EXISTS (SELECT 1 FROM webhook WHERE id = ?1 AND state = 'disabled')"
    );
    if connection.execute(&sql, [row]).map_err(store_error)? == limit {
        return Ok(false);
    }
    let sql = "DELETE FROM webhook WHERE id = ?1 AND state = 'disabled'";
    connection.execute(sql, [row]).map(|_| true).map_err(store_error)
}

/// Marks the webhook of a line as gone; the operator's own one stays as it is.
pub(super) fn mark_gone(connection: &Connection, line: Line) -> Result<()> {
    if line.webhook == OPERATORS_ROW {
        return Ok(());
    }
    let values = params![line.webhook, WebhookState::Gone.as_str()];
    let sql = "UPDATE webhook SET state = ?2 WHERE id = ?1";
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map_err(store_error)?;
    line.demote(connection)
}

/// Whether the operator's own webhook is there, and is not being removed.
pub(super) fn is_operators_active(connection: &Connection) -> Result<bool> {
    let sql = "SELECT 1 FROM webhook WHERE id = ?1 AND state = 'active'";
    connection.prepare_cached(sql).and_then(|mut s| s.exists([OPERATORS_ROW])).map_err(store_error)
}

/// The columns of a webhook's secrets: the current one, the one that it replaced, and until when that one is used.
fn secret_columns(
    webhook: &Webhook,
) -> (Option<impl Deref<Target = String>>, Option<impl Deref<Target = String>>, Option<i64>) {
    let [current, old] = [0, 1].map(|place| webhook.secrets.get(place));
    let old_until = old.and_then(|old| old.expires_at).map(Timestamp::unix_millis);
    (current.map(|current| current.secret.expose()), old.map(|old| old.secret.expose()), old_until)
}

/// The secrets of a webhook, newest first.
fn secrets(current: Option<&str>, old: Option<&str>, old_until: Option<i64>) -> Result<Vec<SigningSecret>> {
    let old_until = old_until.map(Timestamp::from_unix_millis);
    let columns = [("webhook.secret", current, None), ("webhook.old_secret", old, old_until)];
    let stored = columns.into_iter().filter_map(|(column, text, until)| Some((column, text?, until)));
    let read = |(column, text, expires_at): (&str, &str, _)| match WebhookSecret::parse(text) {
        Ok(secret) => Ok(SigningSecret { secret, expires_at }),
        Err(error) => Err(corrupt_column(column, error)),
    };
    stored.map(read).collect()
}

/// Reads a webhook from [`COLUMNS`], which start at `first`.
pub(crate) fn webhook(row: &Row<'_>, first: usize) -> rusqlite::Result<Result<Webhook>> {
    let text = |index: usize| row.get::<_, String>(first + index);
    let (id, org_id): (Vec<u8>, Option<String>) = (row.get(first)?, row.get(first + 1)?);
    let (url, kinds, state) = (text(2)?, text(3)?, text(4)?);
    let (current, old): (Option<String>, Option<String>) = (row.get(first + 5)?, row.get(first + 6)?);
    let old_until = row.get(first + 7)?;
    let created_at = timestamp(row, first + 8)?;
    let read = || {
        // An operator may have allowed the URL of an account, so it is checked only before it is sent to.
        let url = WebhookUrl::parse_trusted(&url).map_err(|error| corrupt_column("webhook.url", error))?;
        let unknown = || corrupt_column("webhook.state", format_args!("{state:?} is no state of a webhook"));
        Ok(Webhook {
            id: public_id(&id)?,
            account: org_id.as_deref().map(parse).transpose()?,
            terms: WebhookTerms { url, kinds: read_kinds(&kinds)? },
            state: WebhookState::from_name(&state).ok_or_else(unknown)?,
            secrets: secrets(current.as_deref(), old.as_deref(), old_until)?,
            created_at,
        })
    };
    Ok(read())
}

/// The kinds of events that a webhook receives.
fn read_kinds(names: &str) -> Result<EventKinds> {
    names.parse().map_err(|error| corrupt_column("webhook.kinds", error))
}

pub(crate) fn public_id(bytes: &[u8]) -> Result<WebhookId> {
    let id = bytes.try_into().map(WebhookId::from_bytes);
    id.map_err(|_| corrupt_column("webhook.public_id", format_args!("{} bytes are no id", bytes.len())))
}

/// The queries whose plans are tested, with a step of each plan.
#[cfg(test)]
pub(super) fn queries() -> [(String, &'static str); 2] {
    [
        (select(OF_OWNER), "SEARCH w USING INDEX webhook_owner (<expr>=?)"),
        (select("w.public_id = ?1"), "SEARCH w USING INDEX sqlite_autoindex_webhook_1 (public_id=?)"),
    ]
}
