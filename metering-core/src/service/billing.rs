//! Charges requests that another service serves and reports over HTTP.
//!
//! The caller has the billing secret, and has served the request or will. Refusing a path for its spelling would fail a
//! request that works, so any path, method and template is charged.

mod caller_price;
mod hold;
mod own_templates;
mod templates;

use std::net::IpAddr;
use std::sync::Arc;

use hold::held_price;
pub(super) use own_templates::OwnTemplates;

use crate::access::credentials::Caller;
use crate::access::key::ApiKey;
use crate::catalogue::path::{encode_path, plain_segments};
use crate::catalogue::route::Route;
use crate::charging::charge::{Charge, Receipt};
use crate::charging::delivery::Fingerprint;
use crate::charging::request_id::RequestId;
use crate::charging::volume::VolumeTerms;
use crate::error::Error;
use crate::service::gate::kept_path;
use crate::service::holds::route_of_template;
use crate::service::metering::Service;
use crate::service::{BillingSettings, RequestPayment, RequestedResource};
use crate::usage::ClientSource;
use crate::wire::{DeductRequest, Factor, HoldFields, LookupResponse};

const NOT_A_METHOD: &str = "must be an HTTP method such as GET";

/// The path and method that the caller gives, in normal form.
struct NormalizedRoute {
    path: String,
    method: Arc<str>,
}

impl Service {
    /// Sets the settings of [`Service::deduct`].
    ///
    /// [`BillingSettings`] has an example.
    #[must_use]
    pub fn with_billing(mut self, settings: BillingSettings) -> Self {
        self.charging.billing = settings;
        self
    }

    /// Charges a request that another service will serve. A payment that came with it is credited first, to the account
    /// of the key.
    ///
    /// ```
    /// use metering_core::wire::DeductRequest;
    /// use metering_core::{MemoryStore, Service};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// let request: DeductRequest = serde_json::from_str(
    ///     r#"{"path": "/prices/17", "method": "GET", "route_template": "/prices/{number}", "credit_weight": 72}"#,
    /// )?;
    /// let receipt = service.deduct(Some(&key), &request, None).await?;
    /// assert_eq!(receipt.charged.to_string(), "0.01");
    /// assert_eq!(&*receipt.line.route_template, "/prices/{number}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of a metered route; [`Error::ValidationFailed`] when a field is invalid; and [`Error::Offer`] when the
    /// payment was not credited, or not yet.
    pub async fn deduct(
        &self,
        caller: impl Into<Caller<'_>>,
        request: &DeductRequest,
        payment: Option<&dyn RequestPayment>,
    ) -> Result<Receipt, Error> {
        self.charge(self.paid_charge(caller.into(), request, None, payment).await?).await
    }

    /// The route of a request to another service, if it is sold.
    #[must_use]
    pub fn resource_of(&self, request: &DeductRequest) -> RequestedResource<'_> {
        let path = encode_path(request.path.split('?').next().unwrap_or_default());
        let method = request.method();
        let template = request.route_template.as_deref();
        let route = template.and_then(|template| route_of_template(self.catalogue(), template, &method));
        let route = route.or_else(|| self.catalogue().find_leniently(&method, &plain_segments(&path)));
        self.offers().resource(&path, None, route)
    }

    /// The account of a key, without a charge.
    ///
    /// ```
    /// use metering_core::{MemoryStore, Service};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// let found = service.lookup(Some(&key)).await?;
    /// assert_eq!(found.org_id, account.id.to_string());
    /// assert_eq!(found.credit_balance.to_string(), "2");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, or when the store fails.
    pub async fn lookup(&self, caller: impl Into<Caller<'_>>) -> Result<LookupResponse, Error> {
        let account = self.access.authenticate_anywhere(caller).await?;
        Ok(LookupResponse {
            org_id: account.id.to_string(),
            email: account.email.map(|email| email.to_string()),
            credit_balance: account.totals.balance,
        })
    }

    /// The charge for a request, or the hold that `hold` requests, after the request's payment was credited.
    async fn paid_charge(
        &self,
        caller: Caller<'_>,
        request: &DeductRequest,
        hold: Option<&HoldFields>,
        payment: Option<&dyn RequestPayment>,
    ) -> Result<Charge, Error> {
        let caller = Caller { address: request.client_ip, ..caller };
        let key = caller.key.ok_or(Error::Unauthorized)?;
        let charge = match self.charge_of(key, caller.address, request, hold).await {
            Ok(charge) => charge,
            Err(error) => return Err(self.access.after_authentication(caller, error).await),
        };
        if let Some(presented) = payment {
            let fingerprint = Fingerprint::of(&charge.line.http_method, &charge.request_path, &charge.line);
            self.offers().pay(presented, caller, fingerprint, charge.price, self.resource_of(request)).await?;
        }
        Ok(charge)
    }

    /// The charge for a request, or the hold that `hold` requests.
    async fn charge_of(
        &self,
        key: &ApiKey,
        address: Option<IpAddr>,
        request: &DeductRequest,
        hold: Option<&HoldFields>,
    ) -> Result<Charge, Error> {
        check_values(request, hold.is_some())?;
        let request_id = request.request_id.as_deref().map(RequestId::parse).transpose();
        let request_id = request_id.map_err(|error| Error::field("request_id", error))?;
        let (described, catalogue) = (NormalizedRoute::of(request)?, self.catalogue());
        let segments = plain_segments(&described.path);
        let template = request.route_template.as_deref();
        let by_template = template.and_then(|template| route_of_template(catalogue, template, &described.method));
        let route = by_template.or_else(|| catalogue.find_leniently(&described.method, &segments));
        let named = template.map(plain_segments);
        let session = named.and_then(|named| catalogue.session_price(&named));
        let session = session.or_else(|| catalogue.session_price(&segments));
        let listed = || session.map_or_else(|| self.charging.billing.price(request, route, &segments), Ok);
        let amount = hold.and_then(|fields| fields.amount);
        let (price, hold) = match hold {
            None => (listed()?, None),
            Some(fields) => held_price(fields, route, listed).map(|(price, terms)| (price, Some(terms)))?,
        };
        let is_listed = session.is_none() && request.credit_weight.is_none() && amount.is_none();
        let tiers = route.filter(|_| is_listed).and_then(Route::volume_tiers);
        let by_volume = tiers.map(|tiers| VolumeTerms { tiers: Arc::clone(tiers), max_cost: None });
        let template = match (by_template.or(route), &request.route_template) {
            (_, Some(template)) if by_template.is_none() => template.as_str().into(),
            (Some(route), _) => Arc::clone(&route.template),
            (None, _) => described.path.as_str().into(),
        };
        let source = request.client_source.as_deref().map_or(ClientSource::Direct, ClientSource::from_name);
        let line = match route.filter(|_| by_volume.is_some()) {
            // Counted under the catalogue's template, so a caller's template cannot start a new count.
            Some(route) => route.usage_line(source),
            None => self.bounded_line(key, template, described.method, source).await,
        };
        let by_usage = route.filter(|_| hold.is_some()).and_then(Route::usage_price);
        let tokens = by_usage.and_then(|price| price.expected_tokens(None));
        let (request_path, price_version) = (kept_path(&described.path), self.price_version());
        let charge = Charge::of(key.hash(), price, line);
        Ok(Charge { by_volume, request_path, request_id, address, hold, price_version, tokens, ..charge })
    }
}

impl NormalizedRoute {
    fn of(request: &DeductRequest) -> Result<Self, Error> {
        let method = request.method();
        if !(1..=32).contains(&method.len()) || !method.bytes().all(is_token_char) {
            return Err(Error::field("method", NOT_A_METHOD));
        }
        let path = encode_path(request.path.split('?').next().unwrap_or_default());
        Ok(Self { path, method: method.into() })
    }
}

/// `tchar` of RFC 9110, section 5.6.2.
fn is_token_char(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Deductions are for requests that were served, so a value that cannot be used is charged as 1. A hold is placed
/// before its request, which can still be mended.
fn check_values(request: &DeductRequest, is_hold: bool) -> Result<(), Error> {
    if is_hold && request.method.is_empty() {
        return Err(Error::field("method", NOT_A_METHOD));
    }
    for (field, sent) in
        [("credit_weight", &request.credit_weight), ("history_multiplier", &request.history_multiplier)]
    {
        let Some(sent) = sent.as_ref().and_then(Factor::unusable) else { continue };
        if is_hold {
            return Err(Error::field(field, "must be a number above 0"));
        }
        tracing::warn!(field, sent, "a resolver sent a value that is not a number above 0; it counts as 1");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;
    use crate::service::config::ServiceConfig;
    use crate::store::memory::MemoryStore;

    #[tokio::test]
    async fn route_priced_by_usage_is_charged_only_by_an_explicit_weight() {
        let catalogue = r#"{"market": "M", "version": 1, "endpoints": [{"path": "/chat", "method": "POST",
            "metered": true, "price": {"max": "0.5", "report": {"header": "x-cost"}}}]}"#;
        let catalogue = Catalogue::from_json(catalogue).unwrap();
        let service = Service::start(Arc::new(MemoryStore::new()), catalogue, ServiceConfig::default());
        let (account, key) = service.open_account("my-agent", "2".parse().unwrap()).await.unwrap();
        let request = |fields: &str| -> DeductRequest {
            serde_json::from_str(&format!(r#"{{"path": "/chat", "method": "POST"{fields}}}"#)).unwrap()
        };
        for fields in ["", r#", "route_template": "/chat""#, r#", "history_multiplier": 2"#] {
            let error = service.deduct(Some(&key), &request(fields), None).await.unwrap_err();
            assert!(error.to_string().contains("priced by usage"), "{fields}: {error}");
        }
        let balance = service.lookup(Some(&key)).await.unwrap().credit_balance;
        assert_eq!(balance, account.totals.balance, "a refused request costs nothing");
        let receipt = service.deduct(Some(&key), &request(r#", "credit_weight": 72"#), None).await.unwrap();
        assert_eq!(receipt.charged, "0.01".parse().unwrap());
    }
}
