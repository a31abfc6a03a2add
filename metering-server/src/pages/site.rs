//! The service's data for templates.

use metering_core::Catalogue;
use metering_core::access::Email;
use metering_core::service::UsedRoutes;
use serde::Serialize;
use url::Url;

use crate::config::{BotCheckKind, Config, Mark, MarkKind};
use crate::pages::asset_error::AssetError;
use crate::pages::assets::AssetBuilder;
use crate::pages::example::Example;
use crate::pages::prices::PriceTable;
use crate::pages::variables::Variables;

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
    /// The value of the free credits, in words.
    free_buys: String,
    prices: PriceTable,
    /// Whether the service sends mail.
    mail: bool,
    /// Whether accounts may have child accounts.
    child_accounts: bool,
    /// Whether the service logs postings, so that there are statements.
    statements: bool,
    /// Whether requests can have signed receipts.
    signs_receipts: bool,
    /// The contact for problems that users cannot solve themselves; may be empty.
    contact: String,
    /// A link for that; empty if there is none.
    contact_url: String,
    /// Whether new accounts must verify their email address.
    verify_email: bool,
    /// `altcha`, `turnstile` or `off`.
    challenge: BotCheckKind,
    site_key: String,
    terms_url: String,
    terms_version: String,
    /// A path that can be called without parameters, for examples.
    sample_path: String,
    /// Its URL, the price of a call in words, and an example of its response; empty if there is none to show.
    sample_url: String,
    sample_price: String,
    sample_response: String,
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
        (catalogue, used): (&Catalogue, &UsedRoutes),
        (example, base_url): (&Example, &str),
        mark: Option<&Mark>,
        assets: &mut AssetBuilder,
    ) -> Result<Self, AssetError> {
        let origin = origin(config);
        let icon = assets.path(mark.map_or(ICON, file_name), "the layout")?;
        let is_png = mark.is_some_and(|mark| mark.kind() == MarkKind::Png);
        let has_image = is_png && !origin.is_empty();
        let free_credits = config.signup.free_credits.credits();
        let contact = config.operator.contact.as_ref().map_or("", |contact| contact.as_str());
        Ok(Self {
            name: config.brand.name.as_str().to_owned(),
            logo: config.brand.logo().to_owned(),
            mark: if mark.is_some() { icon.clone() } else { String::new() },
            icon_type: content_type(mark),
            headline: config.brand.headline.as_str().to_owned(),
            tagline: config.brand.tagline.as_str().to_owned(),
            free_credits: free_credits.to_string(),
            free_buys: catalogue.buys(free_credits, &used.of(catalogue)).join(" or "),
            prices: PriceTable::new(catalogue),
            mail: config.smtp.is_some(),
            child_accounts: config.limits.max_child_accounts > 0,
            statements: config.receipts.key_file.is_some() && config.log.key_file.is_some(),
            signs_receipts: config.receipts.key_file.is_some(),
            contact: contact.to_owned(),
            contact_url: contact_url(contact),
            verify_email: config.verifies_email(),
            challenge: config.signup.bot_check,
            site_key: config.signup.turnstile.site_key.clone(),
            terms_url: config.terms.url.clone().unwrap_or_else(|| own_terms_path(config)),
            terms_version: config.terms.version.clone(),
            sample_path: example.path.clone(),
            sample_url: format!("{base_url}{}", example.path),
            sample_price: example.price.clone(),
            sample_response: example.response.clone(),
            api_url: api_url(config),
            image_url: if has_image { format!("{origin}{icon}") } else { String::new() },
            origin,
            icon,
        })
    }

    /// The variables for guides: `{{ brand }}` and so on.
    pub(super) fn variables(&self, base_url: &str, example: &Example) -> Variables {
        Variables::new([
            ("brand", self.name.clone()),
            ("base_url", base_url.to_owned()),
            ("free_credits", in_words(&self.free_credits)),
            ("example_route", example.path.clone()),
            ("example_price", example.price.clone()),
        ])
    }
}

/// Free credits in words.
fn in_words(credits: &str) -> String {
    match credits {
        "0" => "no free credits".to_owned(),
        "1" => "1 free credit".to_owned(),
        _ => format!("{credits} free credits"),
    }
}

/// The link for a contact, which is an email address or a URL.
fn contact_url(contact: &str) -> String {
    let is_url = ["https://", "http://"].iter().any(|scheme| contact.starts_with(scheme));
    match contact {
        url if is_url => url.to_owned(),
        email if email.parse::<Email>().is_ok() => format!("mailto:{email}"),
        _ => String::new(),
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

/// The pages are at the root of their origin. Empty if the configuration names none.
pub(super) fn origin(config: &Config) -> String {
    let url = config.pages_url.as_ref().or(config.public_url.as_ref()).and_then(|url| Url::parse(url).ok());
    url.map(|url| url.origin().ascii_serialization()).unwrap_or_default()
}
