//! Moves a store to another database, and reads what stores export.

use metering_core::store::SourceId;
use metering_postgres::PostgresStore;
use metering_sql::transfer::{Export, Import, Record, Section, TargetState, compare, copy};
use metering_tests::postgres::Cluster;

/// Moves everything to a new schema. Fails unless both stores have the same then.
pub(crate) async fn moved(source: &PostgresStore) -> PostgresStore {
    moved_to(&Cluster::shared().fresh_schema(), source).await
}

/// The same, to a given schema that counts as empty.
pub(crate) async fn moved_to(url: &str, source: &PostgresStore) -> PostgresStore {
    let target = PostgresStore::connect_to_import(&url.parse().unwrap()).await.unwrap();
    assert_eq!(target.begin(&SourceId::from_bytes([7; 16])).await.unwrap(), TargetState::Empty);
    copy(source, &target, &mut |_, _| {}).await.unwrap();
    let comparison = compare(source, &target, &mut |_, _| {}).await.unwrap();
    assert!(comparison.is_equal(), "{comparison:?}");
    target.finish().await.unwrap();
    target
}

/// All records of a section, in pages of at most `limit`, so that the cursors are used.
pub(crate) async fn records(store: &PostgresStore, section: Section, limit: u32) -> Vec<Record> {
    let (mut records, mut after) = (Vec::new(), None);
    loop {
        let page = store.export(section, after.as_ref(), limit).await.unwrap();
        records.extend(page.items);
        after = page.next;
        if after.is_none() {
            return records;
        }
    }
}
