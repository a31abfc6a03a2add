//! The browser pages. HTML, styles and scripts are embedded in the program and rendered at startup, so a request is
//! only a lookup.
//!
//! Scripts read the configuration from attributes of `<body>`, since the pages' content security policy forbids inline
//! scripts.

mod approval;
mod asset_error;
mod assets;
mod error_links;
mod example;
mod guides;
mod head;
mod headers;
mod joined;
mod markdown;
mod module;
mod origin;
mod page;
mod prices;
mod render;
mod script;
mod site;
mod sources;
mod stylesheet;
mod terms;
mod variables;

use std::collections::HashMap;
use std::path::PathBuf;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use crate::config::ConfigError;
use crate::http::{Document, Reply, bytes, with_headers};
pub(crate) use asset_error::AssetError;
use assets::Assets;
pub(crate) use error_links::ErrorLinks;
pub(crate) use origin::PagesOrigin;
use page::{HTML, Page, secured};
pub(crate) use render::COMPLETE_PAGE;

/// All paths with one of these first segments are pages.
pub(crate) const FOLDERS: [&str; 4] = ["metering", "assets", "agents-tos", "docs"];
/// Other paths that belong to the pages.
pub(crate) const PATHS: [&str; 4] = ["/", ICON, CONSENT_PAGE, RECEIPT_PAGE];
/// Both a page and the target of its form, so POST is left to the API.
pub(crate) const SHARED_PATHS: [&str; 2] = [SHARED, SHARED_WITH_SLASH];
const ICON: &str = "/favicon.ico";
/// Where clients of OAuth send their owners' browsers.
const CONSENT_PAGE: &str = "/oauth/authorize";
/// Where anyone verifies the receipt of a request.
const RECEIPT_PAGE: &str = "/verify-receipt";
const SHARED: &str = "/verify";
/// The same page with a trailing slash. It is served directly, because a redirect would lose the code in the query.
const SHARED_WITH_SLASH: &str = "/verify/";
/// The console, on the admin address.
const CONSOLE: &str = "/console";
const CONSOLE_WITH_SLASH: &str = "/console/";
const SVG: &str = "image/svg+xml";
const CACHE_FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const CACHE_ONE_HOUR: HeaderValue = HeaderValue::from_static("public, max-age=3600");
/// For SVG, which could have scripts if it was opened as a page: the operator's mark is any file of theirs.
const SVG_POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");

/// All pages of a service, rendered and ready to send.
#[derive(Debug)]
pub(crate) struct Pages {
    by_path: HashMap<String, Page>,
    /// The operators' console, which is served on the admin address only.
    console: Page,
    not_found: Page,
    /// The response to a form that approves a signup.
    approval: approval::ApprovalPages,
    assets: Assets,
    icon: Document,
}

/// Why the pages cannot be built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PagesError {
    /// The embedded files are inconsistent.
    #[error(transparent)]
    Assets(#[from] AssetError),
    /// A template is invalid.
    #[error("cannot render a page: {0}")]
    Template(#[from] minijinja::Error),
    /// The mark cannot be used.
    #[error(transparent)]
    Mark(#[from] ConfigError),
    /// A page of the operator's cannot be shown.
    #[error(transparent)]
    Guide(#[from] guides::GuideError),
    /// The terms cannot be read.
    #[error("configuration key terms.file: {}: {cause}", file.display())]
    Terms {
        /// The file.
        file: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
}

impl Pages {
    /// The reply to a request for a path that belongs to the pages.
    pub(crate) fn respond(&self, method: &Method, path: &str, headers: &HeaderMap) -> Reply {
        if !matches!(*method, Method::GET | Method::HEAD) {
            let shared = SHARED_PATHS.contains(&path);
            let allowed: &[&str] = if shared { &["GET", "HEAD", "POST"] } else { &["GET", "HEAD"] };
            return crate::http::Problem::method_not_allowed(allowed).into_reply();
        }
        let reply = self.get(path, headers);
        if method == Method::HEAD { without_body(reply) } else { reply }
    }

    /// The reply to a request for the console or an asset on the admin address; `None` for other paths.
    pub(crate) fn console(&self, method: &Method, path: &str, headers: &HeaderMap) -> Option<Reply> {
        let is_asset = path.starts_with("/assets/") || path == ICON;
        if !is_asset && !matches!(path, "/" | CONSOLE | CONSOLE_WITH_SLASH) {
            return None;
        }
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Some(crate::http::Problem::method_not_allowed(&["GET", "HEAD"]).into_reply());
        }
        Some(match path {
            CONSOLE => self.console.reply(StatusCode::OK, headers),
            "/" | CONSOLE_WITH_SLASH => redirect(CONSOLE),
            _ => self.get(path, headers),
        })
    }

    /// The pages for the form that approves a signup.
    pub(crate) const fn approval(&self) -> &approval::ApprovalPages {
        &self.approval
    }

    /// The page for unknown paths.
    pub(crate) fn not_found(&self, headers: &HeaderMap) -> Reply {
        self.not_found.reply(StatusCode::NOT_FOUND, headers)
    }

    fn get(&self, path: &str, headers: &HeaderMap) -> Reply {
        if let Some(page) = self.by_path.get(path) {
            return page.reply(StatusCode::OK, headers);
        }
        if let Some(asset) = self.assets.get(path) {
            return cached(asset.reply(headers), CACHE_FOREVER);
        }
        match path {
            "/" => redirect("/metering"),
            ICON => cached(self.icon.reply(headers), CACHE_ONE_HOUR),
            SHARED_WITH_SLASH => self.get(SHARED, headers),
            // Tolerate a trailing slash.
            _ => match path.strip_suffix('/') {
                Some(page) if self.by_path.contains_key(page) => redirect(page),
                _ => self.not_found(headers),
            },
        }
    }
}

fn cached(reply: Reply, cache_control: HeaderValue) -> Reply {
    let mut reply = secured(reply);
    let headers = reply.headers_mut();
    headers.insert(header::CACHE_CONTROL, cache_control);
    if headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == SVG) {
        headers.insert(header::CONTENT_SECURITY_POLICY, SVG_POLICY);
    }
    reply
}

/// Redirects a browser to another URL.
pub(crate) fn redirect(to: &str) -> Reply {
    let reply = bytes(StatusCode::FOUND, HeaderValue::from_static(HTML), Bytes::new());
    with_headers(secured(reply), vec![("location", to.to_owned())])
}

/// Removes the body and keeps `Content-Length`: the reply to `HEAD`.
fn without_body(reply: Reply) -> Reply {
    let length = reply.body().len();
    let mut reply = reply.map(|_| Bytes::new());
    if reply.status() != StatusCode::NOT_MODIFIED {
        reply.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    reply
}

#[cfg(test)]
mod tests;
