//! Charging for resolvers that serve the requests themselves and ask over HTTP.

use crate::catalogue::RouteRefusal;
use crate::charge::{Charge, Receipt, RequestId};
use crate::credits::Credits;
use crate::error::Error;
use crate::key::ApiKey;
use crate::path::RequestPath;
use crate::price::{Multiplier, Pricing};
use crate::route::Route;
use crate::service::Service;
use crate::service::gate::kept_path;
use crate::usage::{ClientSource, UsageLine};
use crate::wire::{DeductRequest, LookupAnswer};

/// The longest route template that usage is booked on, in bytes: such rows last.
const MAX_TEMPLATE_BYTES: usize = 256;

impl Service {
    /// Charges a request that another service will serve.
    ///
    /// # Errors
    /// As for a metered route; [`Error::ValidationFailed`] when no price can be found.
    pub async fn deduct(&self, key: Option<&ApiKey>, request: &DeductRequest) -> Result<Receipt, Error> {
        let key = key.ok_or(Error::Unauthorized)?;
        let charge = match self.charge_of(key, request) {
            Ok(charge) => charge,
            Err(error) => return Err(self.after_authentication(Some(key), error).await),
        };
        self.charge(charge).await
    }

    /// Whose key it is, without charging.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, or when the store fails.
    pub async fn lookup(&self, key: Option<&ApiKey>) -> Result<LookupAnswer, Error> {
        let account = self.authenticate(key).await?;
        Ok(LookupAnswer {
            org_id: account.id.to_string(),
            email: account.email.map(|email| email.to_string()),
            credit_balance: account.totals.balance,
        })
    }

    fn charge_of(&self, key: &ApiKey, request: &DeductRequest) -> Result<Charge, Error> {
        let method = request.method.to_ascii_uppercase();
        if !(1..=16).contains(&method.len()) || !method.bytes().all(|b| b.is_ascii_uppercase()) {
            return Err(Error::field("method", "must be an HTTP method such as GET"));
        }
        let raw_path = request.path.split('?').next().unwrap_or_default();
        let path = RequestPath::parse(raw_path).map_err(|error| Error::field("path", error))?;
        let route = self.route_of(request, &method, &path);
        let price = price(request, route, &path)?;
        let template = match (route, &request.route_template) {
            (Some(route), _) => route.template.clone(),
            (None, Some(template)) if !template.starts_with('/') => {
                return Err(Error::field("route_template", "must start with a slash"));
            }
            (None, template) => template.as_deref().unwrap_or(path.as_str()).into(),
        };
        if template.len() > MAX_TEMPLATE_BYTES || template.chars().any(char::is_control) {
            return Err(Error::field("route_template", "must be text of at most 256 bytes"));
        }
        let request_id = request.request_id.as_deref().map(RequestId::parse).transpose();
        let request_id = request_id.map_err(|error| Error::field("request_id", error))?;
        let source = request.client_source.as_deref().map_or(ClientSource::Direct, ClientSource::from_name);
        let line = UsageLine { route_template: template, http_method: method.into(), source };
        let request_path = kept_path(path.as_str());
        Ok(Charge { key: key.hash(), price, line, request_path, request_id })
    }

    fn route_of(&self, request: &DeductRequest, method: &str, path: &RequestPath<'_>) -> Option<&Route> {
        match &request.route_template {
            Some(template) => self.catalogue.by_template(method, template),
            None => self.catalogue.find(method, path).ok(),
        }
    }
}

/// The caller's weight and multiplier where given, else the catalogue's.
fn price(request: &DeductRequest, route: Option<&Route>, path: &RequestPath<'_>) -> Result<Credits, Error> {
    let multiplier = request.history_multiplier;
    let uneven = |_| Error::field("credit_weight", "times the multiplier must have at most six decimals");
    if let Some(weight) = request.credit_weight {
        let tiered = || Some(route?.pricing.lookback_tiers()?.multiplier(request.lookback_seconds?));
        return weight.price(multiplier.or_else(tiered).unwrap_or(Multiplier::ONE)).map_err(uneven);
    }
    let Some(route) = route else {
        let problem = "is needed for a route that is not in the catalogue";
        return Err(Error::field("credit_weight", problem));
    };
    match (&route.pricing, multiplier, request.lookback_seconds) {
        (Pricing::PerLookback { weight, .. }, Some(multiplier), _) => weight.price(multiplier).map_err(uneven),
        (Pricing::PerLookback { .. }, None, Some(seconds)) => Ok(route.price(seconds)),
        (Pricing::PerLookback { .. }, None, None) => match route.read(path, None) {
            Ok((price, _)) => Ok(price),
            Err(RouteRefusal::InvalidParameters(problems)) => Err(Error::ValidationFailed(problems)),
            Err(_) => Err(Error::field("lookback_seconds", "is needed for this route")),
        },
        (Pricing::PerRequest(price) | Pricing::PerConnection(price), multiplier, _) => {
            multiplier.unwrap_or(Multiplier::ONE).times(*price).map_err(uneven)
        }
    }
}
