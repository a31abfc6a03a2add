//! Verifies that every payment counted once: it has one record, and one purchase in the ledger. And that authorizations
//! are credited as long as their payments are, and processors' payments are reversed by their reversals alone.

use metering_core::chains::TxRef;
use metering_core::money::LedgerKind;
use metering_core::payments::PaymentUse;

use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::values;

/// Payments that bought a plan, executed an authorization or were taken by a processor, but have no ledger entry that
/// credits their account.
const NOT_IN_LEDGER: &str = "SELECT chain_id, tx_hash FROM payment p \
     WHERE (plan_id IS NOT NULL OR used_as = ?1 OR processor IS NOT NULL) AND NOT EXISTS ( \
       SELECT 1 FROM ledger l WHERE l.tx_hash = p.tx_hash AND l.tx_chain_id = p.chain_id AND l.account = p.account) \
     ORDER BY id";

/// Purchases in the ledger whose payment has no record. Without the record, the payment could be credited again.
const NOT_RECORDED: &str = "SELECT tx_chain_id, tx_hash FROM ledger l \
     WHERE tx_hash IS NOT NULL AND kind IN (?1, ?2) AND NOT EXISTS ( \
       SELECT 1 FROM payment p WHERE p.chain_id = l.tx_chain_id AND p.tx_hash = l.tx_hash) \
     ORDER BY id";

/// Payments that have more than one purchase in the ledger.
const COUNTED_TWICE: &str = "SELECT tx_chain_id, tx_hash FROM ledger WHERE tx_hash IS NOT NULL AND kind IN (?1, ?2) \
     GROUP BY tx_chain_id, tx_hash HAVING count(*) > 1 ORDER BY min(id)";

/// Reversals and restorations of payments that have no record.
const REVERSED_UNRECORDED: &str = "SELECT tx_chain_id, tx_hash FROM ledger l \
     WHERE tx_hash IS NOT NULL AND kind IN (?1, ?2) AND NOT EXISTS ( \
       SELECT 1 FROM payment p WHERE p.chain_id = l.tx_chain_id AND p.tx_hash = l.tx_hash AND p.account = l.account) \
     ORDER BY id";

/// Payments whose record and ledger disagree on whether they are reversed. The reversals and restorations in the ledger
/// must add up to minus the purchase if the payment is reversed, and to zero otherwise.
const SETTLEMENT_MISMATCHES: &str = "SELECT chain_id, tx_hash FROM payment p WHERE processor IS NULL AND ( \
       SELECT coalesce(sum(amount), 0) FROM ledger l WHERE l.tx_hash = p.tx_hash AND l.tx_chain_id = p.chain_id \
       AND l.account = p.account AND kind IN (?3, ?4)) \
     <> CASE settlement WHEN 'reversed' THEN -( \
       SELECT coalesce(sum(amount), 0) FROM ledger l WHERE l.tx_hash = p.tx_hash AND l.tx_chain_id = p.chain_id \
       AND l.account = p.account AND kind IN (?1, ?2)) ELSE 0 END ORDER BY id";

/// Payments of processors whose record and ledger disagree on whether all of their credits were taken back.
const PROCESSOR_MISMATCHES: &str = "SELECT chain_id, tx_hash FROM payment p WHERE processor IS NOT NULL \
     AND (settlement = 'reversed') <> (( \
       SELECT coalesce(sum(amount), 0) FROM ledger l WHERE l.tx_hash = p.tx_hash AND l.tx_chain_id = p.chain_id \
       AND l.account = p.account AND kind IN (?1, ?2, ?3, ?4)) = 0) ORDER BY id";

/// Reversals whose payment has no record.
const REVERSAL_UNRECORDED: &str = "SELECT CAST(0 AS BIGINT), tx_hash FROM payment_reversal r WHERE NOT EXISTS ( \
       SELECT 1 FROM payment p WHERE p.chain_id = 0 AND p.tx_hash = r.tx_hash AND p.processor = r.processor) \
     ORDER BY tx_hash";

/// Transactions of authorizations that are not recorded as theirs, or whose payment is reversed although the
/// authorization is credited, or is not reversed although it is not.
const AUTHORIZATION_MISMATCHES: &str = "SELECT u.tx_chain_id, u.tx_hash FROM payment_authorization u \
     LEFT JOIN payment p ON p.chain_id = u.tx_chain_id AND p.tx_hash = u.tx_hash \
       AND p.account = u.account AND p.used_as = ?1 \
     WHERE u.tx_hash IS NOT NULL AND (p.id IS NULL OR (u.state = 'credited') = (p.settlement = 'reversed')) \
     ORDER BY u.id";

/// Returns an error if something is wrong. Unlike a balance that does not add up, such a problem is not a discrepancy
/// between two numbers.
pub(super) async fn verify(db: &mut dyn Executor) -> Result<()> {
    let ([purchase, top_up], [reversal, restoration]) = (LedgerKind::PURCHASES, LedgerKind::SETTLEMENTS);
    let (executed, purchases) = (values![PaymentUse::Authorization], values![purchase, top_up]);
    let settlements = values![reversal, restoration];
    let none = Vec::new();
    let both = [purchases.clone(), settlements.clone()].concat();
    let checks = [
        (
            NOT_IN_LEDGER,
            &executed,
            "are recorded for a plan or an authorization, but not in the ledger of their account",
        ),
        (
            AUTHORIZATION_MISMATCHES,
            &executed,
            "are those of authorizations that are in another state, or are not recorded as theirs",
        ),
        (NOT_RECORDED, &purchases, "have a purchase in the ledger, but are not recorded"),
        (COUNTED_TWICE, &purchases, "have more than one purchase in the ledger"),
        (REVERSED_UNRECORDED, &settlements, "are reversed or restored in the ledger, but not recorded"),
        (SETTLEMENT_MISMATCHES, &both, "are reversed in their record or in the ledger, but not in both"),
        (PROCESSOR_MISMATCHES, &both, "of processors are reversed in their record or in the ledger, but not in both"),
        (REVERSAL_UNRECORDED, &none, "of processors have a reversal, but are not recorded"),
    ];
    for (sql, values, problem) in checks {
        let found = db.query(sql, values).await?;
        if let Some(row) = found.first() {
            let (count, first) = (found.len(), TxRef { chain_id: row.get(0)?, hash: row.get(1)? });
            return Err(corrupt(format_args!("payments {problem}: {count} in all, first {first}")));
        }
    }
    Ok(())
}
