//! Requests whose credits are held, as a server lists them.

use metering_core::AccountId;
use metering_core::charging::HoldId;
use metering_core::wire::admin::{AccountRequestDocument, AccountRequestsDocument};

use super::Remote;
use crate::failure::Failure;

impl Remote {
    pub(super) async fn requests_of(&self, id: &AccountId, limit: u32) -> Result<AccountRequestsDocument, Failure> {
        Ok(self.get(&format!("/admin/accounts/{id}/requests?limit={limit}")).await?.json()?)
    }

    pub(super) async fn request_by_id(&self, id: &HoldId) -> Result<AccountRequestDocument, Failure> {
        Ok(self.get(&format!("/admin/requests/{id}")).await?.json()?)
    }
}
