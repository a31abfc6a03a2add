//! Which entries of recent activity a list shows.
//!
//! Stores keep a bounded list for each account, so it is read whole and filtered here, the same for every store.

use crate::access::key_id::{KeyId, KeyNumber};
use crate::access::route_pattern::RoutePatterns;
use crate::clock::Day;
use crate::error::Error;
use crate::usage::{ACTIVITY_KEPT, Activity, UsageLine};

/// How many of an account's newest entries are searched: the usage entries that a store keeps, and the same number of
/// others.
const SEARCHED: u32 = 2 * ACTIVITY_KEPT;

/// Which entries of recent activity to list, and how many.
///
/// ```
/// use metering_core::service::ActivityQuery;
/// use metering_core::{Charge, MemoryStore, Service};
/// # use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
/// # let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
/// for route in ["/price", "/search", "/price"] {
///     service.charge(Charge::new(&key, "0.25".parse()?, "GET", route)).await?;
/// }
/// let query = ActivityQuery { routes: "GET /price".parse()?, ..ActivityQuery::from(1) };
/// let newest = service.usage().activity(Some(&key), query.clone()).await?;
/// assert_eq!(newest.transactions[0].route_template.as_deref(), Some("/price"));
/// let older = service.usage().activity(Some(&key), ActivityQuery { before: newest.next, ..query }).await?;
/// assert_eq!((older.transactions.len(), older.next), (1, None));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityQuery {
    /// The most entries to list.
    pub limit: u32,
    /// Only entries that are older than the one with this id.
    pub before: Option<String>,
    /// Only requests that came with this key, without those of its child keys.
    pub key: Option<KeyId>,
    /// Only requests to these routes; empty for all entries.
    pub routes: RoutePatterns,
    /// Only requests that were priced by this entry of the route's models.
    pub model: Option<String>,
    /// Only entries of this UTC day and later.
    pub from: Option<Day>,
    /// Only entries of this UTC day and earlier.
    pub to: Option<Day>,
}

impl From<u32> for ActivityQuery {
    /// The newest entries, at most `limit`.
    fn from(limit: u32) -> Self {
        Self { limit, before: None, key: None, routes: RoutePatterns::default(), model: None, from: None, to: None }
    }
}

impl ActivityQuery {
    /// How many of the newest entries [`ActivityQuery::select`] needs.
    #[must_use]
    pub fn needed(&self) -> u32 {
        let is_plain = *self == Self::from(self.limit);
        if is_plain { self.limit.saturating_add(1) } else { SEARCHED }
    }

    /// The entries to list among an account's `newest` ones, which are ordered, newest first; and the `before` of the
    /// entries that follow, if any. `key` is the number of the query's key.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`] if `before` is not among `newest`.
    pub fn select(
        &self,
        newest: Vec<Activity>,
        key: Option<KeyNumber>,
    ) -> Result<(Vec<Activity>, Option<String>), Error> {
        let first = match &self.before {
            None => 0,
            Some(id) => newest.iter().position(|entry| entry.id == *id).ok_or_else(unknown_entry)? + 1,
        };
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let mut matching = newest.into_iter().skip(first).filter(|entry| self.matches(entry, key));
        let listed: Vec<Activity> = matching.by_ref().take(limit).collect();
        let next = matching.next().and(listed.last()).map(|entry| entry.id.clone());
        Ok((listed, next))
    }

    fn matches(&self, entry: &Activity, key: Option<KeyNumber>) -> bool {
        let allows = |line: &UsageLine| self.routes.allow(&line.http_method, line.template());
        let day = entry.created_at.day();
        (key.is_none() || entry.key == key)
            && (self.routes.is_empty() || entry.line.as_ref().is_some_and(allows))
            && (self.model.is_none() || entry.line.as_ref().and_then(UsageLine::model) == self.model.as_deref())
            && self.from.is_none_or(|from| from <= day)
            && self.to.is_none_or(|to| day <= to)
    }
}

fn unknown_entry() -> Error {
    Error::field("before", "is not a value of next, or its entry is no longer kept")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::money::credits::Credits;
    use crate::money::ledger::LedgerKind;
    use crate::usage::{ActivityKind, ClientSource};

    /// An entry of a day; without a route, one of the ledger.
    fn entry(id: &str, day: i64, of: Option<(&str, KeyNumber)>) -> Activity {
        let line = |template: &str| UsageLine {
            route_template: template.into(),
            http_method: "GET".into(),
            source: ClientSource::Direct,
        };
        Activity {
            id: id.to_owned(),
            kind: of.map_or(ActivityKind::Ledger(LedgerKind::Adjustment), |_| ActivityKind::Usage),
            amount: Credits::ZERO,
            description: None,
            line: of.map(|(template, _)| line(template)),
            request_path: None,
            calls: 1,
            payment: None,
            key: of.map(|(_, key)| key),
            created_at: Timestamp::from_unix_millis(day * 86_400_000 + 5),
        }
    }

    fn newest() -> Vec<Activity> {
        let (first, second) = (KeyNumber::FIRST, KeyNumber::new(2));
        vec![
            entry("5", 12, Some(("/a", second))),
            entry("4", 11, None),
            entry("3", 11, Some(("/b/{x}", first))),
            entry("2", 10, Some(("/a · small*", first))),
            entry("1", 10, None),
        ]
    }

    #[test]
    fn entries_match_all_parts_of_a_query() {
        let routes = |text: &str| text.parse::<RoutePatterns>().unwrap();
        let day = |days| Some(Day::from_unix_days(days));
        let all = ActivityQuery::from(10);
        // query, number of its key, ids
        let table = [
            (all.clone(), None, "54321"),
            (all.clone(), Some(KeyNumber::FIRST), "32"),
            (ActivityQuery { routes: routes("GET /a"), ..all.clone() }, None, "52"),
            (ActivityQuery { model: Some("small*".to_owned()), ..all.clone() }, None, "2"),
            (ActivityQuery { model: Some("small".to_owned()), ..all.clone() }, None, ""),
            (ActivityQuery { routes: routes("/b/*"), ..all.clone() }, None, "3"),
            (ActivityQuery { routes: routes("POST /a"), ..all.clone() }, None, ""),
            (ActivityQuery { routes: routes("GET /a"), ..all.clone() }, Some(KeyNumber::new(2)), "5"),
            (ActivityQuery { from: day(11), ..all.clone() }, None, "543"),
            (ActivityQuery { to: day(11), ..all.clone() }, None, "4321"),
            (ActivityQuery { from: day(11), to: day(11), ..all.clone() }, None, "43"),
            (ActivityQuery { before: Some("4".to_owned()), ..all }, None, "321"),
        ];
        for (query, key, ids) in table {
            let (listed, next) = query.select(newest(), key).unwrap();
            let found: String = listed.into_iter().map(|entry| entry.id).collect();
            assert_eq!((found.as_str(), next), (ids, None), "{query:?}");
        }
    }

    #[test]
    fn pages_follow_each_other_without_gaps() {
        let mut query = ActivityQuery { from: Some(Day::from_unix_days(10)), ..ActivityQuery::from(2) };
        let pages: [(&[&str], Option<&str>); 3] = [(&["5", "4"], Some("4")), (&["3", "2"], Some("2")), (&["1"], None)];
        for (ids, expected) in pages {
            let (listed, next) = query.select(newest(), None).unwrap();
            let found: Vec<_> = listed.iter().map(|entry| entry.id.as_str()).collect();
            assert_eq!((&*found, next.as_deref()), (ids, expected));
            query.before = next;
        }
        let unknown = ActivityQuery { before: Some("9".to_owned()), ..query };
        assert!(matches!(unknown.select(newest(), None), Err(Error::ValidationFailed(_))));
    }

    #[test]
    fn a_plain_list_reads_one_entry_more_than_it_shows() {
        assert_eq!(ActivityQuery::from(50).needed(), 51);
        let of_today = ActivityQuery { to: Some(Day::from_unix_days(1)), ..ActivityQuery::from(50) };
        assert_eq!(of_today.needed(), SEARCHED);
    }
}
