/// Implements [`LogStore`](metering_core::store::LogStore).
#[macro_export]
macro_rules! log_store {
    ($store:ty) => {
        const _: () = {
            use ::core::ops::Range;
            use ::core::time::Duration;

            use $crate::private::metering_core::store::{
                AccountRow, LogEpoch, LogStep, LoggedAccount, NewEpoch, StoredBundle, Unlogged,
            };
            use $crate::private::metering_core::{StoreError, Timestamp, UsageLine};
            use $crate::{log, read, shared, snapshot, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::store::LogStore for $store {
                async fn begin_log(
                    &self,
                    new: NewEpoch,
                    after: Option<u32>,
                    now: Timestamp,
                ) -> Result<Option<LogEpoch>> {
                    log::begin(self, new, after, now).await
                }

                async fn log_epochs(&self) -> Result<Vec<LogEpoch>> {
                    read(self, (), |db, ()| shared(log::epochs(db))).await
                }

                async fn claim_log(&self, node: &str, lease: Duration, now: Timestamp) -> Result<Option<LogEpoch>> {
                    log::claim(self, node, lease, now).await
                }

                async fn unlogged(&self, epoch: &LogEpoch, limit: u32) -> Result<Unlogged> {
                    snapshot(self, (epoch.clone(), limit), |db, (epoch, limit)| {
                        shared(log::unlogged(db, epoch, *limit))
                    })
                    .await
                }

                async fn logged_accounts(&self, epoch: u32, rows: &[AccountRow]) -> Result<Vec<LoggedAccount>> {
                    read(self, (epoch, rows.to_vec()), |db, (epoch, rows)| shared(log::accounts(db, *epoch, rows)))
                        .await
                }

                async fn logged_lines(&self) -> Result<Vec<(u32, UsageLine)>> {
                    read(self, (), |db, ()| shared(log::lines(db))).await
                }

                async fn numbered_accounts(&self, epoch: u32, numbers: &[u32]) -> Result<Vec<LoggedAccount>> {
                    read(self, (epoch, numbers.to_vec()), |db, (epoch, numbers)| {
                        shared(log::numbered(db, *epoch, numbers))
                    })
                    .await
                }

                async fn append_log(&self, step: LogStep) -> Result<bool> {
                    write(self, step, |db, step| shared(log::append(db, step))).await
                }

                async fn publish_checkpoint(&self, epoch: u32, size: u64, note: String) -> Result<()> {
                    write(self, (epoch, size, note), |db, (epoch, size, note)| {
                        shared(log::publish(db, *epoch, *size, note))
                    })
                    .await
                }

                async fn log_bundles(&self, epoch: u32, first: u64, limit: u32) -> Result<Vec<StoredBundle>> {
                    read(self, (epoch, first, limit), |db, (epoch, first, limit)| {
                        shared(log::bundles(db, *epoch, *first, *limit))
                    })
                    .await
                }

                async fn log_tile(&self, epoch: u32, level: u8, index: u64) -> Result<Option<Vec<u8>>> {
                    read(self, (epoch, level, index), |db, (epoch, level, index)| {
                        shared(log::tile(db, *epoch, *level, *index))
                    })
                    .await
                }

                async fn bundles_of(&self, epoch: u32, from: Timestamp, until: Timestamp) -> Result<Range<u64>> {
                    read(self, (epoch, from, until), |db, (epoch, from, until)| {
                        shared(log::bundles_of(db, *epoch, *from, *until))
                    })
                    .await
                }

                async fn prune_log(&self, epoch: u32, below: u64, limit: u32) -> Result<u64> {
                    write(self, (epoch, below, limit), |db, (epoch, below, limit)| {
                        shared(log::prune(db, *epoch, *below, *limit))
                    })
                    .await
                }
            }
        };
    };
}
