//! Recurring credits.

use super::register::register;
use crate::action::Action;
use crate::call::{Viewer, call};
use crate::wire::{ReasonRequest, RefillDocument, RefillRequest};

register!(ShowRefill, SetRefill, RemoveRefill);

call! {
    /// How accounts are refilled
    ShowRefill("refill") = GET "/admin/refill" in "accounts";
    returns(200, "The rule for recurring credits");
    async fn run(admin, _by: Viewer, _none: (), _body: ()) -> RefillDocument {
        Ok(RefillDocument { refill: admin.refill().await? })
    }
}

call! {
    /// Set the refill rule, replacing the current one
    ///
    /// Accounts already processed in the new rule's current period are not refilled again in it.
    SetRefill("set_refill") = PUT "/admin/refill" in "accounts";
    audit("refill.set", "Set recurring credits");
    returns(200, "The rule");
    async fn run(admin, by: Action, _none: (), wanted: RefillRequest) -> RefillDocument {
        let refill = Some(wanted.refill);
        admin.set_refill(by, refill).await?;
        Ok(RefillDocument { refill })
    }
}

call! {
    /// Stop refilling accounts
    RemoveRefill("remove_refill") = POST "/admin/refill/remove" in "accounts";
    audit("refill.remove", "Stopped recurring credits");
    returns(204, "Accounts are no longer refilled");
    async fn run(admin, by: Action, _none: (), _body: ReasonRequest) -> () {
        admin.set_refill(by, None).await
    }
}
