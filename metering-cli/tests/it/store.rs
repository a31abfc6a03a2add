//! Stores, as this process opens them.

use metering_sql::transfer::{Export, Section};

/// Runs `future` on the runtime that a store needs.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
}

/// The records of a section in pages of this size, as text.
pub(crate) async fn pages(store: &dyn Export, section: Section, limit: u32) -> Vec<String> {
    let (mut records, mut after) = (Vec::new(), None);
    loop {
        let page = store.export(section, after.as_ref(), limit).await.unwrap();
        assert!(page.items.len() <= limit as usize);
        records.extend(page.items.iter().map(|record| format!("{record:?}")));
        after = page.next;
        if after.is_none() {
            return records;
        }
    }
}

/// All records of a store. In small pages, because records get lost at page borders.
pub(crate) async fn records(store: &dyn Export) -> Vec<String> {
    let mut records = Vec::new();
    for section in Section::ALL {
        records.extend(pages(store, section, 7).await);
    }
    records
}
