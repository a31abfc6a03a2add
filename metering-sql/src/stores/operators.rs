//! The storage traits for what operators do: operators and the audit log, price versions, and recurring credits.

/// Implements [`OperatorStore`](metering_core::store::OperatorStore).
#[macro_export]
macro_rules! operator_store {
    ($store:ty) => {
        const _: () = {
            use $crate::private::metering_core::access::{Key, KeyId};
            use $crate::private::metering_core::chains::TxHash;
            use $crate::private::metering_core::events::Delivery;
            use $crate::private::metering_core::money::LedgerEntry;
            use $crate::private::metering_core::operators::*;
            use $crate::private::metering_core::payments::{ConsecutiveNumber, PaymentRecord, ReceiptNumber};
            use $crate::private::metering_core::store::{Cursor, Page};
            use $crate::private::metering_core::usage::DayRange;
            use $crate::private::metering_core::{Account, AccountId, StoreError, Timestamp};
            use $crate::{newest, read, runways, search, shared, snapshot, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::store::OperatorStore for $store {
                async fn create_operator(&self, new: NewOperator) -> Result<Option<Operator>> {
                    write(self, new, |db, new| shared($crate::operators::create(db, new))).await
                }

                async fn operator_by_token(&self, token: &OperatorTokenHash) -> Result<Option<Operator>> {
                    read(self, *token, |db, token| shared($crate::operators::by_token(db, token))).await
                }

                async fn operators(&self) -> Result<Vec<Operator>> {
                    read(self, (), |db, ()| shared($crate::operators::list(db))).await
                }

                async fn revoke_operator(&self, name: &OperatorName, now: Timestamp) -> Result<Option<Operator>> {
                    let args = (name.clone(), now);
                    write(self, args, |db, (name, now)| shared($crate::operators::revoke(db, name, *now))).await
                }

                async fn rotate_operator_token(
                    &self,
                    name: &OperatorName,
                    token: &OperatorTokenHash,
                ) -> Result<Option<Operator>> {
                    let args = (name.clone(), *token);
                    write(self, args, |db, (name, token)| shared($crate::operators::rotate_token(db, name, *token)))
                        .await
                }

                async fn log_action(&self, entry: NewAuditEntry, outcome: AuditOutcome) -> Result<AuditId> {
                    let args = (entry, outcome);
                    write(self, args, |db, (entry, outcome)| shared($crate::audit::log(db, entry, outcome))).await
                }

                async fn erasure(&self, id: &AccountId, with_receipts: bool) -> Result<Option<Erasure>> {
                    let args = (id.clone(), with_receipts);
                    snapshot(self, args, |db, (id, with_receipts)| {
                        shared($crate::erasure::count(db, id, *with_receipts))
                    })
                    .await
                }

                async fn erase_account(
                    &self,
                    id: &AccountId,
                    with_receipts: bool,
                    now: Timestamp,
                ) -> Result<Option<Erasure>> {
                    let args = (id.clone(), with_receipts, now);
                    write(self, args, |db, (id, with_receipts, now)| {
                        shared($crate::erasure::erase(db, id, *with_receipts, *now))
                    })
                    .await
                }

                async fn forget_older(
                    &self,
                    kept: &Retention,
                    now: Timestamp,
                    after: Option<&Cursor>,
                ) -> Result<(u64, Option<Cursor>)> {
                    $crate::retention::forget(self, kept, now, after).await
                }

                async fn audit_log(&self, query: &AuditQuery, limit: u32) -> Result<Vec<AuditEntry>> {
                    let args = (query.clone(), limit);
                    read(self, args, |db, (query, limit)| shared($crate::audit::list(db, query, *limit))).await
                }

                async fn operations_report(&self, days: DayRange) -> Result<OperationsReport> {
                    snapshot(self, days, |db, days| shared($crate::reports::of_operations(db, *days))).await
                }

                async fn newest_accounts(
                    &self,
                    filter: &AccountFilter,
                    after: Option<&Cursor>,
                    limit: u32,
                ) -> Result<Page<Account>> {
                    let args = (filter.clone(), after.cloned(), limit);
                    snapshot(self, args, |db, (filter, after, limit)| {
                        shared(newest::accounts(db, filter, after.as_ref(), *limit))
                    })
                    .await
                }

                async fn newest_payments(
                    &self,
                    filter: &PaymentFilter,
                    after: Option<&Cursor>,
                    limit: u32,
                ) -> Result<Page<PaymentRecord>> {
                    let args = (*filter, after.cloned(), limit);
                    read(self, args, |db, (filter, after, limit)| {
                        shared(newest::payments(db, filter, after.as_ref(), *limit))
                    })
                    .await
                }

                async fn newest_entries(
                    &self,
                    id: &AccountId,
                    written: Period,
                    after: Option<&Cursor>,
                    limit: u32,
                ) -> Result<Page<LedgerEntry>> {
                    let args = (id.clone(), written, after.cloned(), limit);
                    read(self, args, |db, (id, written, after, limit)| {
                        shared(newest::entries(db, id, *written, after.as_ref(), *limit))
                    })
                    .await
                }

                async fn key_of_any_account(&self, id: &KeyId) -> Result<Option<Key>> {
                    read(self, id.clone(), |db, id| shared(search::key(db, id))).await
                }

                async fn payments_by_hash(&self, hash: &TxHash) -> Result<Vec<PaymentRecord>> {
                    read(self, *hash, |db, hash| shared(search::payments_by_hash(db, hash))).await
                }

                async fn payments_by_receipt(&self, number: &ReceiptNumber) -> Result<Vec<PaymentRecord>> {
                    read(self, *number, |db, number| shared(search::payments_by_receipt(db, number))).await
                }

                async fn payment_by_number(&self, number: &ConsecutiveNumber) -> Result<Option<PaymentRecord>> {
                    read(self, number.clone(), |db, number| shared(search::payment_by_number(db, number))).await
                }

                async fn accounts_running_out(&self, days: DayRange, limit: u32) -> Result<Vec<AccountRunway>> {
                    snapshot(self, (days, limit), |db, (days, limit)| shared(runways::shortest(db, *days, *limit)))
                        .await
                }

                async fn failing_deliveries(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<Delivery>> {
                    let args = (after.cloned(), limit);
                    read(self, args, |db, (after, limit)| {
                        shared(search::failing_deliveries(db, after.as_ref(), *limit))
                    })
                    .await
                }
            }
        };
    };
}

/// Implements [`PriceStore`](metering_core::store::PriceStore).
#[macro_export]
macro_rules! price_store {
    ($store:ty) => {
        const _: () = {
            use $crate::private::metering_core::prices::*;
            use $crate::private::metering_core::{StoreError, Timestamp};
            use $crate::{read, shared, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::store::PriceStore for $store {
                async fn record_prices(&self, new: NewPriceVersion) -> Result<PriceRecorded> {
                    write(self, new, |db, new| shared($crate::prices::record(db, new))).await
                }

                async fn price_versions(&self, from: Timestamp) -> Result<PriceHistory> {
                    read(self, from, |db, from| shared($crate::prices::history(db, *from))).await
                }

                async fn price_catalogue(&self, number: PriceNumber) -> Result<Option<::std::sync::Arc<str>>> {
                    read(self, number, |db, number| shared($crate::prices::catalogue(db, *number))).await
                }

                async fn cancel_prices(&self, number: PriceNumber, now: Timestamp) -> Result<Option<PriceVersion>> {
                    write(self, (number, now), |db, (number, now)| shared($crate::prices::cancel(db, *number, *now)))
                        .await
                }
            }
        };
    };
}

/// Implements [`RefillStore`](metering_core::store::RefillStore).
#[macro_export]
macro_rules! refill_store {
    ($store:ty) => {
        const _: () = {
            use $crate::private::metering_core::money::Refill;
            use $crate::private::metering_core::store::Refilled;
            use $crate::private::metering_core::{StoreError, Timestamp};
            use $crate::{read, shared, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::store::RefillStore for $store {
                async fn refill(&self) -> Result<Option<Refill>> {
                    read(self, (), |db, ()| shared($crate::refills::rule(db))).await
                }

                async fn set_refill(&self, refill: Option<Refill>) -> Result<()> {
                    write(self, refill, |db, refill| shared($crate::refills::set(db, refill.as_ref()))).await
                }

                async fn refill_accounts(&self, now: Timestamp, limit: u32) -> Result<Refilled> {
                    if !read(self, now, |db, now| shared($crate::refills::is_open(db, *now))).await? {
                        return Ok(Refilled::NOTHING);
                    }
                    write(self, (now, limit), |db, (now, limit)| {
                        shared($crate::refills::refill_accounts(db, *now, *limit))
                    })
                    .await
                }
            }
        };
    };
}
