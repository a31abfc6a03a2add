mod activity;

use async_trait::async_trait;
use metering_core::StoreError;
use metering_core::store::{Cursor, Page};
use metering_sql::daily_totals;
use metering_sql::transfer::{Export, Record, Section, Source, count, page};

use crate::charging::known::SharedKnown;
use crate::statements::Statements;
use crate::store::PostgresStore;

#[async_trait]
impl Export for PostgresStore {
    async fn export(&self, section: Section, after: Option<&Cursor>, limit: u32) -> Result<Page<Record>, StoreError> {
        self.read_at_once(|transaction| {
            let (after, known) = (after.cloned(), SharedKnown::clone(&self.known));
            Box::pin(async move {
                let after = after.as_ref();
                match (section, Source::of(section)) {
                    (Section::Usage, _) => {
                        let Page { items, next } =
                            daily_totals::list(&mut Statements(transaction), after, limit).await?;
                        Ok(Page { items: items.into_iter().map(Record::Usage).collect(), next })
                    }
                    (_, Some(source)) => Ok(page(&mut Statements(transaction), &source, after, limit).await?),
                    (_, None) => activity::records(transaction, &known, after, limit).await,
                }
            })
        })
        .await
    }

    async fn count(&self, section: Section) -> Result<Option<u64>, StoreError> {
        self.read_at_once(|transaction| {
            Box::pin(async move {
                match Source::of(section) {
                    Some(source) => Ok(Some(count(&mut Statements(transaction), &source).await?)),
                    None => Ok(None),
                }
            })
        })
        .await
    }
}
