//! Requests: those of an account whose credits are held, and any one by its id.

use std::time::Duration;

use metering_core::access::AccountId;
use metering_core::catalogue::Catalogue;
use metering_core::charging::HoldId;
use metering_core::clock::Timestamp;
use metering_core::prices::PriceNumber;
use metering_core::service::ChargedRequest;

use crate::administration::Administration;
use crate::error::AdminError;
use crate::wire::{AccountRequestDocument, AccountRequestsDocument};

/// The beginning of 2026: no id has an earlier time. Ids that were made without a time have one by chance, nearly always
/// an impossible one.
const FIRST_TIME: Timestamp = Timestamp::from_unix_millis(1_767_225_600_000);

/// A request without a hold.
pub(crate) enum Unheld {
    /// It was charged immediately.
    Charged { account: AccountId, request: Box<AccountRequestDocument>, version: Option<PriceNumber>, at: Timestamp },
    /// There is no charge to show: the reason, and the account if known.
    Unknown { account: Option<AccountId>, why: String },
}

impl Administration {
    /// The requests of an account whose credits are held now, newest first, at most `limit`.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn held_requests(&self, id: &AccountId, limit: u32) -> Result<AccountRequestsDocument, AdminError> {
        self.account(id).await?;
        let holds = self.store.open_holds(id, limit).await?;
        let keys = self.store.key_labels(id).await?.into_iter().collect();
        let requests = holds.iter().map(|hold| AccountRequestDocument::new(hold, &keys)).collect();
        Ok(AccountRequestsDocument { requests })
    }

    /// A request of any account: its credits are held, or were held until it was settled, or it was charged
    /// immediately. The store keeps settled ones for [`Hold::RETENTION`](metering_core::charging::Hold::RETENTION), and
    /// other charges as long as they are among the account's recent activity.
    ///
    /// # Errors
    /// [`AdminError::NotFound`], or when the store fails.
    pub async fn request(&self, id: &HoldId) -> Result<AccountRequestDocument, AdminError> {
        let Some(hold) = self.store.hold(id).await? else {
            return match self.unheld(id).await? {
                Unheld::Charged { request, .. } => Ok(*request),
                Unheld::Unknown { account: Some(account), why } => {
                    Err(AdminError::NotFound(format!("request {id} of account {account}: {why}")))
                }
                Unheld::Unknown { account: None, why } => Err(AdminError::NotFound(format!("request {id}: {why}"))),
            };
        };
        let keys = self.store.key_labels(&hold.account).await?.into_iter().collect();
        Ok(AccountRequestDocument::new(&hold, &keys))
    }

    /// The available details of a request for which the store has no hold.
    pub(crate) async fn unheld(&self, id: &HoldId) -> Result<Unheld, AdminError> {
        let Some(found) = ChargedRequest::find(&*self.store, id, None).await? else {
            return Ok(Unheld::Unknown { account: None, why: self.why_unknown(id) });
        };
        let (account, at) = (found.account.clone(), found.at());
        let keys = self.store.key_labels(&account).await?.into_iter().collect();
        let version = self.store.price_versions(at).await?.in_force(at).map(|version| version.number);
        let catalogue = match version {
            Some(number) => self.store.price_catalogue(number).await?,
            None => None,
        };
        let catalogue = catalogue.and_then(|text| Catalogue::from_json(&text).ok());
        let route = catalogue.as_ref().zip(found.line());
        let route = route.and_then(|(catalogue, line)| catalogue.by_template(&line.http_method, line.template()));
        let words = found.in_words(&keys, version, route);
        let Some(request) = found.document(words.clone()) else {
            return Ok(Unheld::Unknown { account: Some(account), why: words });
        };
        let request = Box::new(AccountRequestDocument::charged(&found, &keys, request));
        Ok(Unheld::Charged { account, request, version, at })
    }

    fn why_unknown(&self, id: &HoldId) -> String {
        let (at, now) = (id.made_at(), self.clock.now().saturating_add(Duration::from_secs(60)));
        if !id.names_charge() && (FIRST_TIME..=now).contains(&at) {
            return format!(
                "It came in at {at}, and nothing was charged under this id. It was refused, its route costs nothing, or it \
                 repeated an earlier request."
            );
        }
        "There is no such request. One that held credits is kept for a day after it was settled. Any other is found by the \
         time and the key in its id, which ids from before the last upgrade may not have."
            .to_owned()
    }
}
