//! Reports for account holders: balance, usage and activity.

mod lifetime;
mod recent;
mod statements;

use std::collections::HashMap;

pub use lifetime::lifetime_events;
pub use recent::ActivityQuery;

use crate::access::credentials::Caller;
use crate::access::scope::Scope;
use crate::catalogue::{Catalogue, Route};
use crate::charging::volume::CountedRoute;
use crate::error::Error;
use crate::prices::PriceHistory;
use crate::service::Access;
use crate::service::metering::Service;
use crate::service::signups::SignupSetup;
use crate::store::PriceStore;
use crate::usage::{ClientSource, DayRange, UsageReport};
use crate::wire::{ActivityDocument, BalanceDocument, ByEndpointDocument, RouteVolume, UsageSummary, VolumesDocument};

/// The longest window of a report, in days.
const MAX_WINDOW_DAYS: u32 = 90;
/// The most entries in a list.
const MAX_ENTRIES: u32 = 1_000;

/// Reports for account holders, from [`Service::usage`].
#[derive(Debug, Clone, Copy)]
pub struct Usage<'s> {
    access: &'s Access,
    catalogue: &'s Catalogue,
    price_store: Option<&'s dyn PriceStore>,
    signups: &'s SignupSetup,
}

impl Service {
    /// Reports for account holders: balance, usage, activity and statements.
    #[must_use]
    pub fn usage(&self) -> Usage<'_> {
        Usage {
            access: &self.access,
            catalogue: self.catalogue(),
            price_store: self.charging.price_store.as_deref(),
            signups: &self.signups,
        }
    }
}

impl Usage<'_> {
    /// The account and its balance.
    ///
    /// ```
    /// use metering_core::{Charge, MemoryStore, Service};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/price")).await?;
    /// let document = service.usage().balance(Some(&key)).await?;
    /// assert_eq!(document.credit_balance.to_string(), "1.75");
    /// assert_eq!(document.total_credits_used.to_string(), "0.25");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, or when the store fails.
    pub async fn balance(self, caller: impl Into<Caller<'_>>) -> Result<BalanceDocument, Error> {
        let caller: Caller<'_> = caller.into();
        let account = self.access.authorize(caller, Scope::Read).await?;
        let email_verification = self.signups.email_verification(&account);
        let member = caller.member().map(|member| member.role.into());
        Ok(BalanceDocument { email_verification, member, ..BalanceDocument::from(&account) })
    }

    /// Usage by day and by route over the last `days` UTC days, at least 1 and at most 90.
    ///
    /// ```
    /// use metering_core::{Charge, MemoryStore, Service};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// for route in ["/price", "/price", "/search"] {
    ///     service.charge(Charge::new(&key, "0.25".parse()?, "GET", route)).await?;
    /// }
    /// let summary = service.usage().summary(Some(&key), 30).await?;
    /// assert_eq!(summary.totals.usage_events, 3);
    /// assert_eq!(summary.totals.credits_used.to_string(), "0.75");
    /// assert_eq!(summary.by_endpoint[0].route_template, "/price");
    /// assert_eq!(service.usage().summary(Some(&key), 91).await?.window_days, 90);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, or when the store fails.
    pub async fn summary(self, caller: impl Into<Caller<'_>>, days: u32) -> Result<UsageSummary, Error> {
        let days = clamped(days, MAX_WINDOW_DAYS);
        let now = self.access.now();
        let window = DayRange::last_days(now, days);
        let report = self.report(caller, window).await?;
        let keys = self.access.key_labels(&report.account.id).await?;
        let prices = match self.price_store {
            Some(store) => store.price_versions(window.first.start()).await?,
            None => PriceHistory::default(),
        };
        let events = lifetime_events(&*self.access.store, &report, window, now).await?;
        UsageSummary::new((report, events), &keys, &prices, days).ok_or(Error::Internal)
    }

    /// Usage by route over the last `days` UTC days, at least 1 and at most 90: the `limit` routes (1 to 1000) that
    /// cost most.
    ///
    /// ```
    /// use metering_core::{Charge, MemoryStore, Service};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/price")).await?;
    /// service.charge(Charge::new(&key, "0.5".parse()?, "GET", "/search")).await?;
    /// let most_expensive = service.usage().by_endpoint(Some(&key), 7, 1).await?;
    /// assert_eq!(most_expensive.by_endpoint.len(), 1);
    /// assert_eq!(most_expensive.by_endpoint[0].route_template, "/search");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Usage::summary`].
    pub async fn by_endpoint(
        self,
        caller: impl Into<Caller<'_>>,
        days: u32,
        limit: u32,
    ) -> Result<ByEndpointDocument, Error> {
        let days = clamped(days, MAX_WINDOW_DAYS);
        let report = self.report(caller, DayRange::last_days(self.access.now(), days)).await?;
        let most = usize::try_from(clamped(limit, MAX_ENTRIES)).unwrap_or(usize::MAX);
        Ok(ByEndpointDocument {
            org_id: report.account.id.to_string(),
            window_days: days,
            by_endpoint: report.by_endpoint.iter().take(most).map(Into::into).collect(),
        })
    }

    /// How many requests the account has made this month to the routes with volume tiers, and the price of the next
    /// ones.
    ///
    /// ```
    /// use metering_core::{Catalogue, MemoryStore, Service, ServiceConfig};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/price", "method": "GET", "metered": true,
    ///         "price": [{"up_to": 1000, "credits": "0"}, {"credits": "0.001"}]}]}"#,
    /// )?;
    /// let service = Service::start(Arc::new(MemoryStore::new()), catalogue, ServiceConfig::default());
    /// let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// let volumes = service.usage().volumes(Some(&key)).await?;
    /// assert_eq!((volumes.routes[0].call_count, volumes.routes[0].free_calls_left), (0, 1000));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, or when the store fails.
    pub async fn volumes(self, caller: impl Into<Caller<'_>>) -> Result<VolumesDocument, Error> {
        let account = self.access.authorize(caller, Scope::Read).await?;
        let counted: HashMap<_, _> = self.access.store.volumes(&account.id).await?.into_iter().collect();
        let now = self.access.now();
        let volume = |route: &Route| {
            let counted = counted.get(&CountedRoute::of(&route.usage_line(ClientSource::Direct)));
            RouteVolume::of(route, counted.cloned().unwrap_or_default(), now)
        };
        let routes = self.catalogue.routes().iter().filter(|route| route.metered).filter_map(volume).collect();
        Ok(VolumesDocument::new(&account.id, now.day().month(), routes))
    }

    /// Recent activity, newest first: the entries that match the query, at most its limit, which is from 1 to 1000. A
    /// number is a query for that many of the newest entries.
    ///
    /// ```
    /// use metering_core::{Charge, MemoryStore, Service};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/price")).await?;
    /// let [charge, bonus] = &service.usage().activity(Some(&key), 10).await?.transactions[..] else {
    ///     return Err("the account has two entries".into());
    /// };
    /// assert_eq!((charge.kind.as_str(), charge.amount.to_string().as_str()), ("usage", "-0.25"));
    /// assert_eq!((bonus.kind.as_str(), bonus.amount.to_string().as_str()), ("signup_bonus", "2"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Usage::summary`], and [`Error::ValidationFailed`] for a key or an entry that the account does not have.
    pub async fn activity(
        self,
        caller: impl Into<Caller<'_>>,
        query: impl Into<ActivityQuery>,
    ) -> Result<ActivityDocument, Error> {
        let query = query.into();
        let query = ActivityQuery { limit: clamped(query.limit, MAX_ENTRIES), ..query };
        let account = self.access.authorize(caller, Scope::Read).await?;
        if query.from.zip(query.to).is_some_and(|(from, to)| from > to) {
            return Err(Error::field("from", "must not be after to"));
        }
        let newest = self.access.store.activity(&account.id, query.needed()).await?;
        let keys = self.access.key_labels(&account.id).await?;
        let key = match &query.key {
            Some(id) => Some(keys.number(id).ok_or_else(|| Error::field("key", "is not a key of this account"))?),
            None => None,
        };
        let (entries, next) = query.select(newest, key)?;
        Ok(ActivityDocument { next, ..ActivityDocument::new(&account.id, entries, &keys) })
    }

    async fn report(self, caller: impl Into<Caller<'_>>, window: DayRange) -> Result<UsageReport, Error> {
        let account = self.access.authorize(caller, Scope::Read).await?;
        self.access.store.usage_report(&account.id, window).await?.ok_or(Error::Unauthorized)
    }
}

/// A number of days or entries, cut to its range: clients of other services send more than there is.
fn clamped(value: u32, most: u32) -> u32 {
    value.clamp(1, most)
}
