//! Verifies that every balance equals the sum of ledger, usage and open holds, that no budget counts less than was
//! used, that every payment counted once, also for its authorization, and that catalogues are those that were recorded.

mod budgets;

use std::collections::HashMap;

use crate::connection::session::GenericClient;
use metering_core::Credits;
use metering_core::access::Totals;
use metering_core::backend::{Books, credits};
use metering_core::money::LedgerKind;
use metering_core::store::Verification;

use crate::charging::tail::Tail;
use crate::error::{Result, corrupt};
use crate::money::sum::{SUM, wide_sum};
use crate::rows::{Values, all, one, parse, tx};
use crate::script::Statements;
use crate::usage::activity::ledger_kind;

/// `LEFT JOIN`, to find accounts without a meter, which have no balance.
const RECORDED: &str = "SELECT a.id, a.org_id, m.balance, m.purchased, m.granted, m.used \
     FROM account a LEFT JOIN meter m ON m.account = a.id ORDER BY a.id";

/// Usage rows that belong to no account: money without an owner. The other tables have foreign keys.
const ORPHANS: &str =
    "SELECT count(*) FROM usage_daily u WHERE NOT EXISTS (SELECT 1 FROM account a WHERE a.id = u.account)";

/// Holds that belong to no key, or have no usage line: nobody could settle them.
const STRAY_HOLDS: &str = "SELECT count(*) FROM hold h \
     WHERE NOT EXISTS (SELECT 1 FROM api_key k WHERE k.account = h.account AND k.number = h.key) \
     OR NOT EXISTS (SELECT 1 FROM usage_line n WHERE n.id = h.line)";

/// Accounts without a first key.
const KEYLESS: &str =
    "SELECT count(*) FROM account a WHERE NOT EXISTS (SELECT 1 FROM api_key k WHERE k.account = a.id AND k.number = 0)";

/// Accounts that hold their email address although it waits for verification, or do not hold it otherwise.
const MISHELD: &str = "SELECT count(*) FROM account \
     WHERE (email IS NOT NULL AND email_credits IS NULL) <> (email_folded IS NOT NULL)";

/// Payments that bought a plan, but have no ledger entry that credits their account.
const NOT_IN_LEDGER: &str = "SELECT chain_id, tx_hash FROM payment p WHERE plan_id IS NOT NULL AND NOT EXISTS ( \
       SELECT 1 FROM ledger l WHERE l.tx_hash = p.tx_hash AND l.tx_chain_id = p.chain_id AND l.account = p.account) \
     ORDER BY id";

/// Purchases in the ledger whose payment has no record. Without the record, the payment could be credited again.
const NOT_RECORDED: &str = "SELECT tx_chain_id, tx_hash FROM ledger l WHERE tx_hash IS NOT NULL AND kind = ANY($1) \
     AND NOT EXISTS (SELECT 1 FROM payment p WHERE p.chain_id = l.tx_chain_id AND p.tx_hash = l.tx_hash) ORDER BY id";

/// Payments that have more than one purchase in the ledger.
const COUNTED_TWICE: &str = "SELECT tx_chain_id, tx_hash FROM ledger WHERE tx_hash IS NOT NULL AND kind = ANY($1) \
     GROUP BY tx_chain_id, tx_hash HAVING count(*) > 1 ORDER BY min(id)";

/// Payments whose record and ledger disagree on whether they are reversed. The reversals and restorations in the ledger
/// must add up to minus the purchase if the payment is reversed, and to zero otherwise.
const SETTLEMENT_MISMATCHES: &str = "SELECT chain_id, tx_hash FROM payment p WHERE ( \
       SELECT coalesce(sum(amount), 0) FROM ledger l WHERE l.tx_hash = p.tx_hash AND l.tx_chain_id = p.chain_id \
       AND l.account = p.account AND kind = ANY($2)) \
     <> CASE settlement WHEN 'reversed' THEN -( \
       SELECT coalesce(sum(amount), 0) FROM ledger l WHERE l.tx_hash = p.tx_hash AND l.tx_chain_id = p.chain_id \
       AND l.account = p.account AND kind = ANY($1)) ELSE 0 END ORDER BY id";

/// Reversals and restorations of payments that have no record.
const REVERSED_UNRECORDED: &str = "SELECT tx_chain_id, tx_hash FROM ledger l WHERE tx_hash IS NOT NULL \
     AND kind = ANY($1) AND NOT EXISTS (SELECT 1 FROM payment p WHERE p.chain_id = l.tx_chain_id \
     AND p.tx_hash = l.tx_hash AND p.account = l.account) ORDER BY id";

/// Payments of authorizations that are credited although the payment is reversed, or the other way around, or whose
/// payment is another account's. The schema ensures that a credited authorization has a payment.
const AUTHORIZATION_MISMATCHES: &str = "SELECT p.chain_id, p.tx_hash FROM payment_authorization x \
     JOIN payment p ON p.chain_id = x.tx_chain_id AND p.tx_hash = x.tx_hash \
     WHERE (x.state = 'credited') <> (p.settlement <> 'reversed') OR p.account <> x.account \
     OR p.used_as <> 'authorization' ORDER BY p.id";

pub(crate) async fn verify<C: GenericClient>(client: &C) -> Result<Verification> {
    let orphans: i64 = one(client, ORPHANS, &[]).await?.try_get(0)?;
    if orphans > 0 {
        return Err(corrupt(format_args!("{orphans} rows of usage belong to no account")));
    }
    let stray: i64 = one(client, STRAY_HOLDS, &[]).await?.try_get(0)?;
    if stray > 0 {
        return Err(corrupt(format_args!("{stray} holds belong to no key, or have no usage line")));
    }
    let keyless: i64 = one(client, KEYLESS, &[]).await?.try_get(0)?;
    if keyless > 0 {
        return Err(corrupt(format_args!("{keyless} accounts do not have a first key")));
    }
    let misheld: i64 = one(client, MISHELD, &[]).await?.try_get(0)?;
    if misheld > 0 {
        return Err(corrupt(format_args!(
            "{misheld} accounts hold an email address that they should not, or lack theirs"
        )));
    }
    payments(client).await?;
    metering_sql::prices::verify(&mut Statements(client)).await?;
    let (books, held) = (books(client).await?, held(client).await?);
    let mut verification = Verification { accounts: 0, discrepancies: Vec::new(), restarted_budgets: Vec::new() };
    for row in all(client, RECORDED, &[]).await? {
        let (id, org_id): (i64, &str) = (row.try_get(0)?, row.try_get(1)?);
        let amount = |index| {
            let atoms: Option<i64> = row.try_get(index)?;
            let atoms = atoms.ok_or_else(|| corrupt(format_args!("account {org_id} has no meter")))?;
            Ok::<_, crate::error::Failure>(Credits::from_atoms(atoms))
        };
        let (purchased, granted, used) = (amount(3)?, amount(4)?, amount(5)?);
        let (mut books, of_holds) = (books.get(&id).copied().unwrap_or_default(), held.get(&id).copied().unwrap_or(0));
        books.add_held(of_holds);
        // What is held is not recorded: if it is wrong, so is the balance.
        let recorded = Totals { balance: amount(2)?, purchased, granted, used, held: credits(of_holds)? };
        verification.accounts += 1;
        verification.discrepancies.extend(books.discrepancies(&parse(org_id)?, recorded)?);
    }
    verification.restarted_budgets.extend(budgets::discrepancies(client).await?);
    Ok(verification)
}

async fn books<C: GenericClient>(client: &C) -> Result<HashMap<i64, Books>> {
    let mut books: HashMap<i64, Books> = HashMap::new();
    let entries = format!("SELECT account, kind, {SUM} FROM ledger GROUP BY account, kind");
    for row in all(client, &entries, &[]).await? {
        let (kind, atoms) = (ledger_kind(row.try_get(1)?)?, wide_sum(&row, 2)?);
        books.entry(row.try_get(0)?).or_default().add_entries(kind, atoms);
    }
    let usage = format!("SELECT account, {SUM} FROM usage_daily GROUP BY account");
    for row in all(client, &usage, &[]).await? {
        books.entry(row.try_get(0)?).or_default().add_usage(wide_sum(&row, 1)?);
    }
    for row in all(client, "SELECT account, tail_day, tail FROM meter WHERE tail <> ''", &[]).await? {
        let used = Tail::of_row(&row, 1)?.totals()?.values().map(|(_, atoms)| atoms).sum();
        books.entry(row.try_get(0)?).or_default().add_usage(used);
    }
    Ok(books)
}

/// What the open holds of each account add up to.
async fn held<C: GenericClient>(client: &C) -> Result<HashMap<i64, i128>> {
    let sql = format!("SELECT account, {SUM} FROM hold WHERE settled_at IS NULL GROUP BY account");
    let rows = all(client, &sql, &[]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, wide_sum(row, 1)?))).collect()
}

/// Returns an error if something is wrong. Unlike a balance that does not add up, such a problem is not a discrepancy
/// between two numbers.
async fn payments<C: GenericClient>(client: &C) -> Result<()> {
    let purchases: Vec<&str> = LedgerKind::PURCHASES.map(LedgerKind::as_str).to_vec();
    let settlements: Vec<&str> = LedgerKind::SETTLEMENTS.map(LedgerKind::as_str).to_vec();
    let checks: [(&str, Values<'_>, &str); 6] = [
        (NOT_IN_LEDGER, &[], "are recorded for a plan, but not in the ledger of their account"),
        (NOT_RECORDED, &[&purchases], "have a purchase in the ledger, but are not recorded"),
        (COUNTED_TWICE, &[&purchases], "have more than one purchase in the ledger"),
        (REVERSED_UNRECORDED, &[&settlements], "are reversed or restored in the ledger, but not recorded"),
        (
            SETTLEMENT_MISMATCHES,
            &[&purchases, &settlements],
            "are reversed in their record or in the ledger, but not in both",
        ),
        (AUTHORIZATION_MISMATCHES, &[], "do not match the state or the account of their authorization"),
    ];
    for (sql, values, problem) in checks {
        let found = all(client, sql, values).await?;
        if let Some(row) = found.first() {
            let (count, first) = (found.len(), tx(row, 0)?);
            return Err(corrupt(format_args!("payments {problem}: {count} in all, first {first}")));
        }
    }
    Ok(())
}
