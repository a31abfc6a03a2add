//! What templates know of the service.

use metering_core::Catalogue;
use metering_core::catalogue::ParamLocation;
use serde::Serialize;
use url::Url;

use crate::config::{BotCheckKind, Config, Mark, MarkKind};
use crate::pages::asset_error::AssetError;
use crate::pages::assets::AssetBuilder;

/// The built-in mark, in the operator's colour.
pub(super) const ICON: &str = "icon.svg";

/// The values that templates use.
#[derive(Debug, Serialize)]
pub(super) struct Site {
    name: String,
    logo: String,
    /// The path of the operator's mark, or empty.
    mark: String,
    /// The path of the icon, and its type.
    icon: String,
    icon_type: &'static str,
    headline: String,
    tagline: String,
    free_credits: String,
    /// Whether the service sends mail.
    mail: bool,
    /// Whether new accounts must verify their email address.
    verify_email: bool,
    /// `altcha`, `turnstile` or `off`.
    challenge: BotCheckKind,
    site_key: String,
    terms_url: String,
    terms_version: String,
    /// A path that can be called without parameters, for examples.
    sample_path: String,
    /// The URL of the metered routes if the pages have a separate origin; otherwise empty.
    pub(super) api_url: String,
    /// The origin of the pages, if it is configured; otherwise empty.
    origin: String,
    /// The URL of an image for previews of links, or empty: readers of Open Graph tags take no SVG, and no path.
    image_url: String,
}

impl Site {
    pub(super) fn new(
        config: &Config,
        catalogue: &Catalogue,
        mark: Option<&Mark>,
        assets: &mut AssetBuilder,
    ) -> Result<Self, AssetError> {
        let origin = origin(config);
        let icon = assets.path(mark.map_or(ICON, file_name), "the layout")?;
        let is_png = mark.is_some_and(|mark| mark.kind() == MarkKind::Png);
        let has_image = is_png && !origin.is_empty();
        Ok(Self {
            name: config.brand.name.as_str().to_owned(),
            logo: config.brand.logo().to_owned(),
            mark: if mark.is_some() { icon.clone() } else { String::new() },
            icon_type: content_type(mark),
            headline: config.brand.headline.as_str().to_owned(),
            tagline: config.brand.tagline.as_str().to_owned(),
            free_credits: config.signup.free_credits.credits().to_string(),
            mail: config.smtp.is_some(),
            verify_email: config.verifies_email(),
            challenge: config.signup.bot_check,
            site_key: config.signup.turnstile.site_key.clone(),
            terms_url: config.terms.url.clone().unwrap_or_else(|| own_terms_path(config)),
            terms_version: config.terms.version.clone(),
            sample_path: sample_path(catalogue),
            api_url: api_url(config),
            image_url: if has_image { format!("{origin}{icon}") } else { String::new() },
            origin,
            icon,
        })
    }
}

/// The name of the operator's mark among the assets.
pub(super) const fn file_name(mark: &Mark) -> &'static str {
    match mark.kind() {
        MarkKind::Svg => "mark.svg",
        MarkKind::Png => "mark.png",
    }
}

/// The type of the icon.
pub(super) fn content_type(mark: Option<&Mark>) -> &'static str {
    match mark.map(Mark::kind) {
        Some(MarkKind::Png) => "image/png",
        Some(MarkKind::Svg) | None => "image/svg+xml",
    }
}

/// Where a service serves its own terms.
pub(super) fn own_terms_path(config: &Config) -> String {
    format!("/agents-tos/{}", config.terms.version)
}

fn api_url(config: &Config) -> String {
    match (&config.pages_url, &config.public_url) {
        (Some(_), Some(public_url)) => public_url.trim_end_matches('/').to_owned(),
        _ => String::new(),
    }
}

/// The pages are at the root of their origin.
fn origin(config: &Config) -> String {
    let url = config.pages_url.as_ref().or(config.public_url.as_ref()).and_then(|url| Url::parse(url).ok());
    url.map(|url| url.origin().ascii_serialization()).unwrap_or_default()
}

/// The first metered route that can be called without parameters, or else the balance.
fn sample_path(catalogue: &Catalogue) -> String {
    let callable = catalogue.routes().iter().find(|route| {
        let plain = route.params.iter().all(|param| !param.required && param.location != ParamLocation::Path);
        route.metered && !route.sse && !route.websocket && &*route.method == "GET" && plain
    });
    callable.map_or_else(|| "/credits/balance".to_owned(), |route| route.template.to_string())
}
