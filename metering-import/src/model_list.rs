//! A file with models for a catalogue, and the changes that a new one makes.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The models of a file that a catalogue names: `{"models": {...}}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelList {
    models: BTreeMap<String, Value>,
}

/// How a model differs between two lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelChange {
    /// The model.
    pub model: String,
    /// What happened to it.
    pub change: ModelChangeKind,
    /// Its prices per million that differ, by unit.
    pub units: BTreeMap<String, PriceChange>,
}

/// The kind of change to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelChangeKind {
    /// It is new.
    Added,
    /// It was removed, and requests for it will be refused.
    Removed,
    /// Some prices are higher, and none is lower.
    Dearer,
    /// Some prices are lower, and none is higher.
    Cheaper,
    /// Anything else.
    Changed,
}

/// A price before and after; `None` if the unit had or has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PriceChange {
    /// Before.
    pub before: Option<String>,
    /// After.
    pub after: Option<String>,
}

impl From<BTreeMap<String, Value>> for ModelList {
    fn from(models: BTreeMap<String, Value>) -> Self {
        Self { models }
    }
}

impl ModelChangeKind {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Dearer => "dearer",
            Self::Cheaper => "cheaper",
            Self::Changed => "changed",
        }
    }
}

impl ModelList {
    /// A model.
    #[must_use]
    pub fn get(&self, model: &str) -> Option<&Value> {
        self.models.get(model)
    }

    /// How many models it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.models.len()
    }

    /// Whether it has no models.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.models.is_empty()
    }

    /// The changes that `after` makes, by model. Prices are compared per million, as imports write them.
    ///
    /// ```
    /// use metering_import::{ModelChangeKind, ModelList};
    ///
    /// let list = |price: &str| format!(r#"{{"models": {{"m": {{"max": "1", "per_million": {{"input_tokens": "{price}"}}}}}}}}"#);
    /// let [before, after]: [ModelList; 2] = [serde_json::from_str(&list("1"))?, serde_json::from_str(&list("1.10"))?];
    /// let changes = before.changes_to(&after);
    /// assert_eq!(changes[0].change, ModelChangeKind::Dearer);
    /// assert!(before.changes_to(&before).is_empty());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn changes_to(&self, after: &Self) -> Vec<ModelChange> {
        let names: BTreeSet<&String> = self.models.keys().chain(after.models.keys()).collect();
        let change = |name: &String| {
            let (before, after) = (self.models.get(name), after.models.get(name));
            if before == after {
                return None;
            }
            let units = price_changes(before, after);
            let change = match (before, after) {
                (None, _) => ModelChangeKind::Added,
                (_, None) => ModelChangeKind::Removed,
                _ => direction(&units),
            };
            Some(ModelChange { model: name.clone(), change, units })
        };
        names.into_iter().filter_map(change).collect()
    }
}

fn price_changes(before: Option<&Value>, after: Option<&Value>) -> BTreeMap<String, PriceChange> {
    let prices = |model: Option<&Value>| -> BTreeMap<String, String> {
        let units = model.and_then(|model| model["per_million"].as_object()).into_iter().flatten();
        units.map(|(unit, price)| (unit.clone(), text(price))).collect()
    };
    let (before, after) = (prices(before), prices(after));
    let units: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let change = |unit: &String| {
        let change = PriceChange { before: before.get(unit).cloned(), after: after.get(unit).cloned() };
        (change.before != change.after).then(|| (unit.clone(), change))
    };
    units.into_iter().filter_map(change).collect()
}

/// A price in a string, or a number with its digits.
fn text(price: &Value) -> String {
    price.as_str().map_or_else(|| price.to_string(), str::to_owned)
}

fn direction(units: &BTreeMap<String, PriceChange>) -> ModelChangeKind {
    let decimal = |text: &Option<String>| Decimal::from_str_exact(text.as_deref()?).ok();
    let compare = |change: &PriceChange| Some(decimal(&change.after)?.cmp(&decimal(&change.before)?));
    let compared: Option<Vec<Ordering>> = units.values().map(compare).collect();
    let compared = compared.unwrap_or_default();
    let (has_more, has_less) = (compared.contains(&Ordering::Greater), compared.contains(&Ordering::Less));
    match (has_more, has_less) {
        (true, false) => ModelChangeKind::Dearer,
        (false, true) => ModelChangeKind::Cheaper,
        _ => ModelChangeKind::Changed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_added_removed_dearer_or_cheaper() {
        let list = |models: &str| serde_json::from_str::<ModelList>(&format!(r#"{{"models": {{{models}}}}}"#)).unwrap();
        let model = |name: &str, input: &str, output: &str| {
            format!(
                r#""{name}": {{"max": "1", "per_million": {{"input_tokens": "{input}", "output_tokens": "{output}"}}}}"#
            )
        };
        let before = [("gone", "1", "1"), ("same", "1", "1"), ("up", "1", "9"), ("down", "1", "1"), ("both", "1", "1")];
        let after =
            [("same", "1", "1"), ("up", "1", "10"), ("down", "0.9", "1"), ("both", "2", "0.5"), ("new", "1", "1")];
        let join = |models: &[(&str, &str, &str)]| {
            list(&models.iter().map(|(name, input, output)| model(name, input, output)).collect::<Vec<_>>().join(","))
        };
        let changes = join(&before).changes_to(&join(&after));
        let words: Vec<_> = changes.iter().map(|change| (change.model.as_str(), change.change.as_str())).collect();
        assert_eq!(
            words,
            [("both", "changed"), ("down", "cheaper"), ("gone", "removed"), ("new", "added"), ("up", "dearer")]
        );
        let up = PriceChange { before: Some("9".to_owned()), after: Some("10".to_owned()) };
        assert_eq!(changes[4].units, BTreeMap::from([("output_tokens".to_owned(), up)]));
    }
}
