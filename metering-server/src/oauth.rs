//! OAuth on the wire: who issues tokens, where clients find that out, and the documents that clients publish.

mod documents;
mod issuer;
mod metadata;

pub(crate) use documents::Documents;
pub(crate) use issuer::{Asking, Issuer, RESOURCE_METADATA};
pub(crate) use metadata::{ResourceMetadata, ServerMetadata, published};
