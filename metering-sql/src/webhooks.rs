//! Webhooks. Their secrets are stored in plain text, because signing needs it, and appear in no error.

use metering_core::events::{
    NewWebhook, SigningSecret, Webhook, WebhookChange, WebhookId, WebhookState, WebhookTerms, WebhookUrl,
};
use metering_core::store::WebhookCreated;
use metering_core::{AccountId, Timestamp};

use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::lines::{self, Line, OPERATOR};
use crate::record::{self, Record, set};
use crate::row::{Reader, only};
use crate::table::Column::{Account, Own};
use crate::table::Table;
use crate::value::Value;
use crate::{accounts, values};

/// How many secrets a webhook has columns for: the current one, which does not expire, and the one that it replaced.
const MAX_SECRETS: usize = 2;

impl Record for Webhook {
    const TABLE: Table = Table {
        name: "webhook",
        key: &["public_id"],
        columns: &[
            Own("public_id"),
            Account("account"),
            Own("url"),
            Own("kinds"),
            Own("state"),
            Own("secret"),
            Own("old_secret"),
            Own("{old_secret_until}"),
            Own("created_at"),
        ],
    };

    fn values(&self) -> Result<Vec<Value>> {
        let mut values = values![self.id, self.account];
        values.extend(changeable(self)?);
        values.extend(values![self.created_at]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (id, account, url): (_, _, String) = (row.next()?, row.next()?, row.next()?);
        // An operator may have allowed the URL of an account, so it is checked only before it is sent to.
        let url = WebhookUrl::parse_stored(&url).map_err(|error| row.corrupt(error))?;
        let (kinds, state) = (row.next()?, row.next()?);
        let current: Option<_> = row.next()?;
        let mut secrets: Vec<_> =
            current.map(|secret| SigningSecret { secret, expires_at: None }).into_iter().collect();
        let (old, expires_at): (Option<_>, _) = (row.next()?, row.next()?);
        secrets.extend(old.map(|secret| SigningSecret { secret, expires_at }));
        Ok(Self { id, account, terms: WebhookTerms { url, kinds }, state, secrets, created_at: row.next()? })
    }
}

/// The columns from `url` to `old_secret_until`.
fn changeable(webhook: &Webhook) -> Result<Vec<Value>> {
    let Webhook { id, terms, state, secrets, .. } = webhook;
    if secrets.len() > MAX_SECRETS {
        return Err(corrupt(format_args!("webhook {id} has more than {MAX_SECRETS} secrets")));
    }
    let [current, old] = [0, 1].map(|place| secrets.get(place));
    let until = old.and_then(|old| old.expires_at);
    let [current, old] = [current, old].map(|secret| secret.map(|secret| &secret.secret));
    Ok(values![terms.url.as_str(), terms.kinds, state, current, old, until])
}

/// What follows `FROM webhook` in the list of an account's webhooks. The `+` is for SQLite: without it, the comparison
/// would have an affinity that the index does not have.
pub const LISTED: &str =
    "WHERE {webhook_account} = +(SELECT a.id FROM account a WHERE a.org_id = ?1) ORDER BY webhook.id";

/// The webhooks of an account in the order of creation; with `None`, the operator's own.
pub async fn list(db: &mut dyn Executor, account: Option<&AccountId>) -> Result<Vec<Webhook>> {
    match account {
        Some(account) => record::list(db, LISTED, &values![account]).await,
        None => record::list(db, "WHERE webhook.id = ?1", &values![OPERATOR]).await,
    }
}

/// The query for a webhook with its line.
#[must_use]
pub fn by_id() -> String {
    let columns = Webhook::TABLE.column_list();
    format!(
        "SELECT {columns}, webhook.id, coalesce(webhook.account, {{no_account}}) FROM webhook WHERE webhook.public_id = ?1"
    )
}

/// A webhook of an account, or with `None` of the operator; and the line of its owner's events.
pub(crate) async fn find(
    db: &mut dyn Executor,
    account: Option<&AccountId>,
    id: &WebhookId,
) -> Result<Option<(Line, Webhook)>> {
    let rows = db.query(&by_id(), &values![id]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let found = (Line::read(row, Webhook::TABLE.columns.len())?, Webhook::of_row(row)?);
    Ok(Some(found).filter(|(_, webhook)| webhook.account.as_ref() == account))
}

/// Creates a webhook of an account. One of them at most is mail.
pub async fn create(db: &mut dyn Executor, new: &NewWebhook) -> Result<WebhookCreated> {
    let found = accounts::by_id(db, &new.account).await?.filter(|(_, account)| account.revoked_at.is_none());
    let Some((row, _)) = found else { return Ok(WebhookCreated::NoSuchAccount) };
    let sql = "SELECT count(*), count(CASE WHEN url LIKE 'mailto:%' THEN 1 END) FROM webhook \
               WHERE {webhook_account} = ?1";
    let rows = db.query(sql, &values![row]).await?;
    let (own, mail): (u64, u64) = (only(&rows)?.get(0)?, only(&rows)?.get(1)?);
    if own >= new.max_webhooks.into() || (mail > 0 && new.terms.url.email().is_some()) {
        return Ok(WebhookCreated::TooMany);
    }
    let webhook = new.clone().into_webhook();
    insert(db, std::slice::from_ref(&webhook)).await?;
    Ok(WebhookCreated::Webhook(webhook))
}

/// Inserts webhooks in the order of creation, and returns how many.
pub async fn insert(db: &mut dyn Executor, webhooks: &[Webhook]) -> Result<u64> {
    let ids = db.next_ids(webhooks.len()).await?;
    let rows = webhooks.iter().zip(ids).map(|(webhook, id)| {
        let id = if webhook.account.is_none() { Some(OPERATOR) } else { id };
        Ok([webhook.values()?, values![id]].concat())
    });
    insert_rows(db, &rows.collect::<Result<Vec<_>>>()?).await
}

/// Inserts webhooks with their row numbers.
async fn insert_rows(db: &mut dyn Executor, rows: &[Vec<Value>]) -> Result<u64> {
    let id = format!("?{}", Webhook::TABLE.columns.len() + 1);
    db.execute(&Webhook::TABLE.insert_with("id", &id), rows).await
}

/// Sets the operator's own webhook, and switches it on if a deletion of it was begun.
pub async fn set_operators(db: &mut dyn Executor, terms: &WebhookTerms, now: Timestamp) -> Result<()> {
    let sql = "UPDATE webhook SET url = ?1, kinds = ?2, state = 'active' WHERE id = 0";
    let values = [values![terms.url.as_str(), terms.kinds]];
    if db.execute(&format!("{sql} AND state = 'active'"), &values).await? > 0 {
        return Ok(());
    }
    if db.execute(sql, &values).await? > 0 {
        return lines::mark_operators(db).await;
    }
    let (id, terms, state) = (WebhookId::OPERATOR, terms.clone(), WebhookState::Active);
    let webhook = Webhook { id, account: None, terms, state, secrets: Vec::new(), created_at: now };
    insert_rows(db, &[[webhook.values()?, values![OPERATOR]].concat()]).await.map(drop)
}

/// Changes a webhook of an account.
pub async fn change(
    db: &mut dyn Executor,
    account: &AccountId,
    id: &WebhookId,
    change: &WebhookChange,
    now: Timestamp,
) -> Result<Option<Webhook>> {
    let Some((line, before)) = find(db, Some(account), id).await? else { return Ok(None) };
    let webhook = before.clone().after(change.clone(), now);
    let (is_switched, may_be_repaired) = (webhook.state != before.state, webhook.may_be_repaired(&before));
    if is_switched || may_be_repaired {
        lines::lock(db, &[line]).await?;
    }
    if is_switched {
        lines::unmark(db, line).await?;
    }
    let columns = ["url", "kinds", "state", "secret", "old_secret", "{old_secret_until}"];
    set::<Webhook>(db, &columns, &[[values![id], changeable(&webhook)?].concat()]).await?;
    if is_switched {
        lines::mark(db, &[line]).await?;
    }
    if may_be_repaired {
        lines::hasten(db, line, now).await?;
    }
    Ok(Some(webhook))
}
