//! Daily totals with the id and name of their key, which the totals themselves do not have.

use std::collections::BTreeMap;

use metering_core::store::Page;
use metering_core::usage::{DailyTotal, KeyLabel, KeyLabels};
use metering_core::{AccountId, FullStore, StoreError};

/// A daily total and its key.
#[derive(Debug)]
pub(crate) struct KeyedTotal {
    pub(crate) total: DailyTotal,
    pub(crate) key: KeyLabel,
}

/// The page with the keys of its totals. Nothing is kept from one page to the next, so that memory use does not grow
/// with the store.
pub(crate) async fn page(store: &dyn FullStore, page: Page<DailyTotal>) -> Result<Page<KeyedTotal>, StoreError> {
    let mut labels: BTreeMap<AccountId, KeyLabels> = BTreeMap::new();
    let mut items = Vec::with_capacity(page.items.len());
    for total in page.items {
        if !labels.contains_key(&total.account) {
            let of_account = store.key_labels(&total.account).await?.into_iter().collect();
            labels.insert(total.account.clone(), of_account);
        }
        let key = labels.get(&total.account).and_then(|keys| keys.get(total.key)).cloned();
        let key = key.ok_or_else(|| StoreError::Corrupt(format!("no key {} of {}", total.key.get(), total.account)))?;
        items.push(KeyedTotal { total, key });
    }
    Ok(Page { items, next: page.next })
}
