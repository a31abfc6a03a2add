//! The offer that a payment accepts, as sent by the client.

use metering_core::chains::Address;
use metering_core::chains::TokenUnits;

use crate::offers::{Network, Offer, Offers};

/// The offer that a payment names. In x402 it is not signed: only the signed authorization counts, which
/// [`Authorization::check`](crate::offers::Authorization::check) compares with the offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The chain.
    pub network: Network,
    /// The token's contract.
    pub asset: Address,
    /// How many units are paid.
    pub amount: TokenUnits,
    /// Who is paid.
    pub pay_to: Address,
    /// The `name` of the token's domain (EIP-712) that was signed for, if the payment has it.
    pub domain_name: Option<String>,
    /// The `version` of that domain, if the payment has it.
    pub domain_version: Option<String>,
}

/// Why a payment matches no current offer. Nothing was taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OfferMismatch {
    /// The amount of that token is not on offer.
    #[error(
        "{} units of {asset} on {network} are not on offer; send the request without a payment to see the offers, and \
         sign one of them. Nothing was taken.",
        amount.get()
    )]
    NotOffered {
        /// The chain.
        network: Network,
        /// The token.
        asset: Address,
        /// The amount.
        amount: TokenUnits,
    },
    /// A payment of version 1, which does not name its token, matches no offer.
    #[error(
        "no offer on {network} asks for {} units to {pay_to}; send the request without a payment to see the offers, and \
         sign one of them. Nothing was taken.",
        amount.get()
    )]
    NoSuchOffer {
        /// The chain.
        network: Network,
        /// The recipient that the payment names.
        pay_to: Address,
        /// The amount.
        amount: TokenUnits,
    },
    /// It pays another recipient.
    #[error(
        "the payment accepts an offer that pays {found}, but the offer pays {expected}; sign it again. Nothing was taken."
    )]
    Recipient {
        /// The required recipient.
        expected: Address,
        /// The recipient that the payment names.
        found: Address,
    },
    /// It was signed for another domain: the token's contract would refuse its signature.
    #[error(
        "accepted.extra names another domain than the offer; sign for the name and version in extra of the offer. Nothing was taken."
    )]
    Domain,
}

impl Accepted {
    /// The offer that this names: fields are compared by value, and the fields of the domain only if the payment has
    /// them.
    ///
    /// # Errors
    /// The first field that differs.
    pub fn offer<'o>(&self, offers: &'o Offers) -> Result<&'o Offer, OfferMismatch> {
        let Self { network, asset, amount, pay_to, .. } = *self;
        let found = offers.find(network.0, asset, amount);
        let offer = found.ok_or(OfferMismatch::NotOffered { network, asset, amount })?;
        if offer.pay_to != pay_to {
            return Err(OfferMismatch::Recipient { expected: offer.pay_to, found: pay_to });
        }
        let domain = &offer.asset.domain;
        let differs = |found: &Option<String>, expected: &String| found.as_ref().is_some_and(|text| text != expected);
        if differs(&self.domain_name, &domain.name) || differs(&self.domain_version, &domain.version) {
            return Err(OfferMismatch::Domain);
        }
        Ok(offer)
    }
}
