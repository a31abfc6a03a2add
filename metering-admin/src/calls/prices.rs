//! Price versions: lists them, applies a catalogue on all nodes, and cancels one that has not taken effect.

use http::Method;
use metering_core::Timestamp;
use metering_core::prices::PriceNumber;
use metering_core::wire::ErrorCode;

use super::{NOT_FOUND, register};
use crate::action::Action;
use crate::administration::Administration;
use crate::call::{Audit, Call, Nothing, Viewer, parameters};
use crate::error::{AdminError, wrong};
use crate::wire::{ApplyCatalogueRequest, PriceVersionDocument, PriceVersionsDocument, ReasonRequest};

register!(ListVersions, ShowVersion, ApplyCatalogue, CancelCatalogue);

parameters! {
    /// A price version.
    OfVersion {
        /// The version's number
        number: PriceNumber,
    }
}

/// The catalogues that were, are or will be in force.
#[derive(Debug)]
pub struct ListVersions;

impl Call for ListVersions {
    const ID: &str = "versions";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/catalogue/versions";
    const TAG: &str = "catalogue";
    const SUMMARY: &str = "The catalogues that were, are or will be in force";
    const SUCCESS: (u16, &str) = (200, "Price versions, newest first");
    type By = Viewer;
    type Parameters = ();
    type Body = Nothing;
    type Reply = PriceVersionsDocument;

    async fn run(
        admin: &Administration,
        _by: &Viewer,
        (): (),
        _body: Nothing,
    ) -> Result<PriceVersionsDocument, AdminError> {
        admin.price_versions().await
    }
}

/// The catalogue of a price version.
#[derive(Debug)]
pub struct ShowVersion;

impl Call for ShowVersion {
    const ID: &str = "catalogue";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/catalogue/versions/{number}";
    const TAG: &str = "catalogue";
    const SUMMARY: &str = "The catalogue of a price version";
    const SUCCESS: (u16, &str) = (200, "The catalogue file, as a JSON string");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND];
    type By = Viewer;
    type Parameters = OfVersion;
    type Body = Nothing;
    type Reply = String;

    async fn run(
        admin: &Administration,
        _by: &Viewer,
        version: OfVersion,
        _body: Nothing,
    ) -> Result<String, AdminError> {
        Ok(admin.price_catalogue(version.number).await?.to_string())
    }
}

/// Have all nodes serve a catalogue from a time on.
#[derive(Debug)]
pub struct ApplyCatalogue;

impl Call for ApplyCatalogue {
    const ID: &str = "apply";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/catalogue/apply";
    const TAG: &str = "catalogue";
    const SUMMARY: &str = "Have all nodes serve a catalogue from a time on";
    const DESCRIPTION: &str = "From then on, nodes no longer take the file that their configuration names.";
    const AUDIT: Option<Audit> = Some(Audit { name: "catalogue.apply", label: "Applied a catalogue" });
    const SUCCESS: (u16, &str) = (200, "The price version");
    const REFUSALS: &[(ErrorCode, &str)] = &[
        (ErrorCode::ValidationFailed, "the catalogue is not valid, or the time is too soon"),
        (ErrorCode::Conflict, "the same catalogue is in force then, or another one takes effect then"),
    ];
    type By = Action;
    type Parameters = ();
    type Body = ApplyCatalogueRequest;
    type Reply = PriceVersionDocument;

    async fn run(
        admin: &Administration,
        by: &Action,
        (): (),
        wanted: ApplyCatalogueRequest,
    ) -> Result<PriceVersionDocument, AdminError> {
        let at = wanted.at.as_deref().map(str::parse::<Timestamp>).transpose();
        let at = at.map_err(|error| wrong("at", error))?;
        admin.apply_catalogue(by, &wanted.catalogue, at).await
    }
}

/// Cancel a price version that has not taken effect.
#[derive(Debug)]
pub struct CancelCatalogue;

impl Call for CancelCatalogue {
    const ID: &str = "cancel";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/catalogue/versions/{number}/cancel";
    const TAG: &str = "catalogue";
    const SUMMARY: &str = "Cancel a price version that has not taken effect";
    const AUDIT: Option<Audit> = Some(Audit { name: "catalogue.cancel", label: "Cancelled a price version" });
    const SUCCESS: (u16, &str) = (200, "The cancelled version");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND, (ErrorCode::Conflict, "it has taken effect")];
    type By = Action;
    type Parameters = OfVersion;
    type Body = ReasonRequest;
    type Reply = PriceVersionDocument;

    async fn run(
        admin: &Administration,
        by: &Action,
        version: OfVersion,
        _body: ReasonRequest,
    ) -> Result<PriceVersionDocument, AdminError> {
        admin.cancel_catalogue(by, version.number).await
    }
}
