//! Limits how many templates outside the catalogue each account's usage is booked on. Beyond the limit it is booked on
//! a catch-all.
//!
//! A caller may pass on paths and templates that its clients chose. Each distinct one costs a permanent row, and
//! another for each day on which it is used. Each process reads an account's templates from the store on first use and
//! once a day, so the limit survives a restart but holds per node. It never fails a charge, and never applies to the
//! catalogue's own routes.

use std::sync::Arc;

use crate::access::invisible::is_invisible;
use crate::access::key::ApiKey;
use crate::service::metering::Service;
use crate::usage::{ClientSource, DayRange, UsageLine};

/// The template to book usage on when its own is too long or over the limit.
const OTHER: &str = "(other)";
/// The same, for a method that HTTP does not define.
const OTHER_METHOD: &str = "OTHER";
/// The longest template to book usage on, in bytes.
const MAX_TEMPLATE_BYTES: usize = 256;
/// How many days back an account's templates count towards its limit.
const LOOK_BACK_DAYS: u32 = 90;
const METHODS: [&str; 9] = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];

impl Service {
    /// The line to book a request on: its own, or the catch-all when it is over the limit.
    pub(super) async fn bounded_line(
        &self,
        key: &ApiKey,
        template: Arc<str>,
        method: Arc<str>,
        source: ClientSource,
    ) -> UsageLine {
        let listed = self.catalogue().by_template(&method, &template).is_some();
        if listed || self.admits_template(key, &template, &method).await {
            return UsageLine { route_template: template, http_method: method, source };
        }
        let http_method = if METHODS.contains(&&*method) { method } else { OTHER_METHOD.into() };
        UsageLine { route_template: OTHER.into(), http_method, source }
    }

    async fn admits_template(&self, key: &ApiKey, template: &str, method: &str) -> bool {
        if template == OTHER || template.len() > MAX_TEMPLATE_BYTES || template.chars().any(is_invisible) {
            return false;
        }
        let (key, now, most) = (key.hash(), self.access.now(), self.charging.billing.templates_per_account);
        if let Some(admitted) = self.charging.own_templates.admits(&key, (template, method), most, now) {
            return admitted;
        }
        // If the key is unknown or the store fails, the charge itself reports it.
        let Ok(Some(account)) = self.access.store.account_by_key(&key).await else { return false };
        let days = DayRange::last_days(now, LOOK_BACK_DAYS);
        let Ok(Some(report)) = self.access.store.usage_report(&account.id, days).await else { return false };
        let lines = report.by_endpoint.iter().map(|used| (used.template(), &*used.http_method));
        let unlisted = lines.filter(|(template, method)| {
            *template != OTHER && self.catalogue().by_template(method, template).is_none()
        });
        self.charging.own_templates.remember(key, unlisted, now);
        self.charging.own_templates.admits(&key, (template, method), most, now).unwrap_or(false)
    }
}
