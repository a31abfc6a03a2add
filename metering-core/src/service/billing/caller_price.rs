//! The price of a request that another service serves: from its body, the catalogue, and the default.

use rust_decimal::{Decimal, RoundingStrategy};

use crate::catalogue::price::{Multiplier, Pricing, Weight};
use crate::catalogue::route::{ParamLocation, Route};
use crate::error::Error;
use crate::money::credits::Credits;
use crate::service::BillingSettings;
use crate::wire::DeductRequest;

impl BillingSettings {
    /// The price: from the caller's weight and multiplier if given, cut to their caps, else the catalogue's, else the
    /// default.
    pub(super) fn price(
        &self,
        request: &DeductRequest,
        route: Option<&Route>,
        segments: &[&str],
    ) -> Result<Credits, Error> {
        let sent_weight = request.credit_weight.as_ref().map(|sent| sent.value().min(self.max_weight.decimal()));
        let sent_multiplier =
            request.history_multiplier.as_ref().map(|sent| sent.value().min(self.max_multiplier.decimal()));
        let tiered = |seconds: Option<u64>| Some(route?.pricing.lookback_tiers()?.multiplier(seconds?).decimal());
        if let Some(weight) = sent_weight {
            // Read the multiplier from the path only when the weight comes from the catalogue too.
            let multiplier = sent_multiplier.or_else(|| tiered(request.lookback_seconds));
            return times(weight * atoms_of(Weight::ONE), multiplier);
        }
        match route.map(|route| &route.pricing) {
            Some(Pricing::PerLookback { weight, .. }) => {
                let seconds = || request.lookback_seconds.or_else(|| lookback_seconds(route?, segments));
                times(atoms_of(*weight), sent_multiplier.or_else(|| tiered(seconds())))
            }
            Some(Pricing::PerRequest(price) | Pricing::PerConnection(price)) => {
                times(Decimal::from(price.atoms()), sent_multiplier)
            }
            Some(Pricing::ByVolume(_)) if sent_multiplier.is_some() => Err(Error::field(
                "history_multiplier",
                "does not apply to a route with volume tiers; send credit_weight too",
            )),
            Some(Pricing::ByVolume(tiers)) => Ok(tiers.max()),
            Some(Pricing::ByUsage(_) | Pricing::Unknown) => Err(Error::field(
                "path",
                "is that of a route priced by usage; place a hold before the request and capture its cost after it, or \
                 send credit_weight",
            )),
            None => times(atoms_of(self.default_weight), sent_multiplier),
        }
    }
}

/// The atoms of a weight; a millionth of a base call is one.
fn atoms_of(weight: Weight) -> Decimal {
    weight.decimal() * Decimal::from(1_000_000)
}

/// A price in atoms times a multiplier, rounded half-even to the atom. A price above zero is at least one atom.
fn times(atoms: Decimal, multiplier: Option<Decimal>) -> Result<Credits, Error> {
    let multiplier = multiplier.unwrap_or_else(|| Multiplier::ONE.decimal());
    let exact = atoms.checked_mul(multiplier).ok_or(Error::Internal)?;
    if atoms.is_zero() || multiplier.is_zero() {
        return Ok(Credits::ZERO);
    }
    let rounded = exact.round_dp_with_strategy(0, RoundingStrategy::MidpointNearestEven).max(Decimal::ONE);
    i64::try_from(rounded).map(Credits::from_atoms).map_err(|_| Error::Internal)
}

/// How far a path looks back, if the path of its route contains that.
fn lookback_seconds(route: &Route, segments: &[&str]) -> Option<u64> {
    let Pricing::PerLookback { param, .. } = &route.pricing else { return None };
    route.param(ParamLocation::Path, param)?;
    let (piece, segment) = route.segments().zip(segments).find(|(piece, _)| piece.param() == Some(param))?;
    piece.value(segment)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_and_multipliers_are_cut_and_the_price_is_rounded_to_the_atom() {
        let wider = BillingSettings { max_multiplier: Multiplier::MAX, ..BillingSettings::default() };
        let narrow = BillingSettings { max_weight: "2".parse().unwrap(), ..BillingSettings::default() };
        let usual = BillingSettings::default();
        // weight, multiplier, settings, atoms
        let table = [
            ("5", "1024", usual, 500_000_000),
            ("5", "1024", wider, 5_120_000_000),
            ("5", "1e999", wider, 20_480_000_000),
            ("1001", "1", usual, 1_000_000_000),
            ("1e40", "100", usual, 100_000_000_000),
            ("3", "1", narrow, 2_000_000),
            ("0.123456789", "100", usual, 12_345_679),
            ("0.0000025", "1", usual, 2),
            ("0.0000035", "1", usual, 4),
            ("1e-20", "1", usual, 1),
            ("0.000001", "0.001", usual, 1),
        ];
        for (weight, multiplier, settings, atoms) in table {
            let body = format!(r#"{{"credit_weight": {weight}, "history_multiplier": {multiplier}}}"#);
            let price = settings.price(&serde_json::from_str(&body).unwrap(), None, &[]).unwrap();
            assert_eq!(price, Credits::from_atoms(atoms), "{body}");
        }
    }
}
