/// Implements [`UsageSinkStore`](metering_core::store::UsageSinkStore).
#[macro_export]
macro_rules! usage_sink_store {
    ($store:ty) => {
        $crate::scripted! {
            use metering_core::{
                Day, Timestamp,
                events::{SentUsage, SinkTurn, UsageSink},
                store::{Cursor, StagedPage, UsageSinkStore},
            };
            use core::{time::Duration};
            impl UsageSinkStore for $store {
                async fn claim_usage_sink(
                    &self,
                    sink: &str,
                    now: Timestamp,
                    lease: Duration,
                ) -> Result<Option<UsageSink>> {
                    let known = $crate::read(self, sink.to_owned(), |db, sink| {
                        $crate::shared($crate::usage_sinks::by_name(db, sink))
                    })
                    .await?;
                    if known.is_some_and(|known| known.claimed(now, lease).is_none()) {
                        return Ok(None);
                    }
                    $crate::write(self, (sink.to_owned(), now, lease), |db, (sink, now, lease)| {
                        $crate::shared($crate::usage_sinks::claim(db, sink, *now, *lease))
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
                    let changes = $crate::snapshot(self, args, |db, (sink, from, after, limit, now)| {
                        $crate::shared($crate::usage_sinks::changes(db, sink, *from, after.as_ref(), *limit, *now))
                    })
                    .await?;
                    if changes.is_empty() {
                        return Ok(changes.page());
                    }
                    $crate::write(self, changes, |db, changes| {
                        $crate::shared($crate::usage_sinks::stage(db, changes))
                    })
                    .await
                }
            }
            read usage_sinks() -> Vec<UsageSink> = usage_sinks::all;
            read staged_usage(sink: &str, limit: u32) -> Vec<SentUsage> = usage_sinks::staged;
            write finish_usage(sink: &str, attempt: u32, batch: Vec<SentUsage>, turn: SinkTurn, now: Timestamp)
                -> Option<UsageSink> = usage_sinks::finish;
        }
    };
}
