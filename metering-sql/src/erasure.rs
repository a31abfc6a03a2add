//! Erases the personal data of the owner of an account.
//!
//! Payments keep the wallet that paid: its transaction is on a public chain, and counts once only if it stays known.

use metering_core::access::{Account, AgentName};
use metering_core::money::LedgerKind;
use metering_core::operators::{ErasedPart, Erasure};
use metering_core::{AccountId, Timestamp};

use crate::executor::{Executor, WriteMode};
use crate::fault::{Result, corrupt};
use crate::row::only;
use crate::value::Value;
use crate::{accounts, audit, values};

/// The action whose entries stay in the audit log unchanged.
const ERASE: &str = "account.erase";
/// No path is newer.
const ALWAYS: Timestamp = Timestamp::from_unix_millis(i64::MAX);

/// Rows with data of the owner.
struct Part {
    kind: &'static str,
    table: &'static str,
    condition: String,
    values: Vec<Value>,
    /// What is set in them; `None` if they are deleted.
    set: Option<String>,
}

impl Part {
    fn deleted(kind: &'static str, table: &'static str, condition: &str, values: Vec<Value>) -> Self {
        Self { kind, table, condition: condition.to_owned(), values, set: None }
    }

    fn set(self, set: &str) -> Self {
        Self { set: Some(set.to_owned()), ..self }
    }

    /// How many rows it has, or had.
    async fn apply(&self, db: &mut dyn Executor, mode: WriteMode) -> Result<u64> {
        let Self { table, condition, values, set, .. } = self;
        let sql = match (mode, set) {
            (WriteMode::DryRun, _) => {
                let rows = db.query(&format!("SELECT count(*) FROM {table} WHERE {condition}"), values).await?;
                return only(&rows)?.get(0);
            }
            (WriteMode::Write, Some(set)) => format!("UPDATE {table} SET {set} WHERE {condition}"),
            (WriteMode::Write, None) => format!("DELETE FROM {table} WHERE {condition}"),
        };
        db.execute(&sql, std::slice::from_ref(values)).await
    }
}

/// The rows of an account's owner. Rows that refer to other rows come first.
fn parts(row: i64, account: &Account, with_receipts: bool) -> Vec<Part> {
    let name = AgentName::ERASED;
    let of_account = |kind, table| Part::deleted(kind, table, "account = ?1", values![row]);
    let events = "event IN (SELECT e.number FROM event e WHERE e.account = ?1)";
    let named = format!("(agent_name <> '{name}' OR email IS NOT NULL)");
    let pseudonym = format!("agent_name = '{name}', email = NULL");
    let path = "(SELECT l.route_template FROM usage_line l WHERE l.id = hold.line)";
    let mut parts = vec![
        Part::deleted("deliveries", "delivery", events, values![row]),
        of_account("events", "event"),
        of_account("webhooks", "webhook"),
        of_account("browser_sessions", "browser_session"),
        of_account("oauth_grants", "oauth_grant"),
        of_account("saved_cards", "auto_top_up"),
        // An open charge keeps its card until it ends, because requests to the processor for the charge need the card.
        Part::deleted(
            "card_charges",
            "top_up_charge",
            "account = ?1 AND state <> 'open' AND customer <> ''",
            values![row],
        )
        .set("customer = '', method = '', brand = '', last4 = ''"),
        of_account("email_links", "email_link"),
        of_account("wallets", "wallet_link"),
        Part::deleted("challenges", "challenge", "org_id = ?1", values![account.id]),
        buyers(row, with_receipts),
        Part::deleted("quotes", "quote", &format!("(account = ?1 OR top_up = ?1) AND {named}"), values![row])
            .set(&pseudonym),
        Part::deleted("requests", "hold", &format!("account = ?1 AND request_path <> {path}"), values![row])
            .set(&format!("request_path = {path}")),
        Part::deleted(
            "keys",
            "api_key",
            &format!("account = ?1 AND (name <> '{name}' OR networks <> '' OR hint IS NOT NULL)"),
            values![row],
        )
        .set(&format!("name = '{name}', networks = '', hint = NULL")),
    ];
    // Those of members expire within minutes.
    let sign_ins = |condition: &str, values| Part::deleted("sign_ins", "sign_in_proof", condition, values);
    if let Some(payer) = account.payer {
        parts.push(sign_ins("identity = ?1", values![payer.address.to_string()]));
    }
    if let Some(email) = &account.email {
        // SQLite folds only ASCII.
        let (condition, spellings) =
            ("lower(email) IN (?1, ?2)", [email.folded(), email.as_str().to_ascii_lowercase()]);
        let values = values![spellings[0], spellings[1]];
        parts.push(Part::deleted("signups", "signup", condition, values.clone()));
        parts.push(sign_ins("lower(identity) IN (?1, ?2)", values.clone()));
        parts.push(Part::deleted("quotes", "quote", condition, values).set(&pseudonym));
    }
    parts.extend([
        of_account("members", "account_member"),
        of_account("invitations", "invitation"),
        of_account("account_log", "account_log"),
    ]);
    let profile = "id = ?1 AND (agent_name <> ?2 OR email IS NOT NULL OR payer_address IS NOT NULL)";
    parts.push(Part::deleted("profile", "account", profile, values![row, name]).set(
        "agent_name = ?2, email = NULL, email_folded = NULL, email_credits = NULL, email_verified_at = NULL, \
         payer_address = NULL, payer_chain_id = NULL",
    ));
    parts
}

/// Who bought. Receipts name who bought when the purchase was credited.
fn buyers(row: i64, with_receipts: bool) -> Part {
    if with_receipts {
        return Part::deleted("buyers", "buyer", "account = ?1", values![row]);
    }
    let [signup, topup] = LedgerKind::PURCHASES;
    let condition = "account = ?1 AND NOT EXISTS (SELECT 1 FROM ledger l WHERE l.account = ?1 AND l.kind IN (?2, ?3) \
                     AND l.created_at >= buyer.since AND (buyer.until IS NULL OR l.created_at < buyer.until))";
    Part::deleted("buyers", "buyer", condition, values![row, signup, topup])
}

/// The fields that name the owner in the audit log.
async fn names(db: &mut dyn Executor, row: i64, account: &Account) -> Result<Vec<String>> {
    let mut names = vec![account.id.to_string()];
    names.extend(account.email.as_ref().map(ToString::to_string));
    names.extend(account.payer.map(|payer| payer.address.to_string()));
    for key in db.query("SELECT {key_id} FROM api_key WHERE account = ?1", &values![row]).await? {
        names.push(key.get(0)?);
    }
    Ok(names)
}

/// The changes that an erasure would make.
pub async fn count(db: &mut dyn Executor, id: &AccountId, with_receipts: bool) -> Result<Option<Erasure>> {
    let Some((row, account)) = accounts::by_id(db, id).await? else { return Ok(None) };
    let parts = apply(db, row, &account, with_receipts, WriteMode::DryRun).await?;
    Ok(Some(Erasure { account, parts }))
}

/// Erases the personal data of the owner of an account, and revokes the account.
pub async fn erase(
    db: &mut dyn Executor,
    id: &AccountId,
    with_receipts: bool,
    now: Timestamp,
) -> Result<Option<Erasure>> {
    // Charges wait, so no event is written during the erasure.
    let Some((row, account)) = accounts::locked(db, id).await? else { return Ok(None) };
    db.overwrite_deleted()?;
    let parts = apply(db, row, &account, with_receipts, WriteMode::Write).await?;
    accounts::revoke(db, id, now).await?;
    if account.erased_at.is_none() {
        db.execute(&accounts::TABLE.update(&["erased_at"]), &[values![row, now]]).await?;
    }
    db.settings_changed(row).await?;
    let found = accounts::by_id(db, id).await?;
    let (_, account) = found.ok_or_else(|| corrupt(format_args!("account {row} is missing")))?;
    Ok(Some(Erasure { account, parts }))
}

async fn apply(
    db: &mut dyn Executor,
    row: i64,
    account: &Account,
    with_receipts: bool,
    mode: WriteMode,
) -> Result<Vec<ErasedPart>> {
    let names = names(db, row, account).await?;
    let mut found: Vec<ErasedPart> = Vec::new();
    let mut add = |kind: &'static str, records: u64| match found.iter_mut().find(|part| part.kind == kind) {
        Some(part) => part.records += records,
        None if records > 0 => found.push(ErasedPart { kind, records }),
        None => {}
    };
    for part in parts(row, account, with_receipts) {
        add(part.kind, part.apply(db, mode).await?);
    }
    add("activity", db.erase_paths(row, ALWAYS, mode).await?);
    add("audit_entries", audit::redact(db, &names, ERASE, mode).await?);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pseudonym_is_an_agent_name() {
        assert!(AgentName::ERASED.parse::<AgentName>().is_ok());
    }
}
