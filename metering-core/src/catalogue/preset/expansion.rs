//! Writes the presets of a catalogue file out.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use super::data::Preset;
use super::listing;
use super::sold::ModelList;
use super::units::{Active, strings};
use crate::catalogue::json_tree::Tree;
use crate::catalogue::object::Object;
use crate::catalogue::problem::Problems;
use crate::shown_fields::shown_fields;

/// The key of the models that all routes of a file share.
const MODELS_KEY: &str = "models";
const SHARED: &str = "models";
const OWN: &str = "price.models";

/// Reads a file that a catalogue names, such as `models.json`.
pub type ModelFiles<'f> = dyn Fn(&str) -> Result<String, String> + 'f;

/// A catalogue file while its presets are written out.
pub(in crate::catalogue) struct Expansion<'f> {
    files: &'f ModelFiles<'f>,
    shared: Option<ModelList>,
    /// The text of each route so far.
    routes: Vec<String>,
    /// Whether some route has a preset.
    is_used: bool,
}

shown_fields!(Expansion<'_>: shared);

impl<'f> Expansion<'f> {
    /// Begins with the models that the file's routes share.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(in crate::catalogue) fn new(file: &Object<'_>, files: &'f ModelFiles<'f>) -> Result<Self, String> {
        let mut expansion = Self { files, shared: None, routes: Vec::new(), is_used: false };
        if let Some(models) = file.get::<&RawValue>(MODELS_KEY)?.filter(|models| models.get() != "null") {
            let models = expansion.models(Tree::parse(models.get(), SHARED)?, SHARED)?;
            expansion.shared = Some(ModelList { models, location: SHARED, is_shared: true });
        }
        Ok(expansion)
    }

    /// A route's text, with its preset written out.
    ///
    /// # Errors
    /// The problem with the keys that it has besides its preset.
    pub(in crate::catalogue) fn route<'j>(&mut self, endpoint: &'j RawValue) -> Result<Cow<'j, str>, Problems> {
        let text = match has_preset(endpoint.get()) {
            true => {
                self.is_used = true;
                Cow::Owned(self.expanded(endpoint.get())?.to_json())
            }
            false => Cow::Borrowed(endpoint.get()),
        };
        self.routes.push(text.clone().into_owned());
        Ok(text)
    }

    /// The text of the whole file, if there were presets in it.
    ///
    /// # Errors
    /// When models have no effect.
    pub(in crate::catalogue) fn finish(self, file: &Object<'_>) -> Result<Option<String>, String> {
        if !self.is_used {
            return match self.shared {
                Some(_) => Err(format!("{SHARED}: has no effect, because no route has a preset")),
                None => Ok(None),
            };
        }
        let members = file.members().filter(|(name, _)| *name != MODELS_KEY).map(|(name, value)| {
            let value = match name {
                "endpoints" => Cow::Owned(format!("[\n{}\n]", self.routes.join(",\n"))),
                _ => Cow::Borrowed(value.get()),
            };
            format!("{}:{value}", Value::from(name))
        });
        Ok(Some(format!("{{{}}}", members.collect::<Vec<_>>().join(","))))
    }

    fn expanded(&self, endpoint: &str) -> Result<Tree, Problems> {
        let mut route = Tree::parse(endpoint, "")?;
        let mut price = route.take("price").unwrap_or(Tree::Object(Vec::new()));
        let name = price.take("preset").and_then(|preset| preset.as_string());
        let name = name.ok_or_else(|| "price.preset: must be the name of a preset".to_owned())?;
        let preset = Preset::named(&name).map_err(|problem| format!("price.preset: {problem}"))?;
        let models = match price.take(MODELS_KEY) {
            Some(own) => Some(ModelList { models: self.models(own, OWN)?, location: OWN, is_shared: false }),
            None => self.shared.clone(),
        };
        let models = models.ok_or_else(|| {
            format!("{OWN} is missing: say which models are sold, here or for all routes in {SHARED} of the file")
        })?;
        let mut base = preset.route.clone();
        if let (true, Some((key, _))) = (preset.units.is_empty(), price.members().first()) {
            return Err(format!("price.{key}: has no effect, because requests to {name} are free").into());
        }
        let written = match &preset.of {
            None if preset.lists => {
                base.set("serve", listing::list(&models.models));
                Tree::of_str("0")
            }
            Some(of) => {
                let sold = models.sold_by(Preset::named(of)?)?;
                set_models(preset, &mut base, &sold, true);
                Tree::of_str("0")
            }
            None => {
                let sold = models.sold_by(preset)?;
                if sold.is_empty() {
                    return Err(format!("{}: no model has all prices that {name} needs", models.location).into());
                }
                set_models(preset, &mut base, &sold, false);
                written_price(preset, &mut base, sold, price)
            }
        };
        Ok(merged(route, base, written))
    }

    /// A list of models: inline, from a file, or a list of these, in which later ones override earlier ones.
    fn models(&self, models: Tree, location: &str) -> Result<Tree, String> {
        if let Some(name) = models.get("file").and_then(Tree::as_string) {
            let text = (self.files)(&name).map_err(|problem| format!("{location}.file: {name}: {problem}"))?;
            let mut file = Tree::parse(&text, &name).map_err(|problem| format!("{location}.file: {problem}"))?;
            let models = file.take(MODELS_KEY).filter(|models| matches!(models, Tree::Object(_)));
            return models.ok_or_else(|| format!("{location}.file: {name}: must have an object models"));
        }
        match models {
            Tree::Object(_) => Ok(models),
            Tree::Text(list) => {
                let parts: Vec<&RawValue> = serde_json::from_str(&list)
                    .map_err(|_| format!("{location}: must be an object, or a list of objects"))?;
                let mut all = Tree::Object(Vec::new());
                for part in parts {
                    all.merge(self.models(Tree::parse(part.get(), location)?, location)?);
                }
                Ok(all)
            }
        }
    }
}

/// Whether a route has a preset. Other problems are found later.
fn has_preset(endpoint: &str) -> bool {
    let price = Object::read(endpoint, "").and_then(|endpoint| endpoint.object("price"));
    price.is_ok_and(|price| price.is_some_and(|price| price.has("preset")))
}

/// Puts the models into the preset's description of requests: one in its example; all allowed ones, if requests are
/// free.
fn set_models(preset: &Preset, base: &mut Tree, sold: &[(String, Tree)], is_free: bool) {
    if preset.model.get("json").is_none() {
        return;
    }
    let Some(request) = base.get_mut("request") else { return };
    let exact: Vec<&str> = sold.iter().map(|(name, _)| name.as_str()).filter(|name| !name.ends_with('*')).collect();
    match exact.first() {
        Some(name) => {
            if let Some(Tree::Object(example)) = request.get_mut("example") {
                example.insert(0, ("model".to_owned(), Tree::of_str(name)));
            }
        }
        None => drop(request.take("example")),
    }
    let properties = request.get_mut("schema").and_then(|schema| schema.get_mut("properties"));
    if let Some(properties) = properties
        && is_free
        && exact.len() == sold.len()
    {
        properties.set("model", Tree::Object(vec![("enum".to_owned(), strings(exact))]));
    }
}

/// The price: the preset's, with the route's own keys.
fn written_price(preset: &Preset, base: &mut Tree, mut sold: Vec<(String, Tree)>, own: Tree) -> Tree {
    let active = Active::of(preset, &sold);
    for (_, model) in &mut sold {
        active.fill(model);
    }
    let mut price = Tree::Object(vec![
        ("model".to_owned(), preset.model.clone()),
        ("models".to_owned(), Tree::Object(sold)),
        ("report".to_owned(), active.report()),
    ]);
    let derived = [("tokens", active.tokens()), ("delivered", active.delivered()), ("estimate", active.estimate())];
    for (key, value) in derived {
        if let Some(value) = value {
            price.set(key, value);
        }
    }
    if let Some(more) = base.take("price") {
        price.merge(more);
    }
    price.merge(own);
    price
}

/// The route's own keys in their order, each merged into the preset's, and then the rest of the preset.
fn merged(route: Tree, mut base: Tree, price: Tree) -> Tree {
    let set = base.get("request").and_then(|request| request.get("set")).cloned();
    let mut members = Vec::new();
    let Tree::Object(own) = route else { return base };
    for (name, value) in own {
        let value = match base.take(&name) {
            Some(_) if value.is_null() => continue,
            Some(mut from_preset) => {
                from_preset.merge(value);
                from_preset
            }
            None => value,
        };
        members.push((name, value));
    }
    if let Tree::Object(rest) = base {
        members.extend(rest);
    }
    members.push(("price".to_owned(), price));
    let mut merged = Tree::Object(members);
    if let (Some(set), Some(request)) = (set, merged.get_mut("request")) {
        keep_rules(&set, request);
    }
    merged
}

/// Puts a preset's rules for values to set before those of the route. Without them, the upstream might not report.
fn keep_rules(of_preset: &Tree, request: &mut Tree) {
    let Some(own) = request.get("set").filter(|own| *own != of_preset).map(Tree::to_json) else { return };
    let rules = |json: &str| match json.strip_prefix('[').and_then(|json| json.strip_suffix(']')) {
        Some(rules) => rules.trim().to_owned(),
        None => json.to_owned(),
    };
    let all = [rules(&of_preset.to_json()), rules(&own)];
    request.set("set", Tree::of_list(all.iter().map(String::as_str).filter(|rules| !rules.is_empty())));
}
