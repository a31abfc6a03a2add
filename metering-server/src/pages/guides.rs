//! The guides: ours, from the same Markdown as the repository, and the operator's own.

mod folder;

use serde::Serialize;

use crate::config::Config;
use crate::pages::markdown::{Heading, plain_link, render_titled};
use crate::pages::variables::Variables;
pub(super) use folder::GuideError;
use folder::{PageFile, is_name};

/// The list of guides. A guide's path is below this one.
pub(super) const GUIDES_PAGE: &str = "/docs/guides";
/// The section about errors of the operators' API: all others are about keys and charges, which operators do not have.
pub(super) const OPERATORS_SECTION: &str = "errors#requests-of-operators";
/// Our guides, in the order of the side bar.
const OWN: [(&str, &str); 8] = [
    ("quickstart", include_str!("../../../docs/guides/quickstart.md")),
    ("errors", include_str!("../../../docs/guides/errors.md")),
    ("rate-limits", include_str!("../../../docs/guides/rate-limits.md")),
    ("idempotency", include_str!("../../../docs/guides/idempotency.md")),
    ("webhooks", include_str!("../../../docs/guides/webhooks.md")),
    ("payments", include_str!("../../../docs/guides/payments.md")),
    ("keys", include_str!("../../../docs/guides/keys.md")),
    ("tokens", include_str!("../../../docs/guides/tokens.md")),
];

/// A guide as templates use it.
#[derive(Debug, Serialize)]
pub(super) struct Guide {
    /// The last part of its path.
    pub(super) name: String,
    pub(super) title: String,
    /// Its first paragraph, as text.
    summary: String,
    html: String,
    headings: Vec<Heading>,
}

/// All guides: ours, then the operator's, sorted by file name. An operator's page replaces one of ours with the same
/// name.
///
/// # Errors
/// When a page of the operator's cannot be read, or has no heading.
pub(super) fn all(config: &Config, variables: &Variables) -> Result<Vec<Guide>, GuideError> {
    let mut theirs = config.docs.pages.as_deref().map(folder::read).transpose()?.unwrap_or_default();
    let mut guides = Vec::with_capacity(OWN.len() + theirs.len());
    for (name, text) in OWN {
        guides.push(match theirs.iter().position(|page| page.name == name) {
            Some(place) => rendered(&theirs.remove(place), variables)?,
            None => guide(name, text, variables).expect("a test renders each of ours"),
        });
    }
    for page in &theirs {
        guides.push(rendered(page, variables)?);
    }
    Ok(guides)
}

fn rendered(page: &PageFile, variables: &Variables) -> Result<Guide, GuideError> {
    let no_title = || "has no heading; the first one is the title of the page".to_owned();
    guide(&page.name, &page.text, variables).ok_or_else(|| GuideError { file: page.file.clone(), problem: no_title() })
}

fn guide(name: &str, text: &str, variables: &Variables) -> Option<Guide> {
    let (title, rendered) = render_titled(text, variables, site_link)?;
    let name = name.to_owned();
    Some(Guide { name, title, summary: rendered.summary, html: rendered.html, headings: rendered.headings })
}

/// Where a link of a guide leads. In the repository, `errors.md#retry` is a file in the same folder; here it is a page.
fn site_link(url: &str) -> Option<String> {
    let (path, fragment) = url.find('#').map_or((url, ""), |place| url.split_at(place));
    match path.strip_suffix(".md").filter(|name| is_name(name)) {
        Some(name) => Some(format!("{GUIDES_PAGE}/{name}{fragment}")),
        None => plain_link(url),
    }
}

#[cfg(test)]
mod tests;
