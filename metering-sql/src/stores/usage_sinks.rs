/// Implements [`UsageSinkStore`](metering_core::store::UsageSinkStore).
#[macro_export]
macro_rules! usage_sink_store {
    ($store:ty) => {
        const _: () = {
            use ::core::time::Duration;

            use $crate::private::metering_core::events::{SentUsage, SinkTurn, UsageSink};
            use $crate::private::metering_core::store::{Cursor, StagedPage};
            use $crate::private::metering_core::{Day, StoreError, Timestamp};
            use $crate::{read, shared, snapshot, usage_sinks, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::store::UsageSinkStore for $store {
                async fn usage_sinks(&self) -> Result<Vec<UsageSink>> {
                    read(self, (), |db, ()| shared(usage_sinks::all(db))).await
                }

                async fn claim_usage_sink(
                    &self,
                    sink: &str,
                    now: Timestamp,
                    lease: Duration,
                ) -> Result<Option<UsageSink>> {
                    let known = read(self, sink.to_owned(), |db, sink| shared(usage_sinks::by_name(db, sink))).await?;
                    if known.is_some_and(|known| known.claimed(now, lease).is_none()) {
                        return Ok(None);
                    }
                    write(self, (sink.to_owned(), now, lease), |db, (sink, now, lease)| {
                        shared(usage_sinks::claim(db, sink, *now, *lease))
                    })
                    .await
                }

                async fn stage_usage(
                    &self,
                    sink: &str,
                    from: Day,
                    after: Option<&Cursor>,
                    limit: u32,
                    now: Timestamp,
                ) -> Result<StagedPage> {
                    let args = (sink.to_owned(), from, after.cloned(), limit, now);
                    // Charges do not wait while it reads.
                    let changes = snapshot(self, args, |db, (sink, from, after, limit, now)| {
                        shared(usage_sinks::changes(db, sink, *from, after.as_ref(), *limit, *now))
                    })
                    .await?;
                    if changes.is_empty() {
                        return Ok(changes.page());
                    }
                    write(self, changes, |db, changes| shared(usage_sinks::stage(db, changes))).await
                }

                async fn staged_usage(&self, sink: &str, limit: u32) -> Result<Vec<SentUsage>> {
                    read(self, (sink.to_owned(), limit), |db, (sink, limit)| {
                        shared(usage_sinks::staged(db, sink, *limit))
                    })
                    .await
                }

                async fn finish_usage(
                    &self,
                    sink: &str,
                    attempt: u32,
                    batch: Vec<SentUsage>,
                    turn: SinkTurn,
                    now: Timestamp,
                ) -> Result<Option<UsageSink>> {
                    let args = (sink.to_owned(), attempt, batch, turn, now);
                    write(self, args, |db, (sink, attempt, batch, turn, now)| {
                        shared(usage_sinks::finish(db, sink, *attempt, batch, turn, *now))
                    })
                    .await
                }
            }
        };
    };
}
