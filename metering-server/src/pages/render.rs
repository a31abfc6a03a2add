//! Renders all pages once, at startup.
//!
//! Templates use minijinja, which escapes inserted values by default, supports template inheritance, fails on undefined
//! names, and has no further dependencies.

use std::collections::{BTreeMap, HashMap};

use metering_core::Catalogue;
use metering_core::events::EventKind;
use metering_core::service::UsedRoutes;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
use rust_embed::RustEmbed;
use url::Url;

use crate::config::{BotCheckKind, Config, Mark};
use crate::http::Document;
use crate::mail::{RECOVER_PAGE, VERIFY_PAGE};
use crate::pages::approval::{ApprovalPages, REASON};
use crate::pages::assets::AssetBuilder;
use crate::pages::example::Example;
use crate::pages::guides::{self, GUIDES_PAGE};
use crate::pages::headers::{Elsewhere, content_security_policy};
use crate::pages::page::{HTML, Page};
use crate::pages::site::{ICON, Site, content_type, file_name, own_terms_path};
use crate::pages::{CONSENT_PAGE, Pages, PagesError, RECEIPT_PAGE, head, terms};

/// The embedded files of the pages.
#[derive(RustEmbed)]
#[folder = "assets/pages"]
struct Files;

/// The folder of the templates. Files in all other folders are assets, named without their folder.
const TEMPLATES: &str = "templates/";
/// Templates that are rendered to assets because they contain the accent colour.
const RENDERED_ASSETS: [&str; 2] = ["theme.css", ICON];
/// Where a payer confirms whose payment it is.
pub(crate) const COMPLETE_PAGE: &str = "/metering/complete";
/// The URL of Turnstile's script. Cloudflare requires it to be loaded from there.
const TURNSTILE: &str = "https://challenges.cloudflare.com/turnstile/v0/api.js?render=explicit";

impl Pages {
    /// The pages of a service with this configuration. `used` are the routes that customers use most, and `base_url` is
    /// where clients reach the service, without a trailing slash.
    ///
    /// # Errors
    /// When the operator's terms, pages or mark cannot be read, or the embedded files are inconsistent.
    pub(crate) fn new(
        config: &Config,
        catalogue: &Catalogue,
        used: &UsedRoutes,
        base_url: &str,
    ) -> Result<Self, PagesError> {
        let mark = config.brand.mark.as_deref().map(Mark::read).transpose()?;
        let rendered_assets = rendered_assets(config, mark.as_ref());
        let icon = rendered_assets[mark.as_ref().map_or(ICON, file_name)].clone();
        let icon = Document::new(content_type(mark.as_ref()), icon);
        let mut assets = AssetBuilder::new(files(rendered_assets))?;
        let example = Example::of(catalogue);
        let site = Site::new(config, (catalogue, used), (&example, base_url), mark.as_ref(), &mut assets)?;
        let shown = guides::all(config, &site.variables(base_url, &example))?;
        let guide_list = Value::from(Serde(&shown));
        let environment = environment(&mut assets)?;
        let guest = match config.signup.bot_check {
            BotCheckKind::Turnstile => Url::parse(TURNSTILE).ok(),
            BotCheckKind::Altcha | BotCheckKind::Off => None,
        };
        let api = Url::parse(&site.api_url).ok();
        // `path` is empty for pages without a URL.
        let mut page =
            |path: &str, template: &str, elsewhere: Elsewhere<'_>, content: Value| -> Result<Page, PagesError> {
                let guest_url = elsewhere.guest.map(|url| Value::from_safe_string(url.to_string()));
                let (here, site) = (template.trim_end_matches(".html"), Value::from(Serde(&site)));
                let guides = guide_list.clone();
                let context = context! { site, here, path, guest => guest_url, guides, content, reason => REASON };
                let html = environment.get_template(template)?.render(context)?;
                let html = head::with_joined(&html, &mut assets)?;
                Ok(Page { html: Document::new(HTML, html), policy: content_security_policy(elsewhere) })
            };
        let nothing = Elsewhere::default();
        let challenged = Elsewhere { guest: guest.as_ref(), ..nothing };
        let reference = Elsewhere { api: api.as_ref(), ..nothing };
        let mut plain = vec![
            ("/metering", "metering.html", challenged),
            ("/verify", "verify.html", challenged),
            ("/metering/account", "account.html", nothing),
            (RECOVER_PAGE, "recover.html", nothing),
            ("/metering/receipt", "receipt.html", nothing),
            ("/metering/statement", "statement.html", nothing),
            (COMPLETE_PAGE, "complete.html", nothing),
            (RECEIPT_PAGE, "verify-receipt.html", nothing),
            ("/docs", "docs.html", reference),
            ("/docs/mcp", "mcp.html", nothing),
            (GUIDES_PAGE, "guides.html", nothing),
        ];
        if config.oauth.is_on(config) {
            plain.push((CONSENT_PAGE, "consent.html", nothing));
        }
        if config.smtp.is_some() {
            plain.push((VERIFY_PAGE, "verify-email.html", nothing));
        }
        let mut by_path = HashMap::new();
        for (path, template, elsewhere) in plain {
            by_path.insert(path.to_owned(), page(path, template, elsewhere, Value::UNDEFINED)?);
        }
        if let Some(text) = terms_text(config)? {
            let path = own_terms_path(config);
            let terms = page(&path, "terms.html", nothing, Value::from(text))?;
            by_path.insert(path, terms);
        }
        for (place, guide) in shown.iter().enumerate() {
            let next = shown.get(place + 1).map(|next| Value::from(Serde(next)));
            let content = context! { guide => Value::from(Serde(guide)), next };
            let path = format!("{GUIDES_PAGE}/{}", guide.name);
            let guide = page(&path, "guide.html", nothing, content)?;
            by_path.insert(path, guide);
        }
        let mut unlisted = |template: &str| page("", template, nothing, Value::UNDEFINED);
        let (not_found, console) = (unlisted("not_found.html")?, unlisted("console.html")?);
        let approval = ApprovalPages::new(unlisted("approved.html")?, unlisted("not_approved.html")?);
        Ok(Self { by_path, console, not_found, approval, assets: assets.finish(), icon })
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

/// The assets that are not embedded: those that contain the accent colour, the kinds of events, and the operator's mark.
fn rendered_assets(config: &Config, mark: Option<&Mark>) -> BTreeMap<String, Vec<u8>> {
    let accent = config.brand.accent.to_string();
    let draw = |name: &str| text(&format!("{TEMPLATES}{name}")).replace("{{ accent }}", &accent).into_bytes();
    let drawn = RENDERED_ASSETS.into_iter().map(|name| (name.to_owned(), draw(name)));
    let mark = mark.map(|mark| (file_name(mark).to_owned(), mark.content().to_vec()));
    drawn.chain([("eventkinds.js".to_owned(), event_kinds().into_bytes())]).chain(mark).collect()
}

/// A script with the names and descriptions of the events that webhooks can subscribe to.
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
        if [".css", ".js", ".svg", ".txt", ".woff2"].iter().any(|extension| name.ends_with(extension)) {
            files.insert(name, content);
        }
    }
    files
}

fn text(path: &str) -> String {
    let content = Files::get(path).map(|file| file.data.into_owned()).unwrap_or_default();
    String::from_utf8_lossy(&content).into_owned()
}

fn environment(assets: &mut AssetBuilder) -> Result<Environment<'static>, PagesError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    for path in Files::iter().filter(|path| path.starts_with(TEMPLATES) && path.ends_with(".html")) {
        let name = path.trim_start_matches(TEMPLATES).to_owned();
        // Resolve references before inserting values: text from the operator must not be taken for a reference.
        let source = assets.resolve(&text(&path), &name)?;
        environment.add_template_owned(name, source)?;
    }
    Ok(environment)
}

/// Our own scripts with their names, unprocessed.
#[cfg(test)]
pub(super) fn scripts() -> Vec<(String, String)> {
    let ours = Files::iter().filter(|path| path.starts_with("scripts/"));
    ours.map(|path| (path.rsplit('/').next().unwrap_or_default().to_owned(), text(&path))).collect()
}
