//! Price versions: lists them, applies a catalogue on all nodes, and cancels one that has not taken effect.

use metering_core::Timestamp;
use metering_core::parameters;
use metering_core::prices::PriceNumber;

use super::register::register;
use crate::action::Action;
use crate::call::{Viewer, call};
use crate::error::wrong;
use crate::wire::{ApplyCatalogueRequest, PriceVersionDocument, PriceVersionsDocument, ReasonRequest};

register!(ListVersions, ShowVersion, ApplyCatalogue, CancelCatalogue);

parameters! {
    /// A price version.
    OfVersion {
        /// The version's number
        number: PriceNumber,
    }
}

call! {
    /// The catalogues that were, are or will be in force
    ListVersions("versions") = GET "/admin/catalogue/versions" in "catalogue";
    returns(200, "Price versions, newest first");
    async fn run(admin, _by: Viewer, _none: (), _body: ()) -> PriceVersionsDocument {
        admin.price_versions().await
    }
}

call! {
    /// The catalogue of a price version
    ShowVersion("catalogue") = GET "/admin/catalogue/versions/{number}" in "catalogue";
    returns(200, "The catalogue file, as a JSON string") or(NotFound);
    async fn run(admin, _by: Viewer, version: OfVersion, _body: ()) -> String {
        Ok(admin.price_catalogue(version.number).await?.to_string())
    }
}

call! {
    /// Have all nodes serve a catalogue from a time on
    ///
    /// From then on, nodes no longer take the file that their configuration names.
    ApplyCatalogue("apply") = POST "/admin/catalogue/apply" in "catalogue";
    audit("catalogue.apply", "Applied a catalogue");
    returns(200, "The price version")
        or(ValidationFailed: "the catalogue is not valid, or the time is too soon", Conflict: "the same catalogue is in force then, or another one takes effect then");
    async fn run(admin, by: Action, _none: (), wanted: ApplyCatalogueRequest) -> PriceVersionDocument {
        let at = wanted.at.as_deref().map(str::parse::<Timestamp>).transpose();
        let at = at.map_err(|error| wrong("at", error))?;
        admin.apply_catalogue(by, &wanted.catalogue, at).await
    }
}

call! {
    /// Cancel a price version that has not taken effect
    CancelCatalogue("cancel") = POST "/admin/catalogue/versions/{number}/cancel" in "catalogue";
    audit("catalogue.cancel", "Cancelled a price version");
    returns(200, "The cancelled version") or(NotFound, Conflict: "it has taken effect");
    async fn run(admin, by: Action, version: OfVersion, _body: ReasonRequest) -> PriceVersionDocument {
        admin.cancel_catalogue(by, version.number).await
    }
}
