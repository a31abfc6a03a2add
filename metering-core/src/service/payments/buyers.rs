//! The buyer for an account, for its receipts.

use crate::access::credentials::Caller;
use crate::access::role::Right;
use crate::access::scope::Scope;
use crate::error::Error;
use crate::payments::buyer::{Buyer, BuyerError};
use crate::service::Payments;
use crate::service::fields::Fields;
use crate::store::ReceiptBuyerAdded;
use crate::wire::{BuyerRequest, BuyerResponse, ReceiptDocument};

impl Payments<'_> {
    /// The buyer for the caller's account from now on.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, [`Error::KeyNotAllowed`] when it may not read, or when the store fails.
    pub async fn buyer(self, caller: impl Into<Caller<'_>>) -> Result<BuyerResponse, Error> {
        let account = self.access.authorize(caller, Scope::Read).await?;
        let records = self.state.store()?.buyers(&account.id).await?;
        let current = records.iter().find(|record| record.until.is_none());
        Ok(BuyerResponse { org_id: account.id.to_string(), buyer: current.map(|record| (&record.buyer).into()) })
    }

    /// Changes the buyer for the caller's account from now on. Receipts for earlier purchases do not change.
    ///
    /// # Errors
    /// As [`Payments::buyer`], but the key must be the account's first one; and [`Error::ValidationFailed`].
    pub async fn set_buyer(
        self,
        caller: impl Into<Caller<'_>>,
        request: &BuyerRequest,
    ) -> Result<BuyerResponse, Error> {
        let account = self.access.first_holder(caller.into(), Right::Pay).await?.account;
        let buyer = read(request)?;
        let is_set = self.state.store()?.set_buyer(&account.id, buyer.clone(), self.access.now()).await?;
        if !is_set {
            return Err(Error::Unauthorized);
        }
        Ok(BuyerResponse { org_id: account.id.to_string(), buyer: buyer.as_ref().map(Into::into) })
    }

    /// Adds the current buyer to a receipt that names nobody. A buyer named on a receipt is never changed.
    ///
    /// # Errors
    /// As [`Payments::set_buyer`]; [`Error::NoSuchReceipt`].
    pub async fn add_receipt_buyer(
        self,
        caller: impl Into<Caller<'_>>,
        number: &str,
    ) -> Result<ReceiptDocument, Error> {
        let account = self.access.first_holder(caller.into(), Right::Pay).await?.account;
        let purchase = self.find_purchase(&account, number).await?;
        match self.state.store()?.add_receipt_buyer(&account.id, purchase.entry.created_at).await? {
            ReceiptBuyerAdded::Added => self.receipt_for(&account, purchase).await,
            ReceiptBuyerAdded::NoBuyer => Err(Error::field(
                "number",
                "cannot get billing details before they are set; set them with PUT /credits/buyer",
            )),
            ReceiptBuyerAdded::Taken => {
                Err(Error::field("number", "already has other billing details, which cannot be changed"))
            }
        }
    }
}

/// The details in a request; `None` for nobody in particular.
fn read(request: &BuyerRequest) -> Result<Option<Buyer>, Error> {
    let BuyerRequest { name, address, tax_id } = request;
    let name = name.as_ref().ok_or_else(|| Error::field("name", "is required; send null to remove the details"))?;
    let Some(name) = name else {
        let is_empty = address.as_ref().is_none_or(Vec::is_empty) && tax_id.is_none();
        return if is_empty {
            Ok(None)
        } else {
            Err(Error::field("name", "is required with an address or a tax number"))
        };
    };
    let buyer = Buyer::new(name, address.as_deref().unwrap_or_default(), tax_id.as_deref());
    buyer.map(Some).map_err(|wrong| {
        let mut fields = Fields::default();
        for problem in wrong {
            let name = match problem {
                BuyerError::Name => "name",
                BuyerError::Address => "address",
                BuyerError::TaxId => "tax_id",
            };
            fields.wrong(name, problem);
        }
        fields.into_error()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_removed_only_on_purpose() {
        // body, the invalid fields; nobody if there is `None`
        let table = [
            (r#"{"name": null}"#, None),
            (r#"{"name": null, "address": []}"#, None),
            ("{}", Some("name")),
            (r#"{"name": ""}"#, Some("name")),
            (r#"{"name": null, "tax_id": "DE 1"}"#, Some("name")),
            (r#"{"name": "a", "address": ["1", "2", "3", "4", "5", "6", "7"]}"#, Some("address")),
        ];
        for (body, wrong) in table {
            let read = read(&serde_json::from_str(body).unwrap());
            match wrong {
                None => assert!(matches!(read, Ok(None)), "{body}: {read:?}"),
                Some(field) => {
                    let Err(Error::ValidationFailed(fields)) = &read else { panic!("{body}: {read:?}") };
                    assert!(fields.contains_key(field), "{body}: {fields:?}");
                }
            }
        }
        let buyer = read(&serde_json::from_str(r#"{"name": "Acme", "address": ["Weg 1"]}"#).unwrap()).unwrap();
        assert_eq!(buyer, Buyer::new("Acme", &["Weg 1"], None).ok());
    }
}
