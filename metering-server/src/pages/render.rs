//! Renders all pages once, at startup.
//!
//! Templates use minijinja, which escapes inserted values by default, supports template inheritance, fails on undefined
//! names, and has no further dependencies.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use metering_core::Catalogue;
use metering_core::access::Email;
use metering_core::events::EventKind;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
use rust_embed::RustEmbed;
use serde::Serialize;
use url::Url;

use crate::config::{BotCheckKind, Config};
use crate::http::Document;
use crate::mail::{RECOVER_PAGE, VERIFY_PAGE};
use crate::pages::approval::{ApprovalPages, REASON};
use crate::pages::assets::Assets;
use crate::pages::example::Example;
use crate::pages::guides::{self, GUIDES_PAGE};
use crate::pages::headers::{Elsewhere, content_security_policy};
use crate::pages::page::{HTML, Page};
use crate::pages::prices::PriceTable;
use crate::pages::variables::Variables;
use crate::pages::{Pages, PagesError, terms};

/// The embedded files of the pages.
#[derive(RustEmbed)]
#[folder = "assets/pages"]
struct Files;

/// The folder of the templates. Files in all other folders are assets, named without their folder.
const TEMPLATES: &str = "templates/";
/// Templates that are rendered to assets because they contain the accent colour.
const RENDERED_ASSETS: [&str; 2] = ["theme.css", "icon.svg"];
/// Where a payer confirms whose payment it is.
pub(crate) const COMPLETE_PAGE: &str = "/metering/complete";
/// The URL of Turnstile's script. Cloudflare requires it to be loaded from there.
const TURNSTILE: &str = "https://challenges.cloudflare.com/turnstile/v0/api.js?render=explicit";

/// The values that templates use.
#[derive(Debug, Serialize)]
struct Site {
    name: String,
    logo: String,
    headline: String,
    tagline: String,
    free_credits: String,
    /// What the free credits buy, in words.
    free_buys: String,
    prices: PriceTable,
    /// Whether the service sends mail.
    mail: bool,
    /// Whom to write to, where the service cannot help itself; may be empty.
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
    /// The URL of the metered routes if the pages have a separate origin; otherwise empty.
    api_url: String,
}

impl Site {
    fn new(config: &Config, catalogue: &Catalogue, example: &Example) -> Self {
        let terms_version = config.terms.version.clone();
        let own_terms = own_terms_path(config);
        let contact = config.operator.contact.as_ref().map_or("", |contact| contact.as_str());
        Self {
            name: config.brand.name.as_str().to_owned(),
            logo: config.brand.logo().to_owned(),
            headline: config.brand.headline.as_str().to_owned(),
            tagline: config.brand.tagline.as_str().to_owned(),
            free_credits: config.signup.free_credits.credits().to_string(),
            free_buys: catalogue.buys(config.signup.free_credits.credits()).join(" or "),
            prices: PriceTable::new(catalogue),
            mail: config.smtp.is_some(),
            contact: contact.to_owned(),
            contact_url: contact_url(contact),
            verify_email: config.verifies_email(),
            challenge: config.signup.bot_check,
            site_key: config.signup.turnstile.site_key.clone(),
            terms_url: config.terms.url.clone().unwrap_or(own_terms),
            terms_version,
            sample_path: example.path.clone(),
            api_url: api_url(config),
        }
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

fn own_terms_path(config: &Config) -> String {
    format!("/agents-tos/{}", config.terms.version)
}

fn api_url(config: &Config) -> String {
    match (&config.pages_url, &config.public_url) {
        (Some(_), Some(public_url)) => public_url.trim_end_matches('/').to_owned(),
        _ => String::new(),
    }
}

/// Free credits in words.
fn free_credits(credits: &str) -> String {
    match credits {
        "0" => "no free credits".to_owned(),
        "1" => "1 free credit".to_owned(),
        _ => format!("{credits} free credits"),
    }
}

/// What guides can name: `{{ brand }}` and so on.
fn variables(site: &Site, base_url: &str, example: &Example) -> Variables {
    Variables::new([
        ("brand", site.name.clone()),
        ("base_url", base_url.to_owned()),
        ("free_credits", free_credits(&site.free_credits)),
        ("example_route", example.path.clone()),
        ("example_price", example.price.clone()),
    ])
}

impl Pages {
    /// The pages of a service with this configuration. `base_url` is where clients reach it, without a trailing slash.
    ///
    /// # Errors
    /// When the operator's terms or pages cannot be read, or the embedded files are inconsistent.
    pub(crate) fn new(config: &Config, catalogue: &Catalogue, base_url: &str) -> Result<Self, PagesError> {
        let example = Example::of(catalogue);
        let site = Site::new(config, catalogue, &example);
        let shown = guides::all(config, &variables(&site, base_url, &example))?;
        let guide_list = Value::from(Serde(&shown));
        let rendered_assets = rendered_assets(config);
        let icon = Document::new("image/svg+xml", rendered_assets["icon.svg"].clone());
        let assets = Arc::new(Assets::new(files(rendered_assets))?);
        let environment = environment(&assets)?;
        let guest = match config.signup.bot_check {
            BotCheckKind::Turnstile => Url::parse(TURNSTILE).ok(),
            BotCheckKind::Altcha | BotCheckKind::Off => None,
        };
        let api = Url::parse(&site.api_url).ok();
        let page = |template: &str, elsewhere: Elsewhere<'_>, content: Value| -> Result<Page, PagesError> {
            let guest_url = elsewhere.guest.map(|url| Value::from_safe_string(url.to_string()));
            let (here, site) = (template.trim_end_matches(".html"), Value::from(Serde(&site)));
            let context =
                context! { site, here, guest => guest_url, guides => guide_list.clone(), content, reason => REASON };
            let html = environment.get_template(template)?.render(context)?;
            Ok(Page { html: Document::new(HTML, html), policy: content_security_policy(elsewhere) })
        };
        let nothing = Elsewhere::default();
        let challenged = Elsewhere { guest: guest.as_ref(), ..nothing };
        let plain = |template: &str| page(template, nothing, Value::UNDEFINED);
        let mut by_path = HashMap::from([
            ("/metering".to_owned(), page("metering.html", challenged, Value::UNDEFINED)?),
            ("/verify".to_owned(), page("verify.html", challenged, Value::UNDEFINED)?),
            ("/metering/account".to_owned(), plain("account.html")?),
            ("/metering/receipt".to_owned(), plain("receipt.html")?),
            (COMPLETE_PAGE.to_owned(), plain("complete.html")?),
            ("/docs".to_owned(), page("docs.html", Elsewhere { api: api.as_ref(), ..nothing }, Value::UNDEFINED)?),
            ("/docs/mcp".to_owned(), plain("mcp.html")?),
            (GUIDES_PAGE.to_owned(), plain("guides.html")?),
        ]);
        if config.smtp.is_some() {
            by_path.insert(VERIFY_PAGE.to_owned(), plain("verify-email.html")?);
            by_path.insert(RECOVER_PAGE.to_owned(), plain("recover.html")?);
        }
        if let Some(text) = terms_text(config)? {
            by_path.insert(own_terms_path(config), page("terms.html", nothing, Value::from(text))?);
        }
        for (place, guide) in shown.iter().enumerate() {
            let next = shown.get(place + 1).map(|next| Value::from(Serde(next)));
            let content = context! { guide => Value::from(Serde(guide)), next };
            by_path.insert(format!("{GUIDES_PAGE}/{}", guide.name), page("guide.html", nothing, content)?);
        }
        let (not_found, console) = (plain("not_found.html")?, plain("console.html")?);
        let approval = ApprovalPages::new(plain("approved.html")?, plain("not_approved.html")?);
        drop(environment);
        let assets = Arc::into_inner(assets).expect("only the templates shared it");
        Ok(Self { by_path, console, not_found, approval, assets, icon })
    }
}

/// The terms as HTML, if this service serves them itself.
fn terms_text(config: &Config) -> Result<Option<String>, PagesError> {
    match &config.terms.file {
        Some(file) => {
            let text = terms::read(file).map_err(|cause| PagesError::Terms { file: file.clone(), cause })?;
            Ok(Some(text))
        }
        None if config.terms.url.is_some() => Ok(None),
        None => Ok(Some(terms::default(config.brand.name.as_str()))),
    }
}

/// The assets that are not files: those that contain the accent colour, and the kinds of events.
fn rendered_assets(config: &Config) -> BTreeMap<String, Vec<u8>> {
    let accent = config.brand.accent.to_string();
    let draw = |name: &str| text(&format!("{TEMPLATES}{name}")).replace("{{ accent }}", &accent).into_bytes();
    let drawn = RENDERED_ASSETS.into_iter().map(|name| (name.to_owned(), draw(name)));
    drawn.chain([("eventkinds.js".to_owned(), event_kinds().into_bytes())]).collect()
}

/// A script with the names and descriptions of the events that webhooks can ask for.
fn event_kinds() -> String {
    let kinds = EventKind::ALL.map(|kind| [kind.as_str(), kind.description()]);
    format!("export const KINDS = {};\n", serde_json::json!(kinds))
}

/// The embedded assets, and those in `rendered_assets`.
fn files(rendered_assets: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let mut files = rendered_assets;
    for path in Files::iter().filter(|path| path.contains('/') && !path.starts_with(TEMPLATES)) {
        let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
        let content = Files::get(&path).map(|file| file.data.into_owned()).unwrap_or_default();
        if [".css", ".js", ".svg", ".txt"].iter().any(|extension| name.ends_with(extension)) {
            files.insert(name, content);
        }
    }
    files
}

fn text(path: &str) -> String {
    let content = Files::get(path).map(|file| file.data.into_owned()).unwrap_or_default();
    String::from_utf8_lossy(&content).into_owned()
}

fn environment(assets: &Arc<Assets>) -> Result<Environment<'static>, PagesError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    for path in Files::iter().filter(|path| path.starts_with(TEMPLATES) && path.ends_with(".html")) {
        let name = path.trim_start_matches(TEMPLATES).to_owned();
        // Resolve references before inserting values: text from the operator must not be taken for a reference.
        let source = assets.resolve(&text(&path), &name)?;
        environment.add_template_owned(name, source)?;
    }
    let shared = Arc::clone(assets);
    environment.add_function("imports", move |name: String| -> Vec<Value> {
        shared.imports(&name).into_iter().map(|path| Value::from_safe_string(path.to_owned())).collect()
    });
    Ok(environment)
}
