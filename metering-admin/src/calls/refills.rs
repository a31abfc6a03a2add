//! Recurring credits.

use http::Method;

use super::register;
use crate::action::Action;
use crate::administration::Administration;
use crate::call::{Audit, Call, Nothing, Viewer};
use crate::error::AdminError;
use crate::wire::{ReasonRequest, RefillDocument, RefillRequest};

register!(ShowRefill, SetRefill, RemoveRefill);

/// How accounts are refilled.
#[derive(Debug)]
pub struct ShowRefill;

impl Call for ShowRefill {
    const ID: &str = "refill";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/refill";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "How accounts are refilled";
    const SUCCESS: (u16, &str) = (200, "The rule for recurring credits");
    type By = Viewer;
    type Parameters = ();
    type Body = Nothing;
    type Reply = RefillDocument;

    async fn run(admin: &Administration, _by: &Viewer, (): (), _body: Nothing) -> Result<RefillDocument, AdminError> {
        Ok(RefillDocument { refill: admin.refill().await? })
    }
}

/// Set the refill rule, replacing the current one.
#[derive(Debug)]
pub struct SetRefill;

impl Call for SetRefill {
    const ID: &str = "set_refill";
    const METHOD: Method = Method::PUT;
    const PATH: &str = "/admin/refill";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "Set the refill rule, replacing the current one";
    const DESCRIPTION: &str =
        "Accounts already processed in the new rule's current period are not refilled again in it.";
    const AUDIT: Option<Audit> = Some(Audit { name: "refill.set", label: "Set recurring credits" });
    const SUCCESS: (u16, &str) = (200, "The rule");
    type By = Action;
    type Parameters = ();
    type Body = RefillRequest;
    type Reply = RefillDocument;

    async fn run(
        admin: &Administration,
        by: &Action,
        (): (),
        wanted: RefillRequest,
    ) -> Result<RefillDocument, AdminError> {
        let refill = Some(wanted.refill);
        admin.set_refill(by, refill).await?;
        Ok(RefillDocument { refill })
    }
}

/// Stop refilling accounts.
#[derive(Debug)]
pub struct RemoveRefill;

impl Call for RemoveRefill {
    const ID: &str = "remove_refill";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/refill/remove";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "Stop refilling accounts";
    const AUDIT: Option<Audit> = Some(Audit { name: "refill.remove", label: "Stopped recurring credits" });
    const SUCCESS: (u16, &str) = (204, "Accounts are no longer refilled");
    type By = Action;
    type Parameters = ();
    type Body = ReasonRequest;
    type Reply = Nothing;

    async fn run(admin: &Administration, by: &Action, (): (), _body: ReasonRequest) -> Result<Nothing, AdminError> {
        admin.set_refill(by, None).await.map(|()| Nothing)
    }
}
