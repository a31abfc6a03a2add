//! Imports webhooks, events and deliveries. Events and deliveries keep their numbers.

use metering_core::events::{Event, Webhook};
use metering_core::transfer::{DeliveryRecord, Record};
use metering_core::{AccountId, Timestamp};

use super::books::{column, of_kind};
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::events::heads;
use crate::events::webhooks::{exposed, secret_columns};
use crate::rows::execute;
use crate::transactions::serialized::SerializedWrite;

const WEBHOOKS: &str = "INSERT INTO webhook (id, public_id, account, url, kinds, state, secret, secret_expires_at, \
     old_secret, old_secret_expires_at, created_at) \
     SELECT CASE WHEN new.org_id IS NULL THEN 0 ELSE new.id END, new.public_id, a.id, new.url, new.kinds, new.state, new.secret, new.secret_expires_at, \
     new.old_secret, new.old_secret_expires_at, new.created_at \
     FROM unnest($1::BIGINT[], $2::BYTEA[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::TEXT[], \
     $8::BIGINT[], $9::TEXT[], $10::BIGINT[], $11::BIGINT[]) \
     AS new (id, public_id, org_id, url, kinds, state, secret, secret_expires_at, old_secret, old_secret_expires_at, \
     created_at) \
     LEFT JOIN account a ON a.org_id = new.org_id WHERE new.org_id IS NULL OR a.id IS NOT NULL";

/// 0 stands for no account.
const EVENTS: &str = "INSERT INTO event (number, account, kind, data, created_at) \
     SELECT new.number, coalesce(a.id, 0), new.kind, new.data, new.created_at \
     FROM unnest($1::BIGINT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::BIGINT[]) \
     AS new (number, org_id, kind, data, created_at) \
     LEFT JOIN account a ON a.org_id = new.org_id WHERE new.org_id IS NULL OR a.id IS NOT NULL";

const DELIVERIES: &str = "INSERT INTO delivery (id, webhook, event, account, state, attempts, since, next_at, last_at, \
     last_status, last_error) \
     SELECT new.id, w.id, e.number, e.account, new.state, new.attempts, new.since, new.next_at, new.last_at, \
     new.last_status, new.last_error \
     FROM unnest($1::BIGINT[], $2::BYTEA[], $3::BIGINT[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], \
     $8::BIGINT[], $9::BIGINT[], $10::TEXT[]) \
     AS new (id, webhook, event, state, attempts, since, next_at, last_at, last_status, last_error) \
     JOIN webhook w ON w.public_id = new.webhook JOIN event e ON e.number = new.event";

/// The next numbers are above those of all events and deliveries.
const NUMBERS: &str = "SELECT setval('event_number', coalesce((SELECT max(number) FROM event), 0) + 1, FALSE), \
     setval('delivery_number', coalesce((SELECT max(id) FROM delivery), 0) + 1, FALSE)";

/// Webhooks arrive in the order of creation.
pub(super) async fn webhooks(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&Webhook> = of_kind!(records, Webhook).into_iter().map(|webhook| &**webhook).collect();
    let rows = write.next_ids(records.len()).await?;
    let secrets = records.iter().map(|webhook| exposed(webhook)).collect::<Result<Vec<_>>>()?;
    let secrets = column!(secrets, secrets => secret_columns(secrets));
    execute(
        write.client(),
        WEBHOOKS,
        &[
            &rows,
            &column!(records, webhook => webhook.id.as_bytes().as_slice()),
            &column!(records, webhook => webhook.account.as_ref().map(AccountId::as_str)),
            &column!(records, webhook => webhook.terms.url.as_str()),
            &column!(records, webhook => webhook.terms.kinds.to_string()),
            &column!(records, webhook => webhook.state.as_str()),
            &column!(secrets, [(secret, _), _] => *secret),
            &column!(secrets, [(_, expires_at), _] => *expires_at),
            &column!(secrets, [_, (secret, _)] => *secret),
            &column!(secrets, [_, (_, expires_at)] => *expires_at),
            &column!(records, webhook => webhook.created_at.unix_millis()),
        ],
    )
    .await
}

pub(super) async fn events(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&Event> = of_kind!(records, Event).into_iter().map(|event| &**event).collect();
    execute(
        write.client(),
        EVENTS,
        &[
            &column!(records, event => event.number),
            &column!(records, event => event.account.as_ref().map(AccountId::as_str)),
            &column!(records, event => event.kind.as_str()),
            &column!(records, event => event.data.as_str()),
            &column!(records, event => event.created_at.unix_millis()),
        ],
    )
    .await
}

pub(super) async fn deliveries(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&DeliveryRecord> = of_kind!(records, Delivery);
    let last = column!(records, record => record.progress.last.as_ref());
    execute(
        write.client(),
        DELIVERIES,
        &[
            &column!(records, record => record.id.get()),
            &column!(records, record => record.webhook.as_bytes().as_slice()),
            &column!(records, record => record.event),
            &column!(records, record => record.progress.state.as_str()),
            &column!(records, record => i64::from(record.progress.attempts)),
            &column!(records, record => record.progress.since.unix_millis()),
            &column!(records, record => record.progress.next_at.unix_millis()),
            &column!(last, last => last.map(|last| Timestamp::unix_millis(last.at))),
            &column!(last, last => last.and_then(|last| last.status).map(i64::from)),
            &column!(last, last => last.and_then(|last| last.error.as_deref())),
        ],
    )
    .await
}

/// Numbers the events and deliveries to come above the imported ones, and marks those deliveries that may be sent.
pub(super) async fn finish<C: GenericClient>(client: &C) -> Result<()> {
    heads::mark_all(client).await?;
    execute(client, NUMBERS, &[]).await.map(drop)
}
