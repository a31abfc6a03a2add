//! The search for anything that an operator has the id of.

use metering_core::parameters;
use metering_core::store::Cursor;

use super::register::register;
use crate::call::{Viewer, call};
use crate::wire::SearchDocument;

register!(Search);

parameters! {
    /// The text to search for.
    Searched {
        /// An id, an email address, a wallet, the start of an agent's name, a transaction's hash, a receipt's number or PROCESSOR:ID
        q: String,
        /// Where to continue a search for a name
        after: Option<Cursor>,
    }
}

call! {
    /// Find an account, key, payment or request
    ///
    /// The form of the text decides what is searched, and each is found by an index. The secret of a key is refused: send
    /// its id. A name is searched among a limited number of accounts, newest first; if `next` is not null, send it as
    /// `after`.
    Search("search") = GET "/admin/search" in "search";
    returns(200, "What was found");
    async fn run(admin, _by: Viewer, wanted: Searched, _body: ()) -> SearchDocument {
        admin.search(&wanted.q, wanted.after.as_ref()).await
    }
}
