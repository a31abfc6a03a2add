use std::sync::OnceLock;

use http::HeaderMap;
use metering_client::tools::{TOOL_PREFIX_HEADER, ToolPrefix, Toolbox};
use metering_core::{Catalogue, Service};
use metering_pay::SignedPayments;
use metering_pay::wire::x402::Manifest;

use crate::api::openapi::Description;
use crate::http::{Document, Reply, with_headers};

/// The documents that describe the service to programs. They depend on the operator's files and change only with a
/// reload, or when offers are made.
#[derive(Debug)]
pub(crate) struct Documents {
    description: Description,
    openapi: Document,
    catalogue: Document,
    tool_prefix: ToolPrefix,
    /// Whether the service has an MCP server, whose tools can be paid for.
    has_tools: bool,
    selling: OnceLock<Option<Selling>>,
}

/// The documents of a service that offers payments with requests.
#[derive(Debug)]
struct Selling {
    openapi: Document,
    manifest: Document,
}

impl Documents {
    /// # Errors
    /// When the description cannot be written as JSON.
    pub(crate) fn new(
        description: Description,
        catalogue: &Catalogue,
        (tool_prefix, has_tools): (&ToolPrefix, bool),
    ) -> serde_json::Result<Self> {
        let openapi = Document::new("application/json", description.to_json(catalogue)?);
        let catalogue = Document::new("application/json", catalogue.json().to_owned());
        let (tool_prefix, selling) = (tool_prefix.clone(), OnceLock::new());
        Ok(Self { description, openapi, catalogue, tool_prefix, has_tools, selling })
    }

    /// The documents of a service that offers payments, once it does: its tokens may be read only after the start.
    fn selling(&self, service: &Service, payments: &SignedPayments) -> Option<&Selling> {
        if self.selling.get().is_none() && payments.offers().is_empty() {
            return None;
        }
        let make = || {
            let manifest = serde_json::to_string(&self.manifest_of(service, payments)?);
            let openapi = self.description.with_offers(service.catalogue(), payments);
            let texts = openapi.and_then(|openapi| Ok([openapi, manifest?]));
            let [openapi, manifest] = texts
                .map_err(|error| tracing::error!(%error, "could not describe the offers as JSON"))
                .ok()?
                .map(|text| Document::new("application/json", text));
            Some(Selling { openapi, manifest })
        };
        self.selling.get_or_init(make).as_ref()
    }

    fn manifest_of(&self, service: &Service, payments: &SignedPayments) -> Option<Manifest> {
        let manifest = payments.manifest(service)?;
        let tools = Toolbox::with_prefix(service.catalogue(), self.tool_prefix.clone()).ok().filter(|_| self.has_tools);
        Some(match tools {
            Some(tools) => {
                manifest.with_tools(tools.priced(), payments.offers(), &format!("{}/mcp", service.public_url()))
            }
            None => manifest,
        })
    }

    /// The service's offers, for a request with these headers; `None` while it offers nothing.
    pub(crate) fn manifest(&self, service: &Service, payments: &SignedPayments, headers: &HeaderMap) -> Option<Reply> {
        let manifest = &self.selling(service, payments)?.manifest;
        Some(with_headers(manifest.reply(headers), vec![("cache-control", "public, max-age=60".to_owned())]))
    }

    /// The catalogue, for a request with these headers.
    pub(crate) fn catalogue(&self, headers: &HeaderMap) -> Reply {
        let with = [("cache-control", "public, max-age=60"), (TOOL_PREFIX_HEADER, self.tool_prefix.as_str())];
        with_headers(self.catalogue.reply(headers), with.map(|(name, value)| (name, value.to_owned())).to_vec())
    }

    /// The OpenAPI document, for a request with these headers. With a service, also what it offers.
    pub(crate) fn openapi(&self, seller: Option<(&Service, &SignedPayments)>, headers: &HeaderMap) -> Reply {
        let selling = seller.and_then(|(service, payments)| self.selling(service, payments));
        let document = selling.map_or(&self.openapi, |selling| &selling.openapi);
        // Caches may store it but must revalidate each time, which costs a 304.
        with_headers(document.reply(headers), vec![("cache-control", "public, no-cache".to_owned())])
    }
}
