use metering_core::transfer::{SourceId, TargetState};

use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::{bytes, exists, first};

/// All tables with a store's data, except usage lines: unused ones are harmless.
pub(super) const TABLES: [&str; 33] = [
    "account",
    "meter",
    "api_key",
    "key_secret",
    "key_meter",
    "ledger",
    "usage_daily",
    "activity",
    "request_id",
    "hold",
    "route_volume",
    "refill",
    "plan",
    "payment",
    "payment_authorization",
    "authorization_submission",
    "gas_place",
    "free_gas_place",
    "quote",
    "wallet_link",
    "challenge",
    "scan_mark",
    "unreadable_arrival",
    "signup",
    "used_solution",
    "email_link",
    "webhook",
    "event",
    "delivery",
    "operator",
    "price_version",
    "audit_entry",
    "audit_outcome",
];

pub(super) async fn of<C: GenericClient>(client: &C, source: SourceId) -> Result<TargetState> {
    if let Some(row) = first(client, "SELECT source, finished_at FROM import WHERE id = 1", &[]).await? {
        if row.try_get::<_, Option<i64>>(1)?.is_none() {
            return Ok(TargetState::Unfinished);
        }
        if SourceId::from_bytes(bytes(&row, 0)?) == source {
            return Ok(TargetState::Finished);
        }
        return Ok(TargetState::Occupied("another store was moved there".to_owned()));
    }
    for table in TABLES {
        // A look at a schema of an earlier version finds no table that came later.
        let is_there = exists(client, "SELECT 1 WHERE to_regclass($1) IS NOT NULL", &[&table]).await?;
        // Any server that starts on the database sets the operator's own webhook, and records its catalogue.
        let of_store = match table {
            "webhook" => "WHERE account IS NOT NULL",
            "price_version" => "WHERE applied_by IS NOT NULL",
            _ => "",
        };
        if is_there && exists(client, &format!("SELECT 1 FROM {table} {of_store} LIMIT 1"), &[]).await? {
            return Ok(TargetState::Occupied(format!("its table {table} has rows")));
        }
    }
    Ok(TargetState::Empty)
}
