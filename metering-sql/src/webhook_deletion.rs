//! Deletes a webhook in several short transactions: it may have many deliveries, and other writes wait for each portion.
//!
//! The webhook is switched off first, so that it gets no more deliveries, and a deletion that was cut short can be
//! repeated.

use metering_core::AccountId;
use metering_core::StoreError;
use metering_core::events::{Webhook, WebhookId, WebhookState};

use crate::backend::{Backend, write};
use crate::executor::Executor;
use crate::fault::Result;
use crate::lines::{self, Line, OPERATOR};
use crate::transfer::DeliveryRecord;
use crate::{numbered, record, values};

/// Deliveries that one transaction deletes.
const PORTION: usize = 1_000;

/// How far the deletion of a webhook is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deletion {
    /// It has more deliveries.
    Unfinished,
    /// The webhook is deleted.
    Done,
    /// Another transaction deleted it, or switched it on again.
    Superseded,
}

/// Deletes a webhook of an account, or with `None` of the operator; `false` if there is none.
///
/// # Errors
/// Those of the database.
pub async fn run(db: &dyn Backend, account: Option<AccountId>, id: WebhookId) -> Result<bool, StoreError> {
    loop {
        let begun = write(db, (account.clone(), id), |db, (account, id)| Box::pin(begin(db, account.as_ref(), id)));
        let Some(webhook) = begun.await? else { return Ok(false) };
        let ended = loop {
            match write(db, webhook, |db, webhook| Box::pin(delete_some(db, *webhook))).await? {
                Deletion::Unfinished => {}
                ended => break ended,
            }
        };
        // If another process set the operator's webhook in the meantime, that is the newer setting. A customer's is
        // deleted nevertheless.
        if ended == Deletion::Done || account.is_none() {
            return Ok(true);
        }
    }
}

/// Switches a webhook off, so that it gets no more deliveries, and returns its row number; `None` if there is none.
pub async fn begin(db: &mut dyn Executor, account: Option<&AccountId>, id: &WebhookId) -> Result<Option<i64>> {
    // Without reading all of it: a row that is damaged can be deleted too.
    let sql = "SELECT webhook.id, coalesce(webhook.account, {no_account}) FROM webhook WHERE webhook.public_id = ?1";
    let rows = match account {
        Some(account) => {
            let sql = format!("{sql} AND webhook.account = (SELECT a.id FROM account a WHERE a.org_id = ?2)");
            db.query(&sql, &values![id, account]).await?
        }
        None => db.query(&format!("{sql} AND webhook.account IS NULL"), &values![id]).await?,
    };
    let Some(row) = rows.first() else { return Ok(None) };
    let line = Line::read(row, 0)?;
    if line.webhook != OPERATOR {
        lines::lock(db, &[line]).await?;
        lines::unmark(db, line).await?;
    }
    // Waits for those who insert deliveries to it, and later ones then see its state: while its deliveries are being
    // deleted, no new one is taken for the head of its line, or not, because of one that is about to go.
    db.query("SELECT 1 FROM webhook WHERE id = ?1 {lock webhook}", &values![line.webhook]).await?;
    numbered::set::<Webhook>(db, &["state"], &[values![line.webhook, WebhookState::Disabled]]).await?;
    Ok(Some(line.webhook))
}

/// The query for a portion of the deliveries of a webhook that is switched off. The limit is a literal: with an unknown
/// limit PostgreSQL would plan for a large one. The head of a line, the oldest, comes last: if the webhook is switched on
/// again before, its lines have their heads.
#[must_use]
pub fn portion() -> String {
    format!(
        "SELECT id FROM delivery WHERE webhook = ?1 AND EXISTS (SELECT 1 FROM webhook w WHERE w.id = ?1 \
           AND w.state = 'disabled') ORDER BY {{state,}} id DESC NULLS LAST LIMIT {PORTION}"
    )
}

/// Deletes a portion of the deliveries of a webhook that is switched off, and after the last one the webhook.
async fn delete_some(db: &mut dyn Executor, webhook: i64) -> Result<Deletion> {
    let rows = db.query(&portion(), &values![webhook]).await?;
    let found = rows.iter().map(|row| row.get(0)).collect::<Result<Vec<i64>>>()?;
    if !found.is_empty() {
        record::delete::<DeliveryRecord>(db, "WHERE id {in ?1}", values![found]).await?;
    }
    if found.len() == PORTION {
        return Ok(Deletion::Unfinished);
    }
    let is_deleted = record::delete::<Webhook>(db, "WHERE id = ?1 AND state = 'disabled'", values![webhook]).await? > 0;
    Ok(if is_deleted { Deletion::Done } else { Deletion::Superseded })
}
