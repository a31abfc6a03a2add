//! The models that a route with a preset sells.

use super::data::Preset;
use super::units::{drop_foreign_units, price_of};
use crate::catalogue::json_tree::Tree;
use crate::catalogue::problem::Problems;

/// The key of a model that names the presets that sell it.
const PRESETS_KEY: &str = "presets";

/// A list of models, by name.
#[derive(Debug, Clone)]
pub(super) struct ModelList {
    pub(super) models: Tree,
    /// Where it is in the file, for messages.
    pub(super) location: &'static str,
    /// Whether it is for all routes of the file: a route then sells the models that have the prices it needs.
    pub(super) is_shared: bool,
}

impl ModelList {
    /// The models for a preset, with its units only.
    ///
    /// # Errors
    /// When a model is for a preset that does not exist.
    pub(super) fn sold_by(&self, preset: &Preset) -> Result<Vec<(String, Tree)>, Problems> {
        let mut problems = Problems::default();
        let sold = problems.all(self.models.members().iter().map(|(name, model)| {
            let mut model = model.clone();
            let location = || format!("{}.{name}.{PRESETS_KEY}", self.location);
            if let Some(presets) = model.take(PRESETS_KEY) {
                let names: Vec<String> = serde_json::from_str(&presets.to_json())
                    .map_err(|_| format!("{}: must be a list of names of presets", location()))?;
                for named in &names {
                    Preset::named(named).map_err(|problem| format!("{}: {problem}", location()))?;
                }
                if !names.iter().any(|named| named == preset.name) {
                    return Ok(None);
                }
            }
            if self.is_shared {
                drop_foreign_units(preset, &mut model);
                let mut needed = preset.units.iter().filter(|unit| unit.of.is_none());
                if !needed.all(|unit| price_of(&model, &unit.name).is_some()) {
                    return Ok(None);
                }
            }
            Ok::<_, String>(Some((name.clone(), model)))
        }));
        problems.or(|| sold.map(|models| models.into_iter().flatten().collect()))
    }
}
