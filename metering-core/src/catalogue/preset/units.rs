//! Turns a preset's units into the route's: where they are reported, their limits, and their prices.
//!
//! A unit that no model prices is counted in its parent unit, so no token is free by accident and none is charged
//! twice.

use super::data::{Preset, UnitRule};
use crate::catalogue::json_tree::Tree;
use crate::catalogue::upstream_file;

/// The keys of a model that have amounts by unit.
const BY_UNIT: [&str; 3] = ["units", "per_million", "limits"];
/// The included units with prices.
const PRICES: [&str; 2] = ["units", "per_million"];
/// The key of a model that has such amounts for single upstreams.
const UPSTREAMS: &str = upstream_file::KEY;

/// A model's price of a unit, and the key that it is in.
pub(super) fn price_of<'m>(model: &'m Tree, unit: &str) -> Option<(&'static str, &'m Tree)> {
    PRICES.into_iter().find_map(|key| Some((key, model.get(key)?.get(unit)?)))
}

/// Removes keys that only other presets have: a list of models may serve several presets.
pub(super) fn drop_foreign_units(preset: &Preset, model: &mut Tree) {
    for key in BY_UNIT {
        let Some(Tree::Object(members)) = model.get_mut(key) else { continue };
        members.retain(|(unit, _)| preset.unit(unit).is_some() || !Preset::is_unit_of_any(unit));
        if members.is_empty() {
            model.take(key);
        }
    }
    if preset.units.iter().all(|unit| unit.estimate.is_empty()) {
        // Without an estimate, they have no effect.
        model.take("limits");
    }
    at_upstreams(model, |terms| drop_foreign_units(preset, terms));
}

/// Changes a model's settings for each upstream.
fn at_upstreams(model: &mut Tree, change: impl Fn(&mut Tree)) {
    if let Some(Tree::Object(upstreams)) = model.get_mut(UPSTREAMS) {
        upstreams.iter_mut().for_each(|(_, terms)| change(terms));
    }
}

/// The units of a preset that count on their own: those that some model prices, and those without a parent.
pub(super) struct Active<'p> {
    preset: &'p Preset,
    units: Vec<&'p UnitRule>,
}

impl<'p> Active<'p> {
    pub(super) fn of(preset: &'p Preset, models: &[(String, Tree)]) -> Self {
        let is_priced = |unit: &UnitRule| models.iter().any(|(_, model)| price_of(model, &unit.name).is_some());
        let units = preset.units.iter().filter(|unit| unit.of.is_none() || is_priced(unit)).collect();
        Self { preset, units }
    }

    fn has(&self, unit: &UnitRule) -> bool {
        self.units.iter().any(|active| active.name == unit.name)
    }

    fn children<'u>(&'u self, unit: &'u UnitRule) -> impl Iterator<Item = &'u UnitRule> {
        self.preset.units.iter().filter(move |child| child.of.as_deref() == Some(unit.name.as_str()))
    }

    /// The unit that this one is part of in the end.
    fn root<'u>(&'u self, unit: &'u UnitRule) -> &'u UnitRule {
        let mut root = unit;
        while let Some(parent) = root.of.as_deref().and_then(|name| self.preset.unit(name)) {
            root = parent;
        }
        root
    }

    /// Gives a model a price for each unit without one: the price of the unit's parent. The same applies to limits.
    pub(super) fn fill(&self, model: &mut Tree) {
        for unit in &self.units {
            let mut parent = unit.of.as_deref().and_then(|name| self.preset.unit(name));
            while let Some(known) = parent {
                if price_of(model, &unit.name).is_some() {
                    break;
                }
                let price = price_of(model, &known.name).map(|(key, price)| (key, price.clone()));
                if let Some((key, price)) = price
                    && let Some(prices) = model.get_mut(key)
                {
                    prices.set(&unit.name, price);
                }
                parent = known.of.as_deref().and_then(|name| self.preset.unit(name));
            }
            let limit = model.get("limits").and_then(|limits| limits.get(&self.root(unit).name)).cloned();
            if let (Some(limit), Some(limits)) = (limit, model.get_mut("limits"))
                && limits.get(&unit.name).is_none()
            {
                limits.set(&unit.name, limit);
            }
        }
        at_upstreams(model, |terms| self.fill(terms));
    }

    /// `report`.
    pub(super) fn report(&self) -> Tree {
        let amount = |unit: &&UnitRule| {
            let (mut plus, mut minus) = (Vec::new(), Vec::new());
            self.add_terms(unit, true, &mut plus, &mut minus);
            let amount = match (&plus[..], &minus[..]) {
                ([one], []) => Tree::Text((*one).to_owned()),
                (_, []) => Tree::Object(vec![("plus".to_owned(), Tree::of_list(plus))]),
                _ => Tree::Object(vec![
                    ("plus".to_owned(), Tree::of_list(plus)),
                    ("minus".to_owned(), Tree::of_list(minus)),
                ]),
            };
            (unit.name.clone(), amount)
        };
        let json = Tree::Object(self.units.iter().map(amount).collect());
        Tree::Object(vec![("json".to_owned(), json)])
    }

    /// Adds the parts of a unit: its own count, minus the included units that count on their own, plus the units beside
    /// it that do not.
    fn add_terms<'u>(&'u self, unit: &'u UnitRule, is_added: bool, plus: &mut Vec<&'u str>, minus: &mut Vec<&'u str>) {
        if is_added {
            plus.extend(unit.at.iter().map(|at| at.get()));
        }
        for child in self.children(unit) {
            match (self.has(child), child.beside) {
                (true, true) => {}
                (true, false) => minus.extend(child.at.iter().map(|at| at.get())),
                (false, beside) => self.add_terms(child, beside, plus, minus),
            }
        }
    }

    /// `tokens`, if not all units count towards limits on tokens per minute.
    pub(super) fn tokens(&self) -> Option<Tree> {
        let counted = self.units.iter().filter(|unit| !unit.uncounted).map(|unit| unit.name.as_str());
        self.units.iter().any(|unit| unit.uncounted).then(|| strings(counted))
    }

    /// `delivered`, if there are texts.
    pub(super) fn delivered(&self) -> Option<Tree> {
        let of_unit = |unit: &&UnitRule| {
            let mut texts = Vec::new();
            self.add_texts(unit, &mut texts);
            (!texts.is_empty()).then(|| (unit.name.clone(), strings(texts)))
        };
        let units: Vec<(String, Tree)> = self.units.iter().filter_map(of_unit).collect();
        (!units.is_empty()).then_some(Tree::Object(units))
    }

    fn add_texts<'u>(&'u self, unit: &'u UnitRule, texts: &mut Vec<&'u str>) {
        texts.extend(unit.delivered.iter().map(String::as_str));
        for child in self.children(unit).filter(|child| !self.has(child)) {
            self.add_texts(child, texts);
        }
    }

    /// `estimate`, if requests bound any unit. The limit of a unit bounds each of its parts.
    pub(super) fn estimate(&self) -> Option<Tree> {
        let json = |unit: &&UnitRule| {
            let pointers = &self.root(unit).estimate;
            (!pointers.is_empty()).then(|| (unit.name.clone(), strings(pointers.iter().map(String::as_str))))
        };
        let json: Vec<(String, Tree)> = self.units.iter().filter_map(json).collect();
        let by_length = self.units.iter().filter(|unit| self.root(unit).bytes).map(|unit| unit.name.as_str());
        let by_length: Vec<&str> = by_length.collect();
        let mut members = Vec::new();
        if !json.is_empty() {
            members.push(("json".to_owned(), Tree::Object(json)));
        }
        if !by_length.is_empty() {
            members.push(("bytes".to_owned(), strings(by_length)));
        }
        (!members.is_empty()).then_some(Tree::Object(members))
    }
}

/// A list of JSON strings.
pub(super) fn strings<'t>(texts: impl IntoIterator<Item = &'t str>) -> Tree {
    let texts: Vec<String> = texts.into_iter().map(|text| Tree::of_str(text).to_json()).collect();
    Tree::of_list(texts.iter().map(String::as_str))
}
