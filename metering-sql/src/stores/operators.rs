//! The storage traits for what operators do: operators and the audit log, price versions, and recurring credits.

/// Implements [`OperatorStore`](metering_core::store::OperatorStore).
#[macro_export]
macro_rules! operator_store {
    ($store:ty) => {
        $crate::scripted! {
            use metering_core::{
                Account, AccountId, Timestamp,
                access::{Key, KeyId},
                chains::TxHash,
                events::Delivery,
                money::LedgerEntry,
                operators::*,
                payments::{ConsecutiveNumber, PaymentRecord, ReceiptNumber},
                store::{Cursor, OperatorStore, Page},
                usage::DayRange,
            };
            impl OperatorStore for $store {
                async fn forget_older(
                    &self,
                    kept: &Retention,
                    now: Timestamp,
                    after: Option<&Cursor>,
                ) -> Result<(u64, Option<Cursor>)> {
                    $crate::retention::forget(self, kept, now, after).await
                }
            }
            write create_operator(new: NewOperator) -> Option<Operator> = operators::create;
            read operator_by_token(token: &OperatorTokenHash) -> Option<Operator> = operators::by_token;
            read operators() -> Vec<Operator> = operators::list;
            write revoke_operator(name: &OperatorName, now: Timestamp) -> Option<Operator> = operators::revoke;
            write rotate_operator_token(name: &OperatorName, token: &OperatorTokenHash)
                -> Option<Operator> = operators::rotate_token;
            write log_action(entry: NewAuditEntry, outcome: AuditOutcome) -> AuditId = audit::log;
            snapshot erasure(id: &AccountId, with_receipts: bool) -> Option<Erasure> = erasure::count;
            write erase_account(id: &AccountId, with_receipts: bool, now: Timestamp)
                -> Option<Erasure> = erasure::erase;
            read audit_log(query: &AuditQuery, limit: u32) -> Vec<AuditEntry> = audit::list;
            snapshot operations_report(days: DayRange) -> OperationsReport = reports::of_operations;
            snapshot newest_accounts(filter: &AccountFilter, after: ?Cursor, limit: u32)
                -> Page<Account> = newest::accounts;
            read newest_payments(filter: &PaymentFilter, after: ?Cursor, limit: u32)
                -> Page<PaymentRecord> = newest::payments;
            read newest_entries(id: &AccountId, written: Period, after: ?Cursor, limit: u32)
                -> Page<LedgerEntry> = newest::entries;
            read key_of_any_account(id: &KeyId) -> Option<Key> = search::key;
            read payments_by_hash(hash: &TxHash) -> Vec<PaymentRecord> = search::payments_by_hash;
            read payments_by_receipt(number: &ReceiptNumber) -> Vec<PaymentRecord> = search::payments_by_receipt;
            read payment_by_number(number: &ConsecutiveNumber) -> Option<PaymentRecord> = search::payment_by_number;
            snapshot accounts_running_out(days: DayRange, limit: u32) -> Vec<AccountRunway> = runways::shortest;
            read payments_of_revoked(limit: u32) -> Vec<PaymentRecord> = newest::payments_of_revoked;
            read failing_deliveries(after: ?Cursor, limit: u32) -> Page<Delivery> = search::failing_deliveries;
        }
    };
}

/// Implements [`PriceStore`](metering_core::store::PriceStore).
#[macro_export]
macro_rules! price_store {
    ($store:ty) => {
        $crate::scripted! {
            use metering_core::{
                Timestamp,
                prices::*,
                store::PriceStore,
            };
            impl PriceStore for $store {}
            write record_prices(new: NewPriceVersion) -> PriceRecorded = prices::record;
            read price_versions(from: Timestamp) -> PriceHistory = prices::history;
            read price_catalogue(number: PriceNumber) -> Option<::std::sync::Arc<str>> = prices::catalogue;
            write cancel_prices(number: PriceNumber, now: Timestamp) -> Option<PriceVersion> = prices::cancel;
        }
    };
}

/// Implements [`RefillStore`](metering_core::store::RefillStore).
#[macro_export]
macro_rules! refill_store {
    ($store:ty) => {
        $crate::scripted! {
            use metering_core::{
                Timestamp,
                money::Refill,
                store::{RefillStore, Refilled},
            };
            impl RefillStore for $store {
                async fn refill_accounts(&self, now: Timestamp, limit: u32) -> Result<Refilled> {
                    if !$crate::read(self, now, |db, now| $crate::shared($crate::refills::is_open(db, *now))).await? {
                        return Ok(Refilled::NOTHING);
                    }
                    $crate::write(self, (now, limit), |db, (now, limit)| {
                        $crate::shared($crate::refills::refill_accounts(db, *now, *limit))
                    })
                    .await
                }
            }
            read refill() -> Option<Refill> = refills::rule;
            write set_refill(refill: Option<Refill>) -> () = refills::set;
        }
    };
}
