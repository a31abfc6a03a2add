//! Imports operators, price versions and the audit log.

use metering_core::operators::{AuditEntry, AuditId, AuditOutcome, Operator};
use metering_core::transfer::Record;

use super::books::{column, of_kind};
use crate::error::Result;
use crate::rows::execute;
use crate::transactions::serialized::SerializedWrite;

const OPERATORS: &str = "INSERT INTO operator (name, role, token, created_at, revoked_at) \
     SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::BYTEA[], $4::BIGINT[], $5::BIGINT[])";

const PRICES: &str = "INSERT INTO price_version \
     (number, hash, since, recorded_at, applied_by, cancelled_at, catalogue) \
     SELECT * FROM unnest($1::BIGINT[], $2::BYTEA[], $3::BIGINT[], $4::BIGINT[], $5::TEXT[], $6::BIGINT[], $7::TEXT[])";

const ENTRIES: &str = "INSERT INTO audit_entry (id, at, actor, action, subject, reason, request, before) \
     SELECT * FROM unnest($1::BIGINT[], $2::BIGINT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::TEXT[], \
     $8::TEXT[])";

const OUTCOMES: &str = "INSERT INTO audit_outcome (entry, at, result, detail, after) \
     SELECT * FROM unnest($1::BIGINT[], $2::BIGINT[], $3::TEXT[], $4::TEXT[], $5::TEXT[])";

pub(super) async fn operators(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&Operator> = of_kind!(records, Operator);
    execute(
        write.client(),
        OPERATORS,
        &[
            &column!(records, operator => operator.name.as_str()),
            &column!(records, operator => operator.role.as_str()),
            &column!(records, operator => operator.token.as_bytes().as_slice()),
            &column!(records, operator => operator.created_at.unix_millis()),
            &column!(records, operator => operator.revoked_at.map(|at| at.unix_millis())),
        ],
    )
    .await
}

pub(super) async fn prices(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let prices = records.iter().filter_map(|record| match record {
        Record::Price(version, catalogue) => Some((version, catalogue)),
        _ => None,
    });
    let records: Vec<_> = prices.collect();
    execute(
        write.client(),
        PRICES,
        &[
            &column!(records, (version, _) => i64::from(version.number.0)),
            &column!(records, (version, _) => version.hash.as_bytes().as_slice()),
            &column!(records, (version, _) => version.since.unix_millis()),
            &column!(records, (version, _) => version.recorded_at.unix_millis()),
            &column!(records, (version, _) => version.applied_by.as_ref().map(ToString::to_string)),
            &column!(records, (version, _) => version.cancelled_at.map(|at| at.unix_millis())),
            &column!(records, (_, catalogue) => &***catalogue),
        ],
    )
    .await
}

/// Entries keep their ids.
pub(super) async fn audit_log(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&AuditEntry> = of_kind!(records, AuditEntry).into_iter().map(|entry| &**entry).collect();
    let written = execute(
        write.client(),
        ENTRIES,
        &[
            &column!(records, record => record.id.0),
            &column!(records, record => record.entry.at.unix_millis()),
            &column!(records, record => record.entry.actor.to_string()),
            &column!(records, record => record.entry.action.as_str()),
            &column!(records, record => record.entry.subject.as_str()),
            &column!(records, record => record.entry.reason.as_str()),
            &column!(records, record => record.entry.request.as_str()),
            &column!(records, record => record.entry.before.as_deref()),
        ],
    )
    .await?;
    let ended = records.iter().filter_map(|record| Some((record.id, record.outcome.as_ref()?)));
    let outcomes: Vec<(AuditId, &AuditOutcome)> = ended.collect();
    execute(
        write.client(),
        OUTCOMES,
        &[
            &column!(outcomes, (id, _) => id.0),
            &column!(outcomes, (_, outcome) => outcome.at.unix_millis()),
            &column!(outcomes, (_, outcome) => outcome.result.as_str()),
            &column!(outcomes, (_, outcome) => outcome.detail.as_str()),
            &column!(outcomes, (_, outcome) => outcome.after.as_deref()),
        ],
    )
    .await?;
    Ok(written)
}
