//! The table of presets, each read from its file once.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::catalogue::json_tree::Tree;
use crate::catalogue::nearest::nearest;

const FILES: [(&str, &str); 10] = [
    ("openai-chat", include_str!("../presets/openai-chat.json")),
    ("openai-completions", include_str!("../presets/openai-completions.json")),
    ("openai-responses", include_str!("../presets/openai-responses.json")),
    ("openai-embeddings", include_str!("../presets/openai-embeddings.json")),
    ("openai-models", include_str!("../presets/openai-models.json")),
    ("openai-images", include_str!("../presets/openai-images.json")),
    ("anthropic-messages", include_str!("../presets/anthropic-messages.json")),
    ("anthropic-count-tokens", include_str!("../presets/anthropic-count-tokens.json")),
    ("gemini", include_str!("../presets/gemini.json")),
    ("gemini-count-tokens", include_str!("../presets/gemini-count-tokens.json")),
];

/// All presets, in the order of the table.
static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    let read = |&(name, text): &(&'static str, &str)| Preset::read(name, text);
    FILES.iter().map(read).collect::<Result<_, _>>().expect("the built-in presets are valid")
});

/// The contents of a preset.
#[derive(Debug)]
pub(super) struct Preset {
    pub(super) name: &'static str,
    /// Whether its route responds with the list of models.
    pub(super) lists: bool,
    /// The preset whose models a free one serves.
    pub(super) of: Option<String>,
    /// Where a request names its model.
    pub(super) model: Tree,
    /// The units, parents before their children. None if its requests are free.
    pub(super) units: Vec<UnitRule>,
    /// The keys of the route.
    pub(super) route: Tree,
}

/// A unit that a provider reports.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnitRule {
    pub(super) name: String,
    /// The unit whose price it uses if it has none of its own.
    pub(super) of: Option<String>,
    /// Whether the count of `of` leaves it out. Otherwise it is part of that count.
    #[serde(default)]
    pub(super) beside: bool,
    /// The parts that are added up for its count, as in `report`.
    pub(super) at: Vec<Box<RawValue>>,
    /// The texts whose length bounds its count, as in `delivered`.
    #[serde(default)]
    pub(super) delivered: Vec<String>,
    /// Where a request limits it, as in `estimate.json`.
    #[serde(default)]
    pub(super) estimate: Vec<String>,
    /// Whether the length of the request bounds it, as in `estimate.bytes`.
    #[serde(default)]
    pub(super) bytes: bool,
    /// Whether limits on tokens per minute leave it out, as the provider's own do.
    #[serde(default)]
    pub(super) uncounted: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PresetFile {
    #[serde(default)]
    lists: bool,
    #[serde(rename = "as")]
    of: Option<String>,
    model: Box<RawValue>,
    units: Vec<UnitRule>,
    route: Box<RawValue>,
}

impl Preset {
    /// The preset of a name.
    pub(super) fn named(name: &str) -> Result<&'static Self, String> {
        let names = || PRESETS.iter().map(|preset| preset.name);
        PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| match nearest(name, names()) {
            Some(meant) => format!("there is no preset {name}; did you mean {meant}?"),
            None => format!("there is no preset {name}; presets are {}", names().collect::<Vec<_>>().join(", ")),
        })
    }

    /// Whether some preset has this unit.
    pub(super) fn is_unit_of_any(unit: &str) -> bool {
        PRESETS.iter().any(|preset| preset.unit(unit).is_some())
    }

    pub(super) fn unit(&self, name: &str) -> Option<&UnitRule> {
        self.units.iter().find(|unit| unit.name == name)
    }

    fn read(name: &'static str, text: &str) -> Result<Self, String> {
        let PresetFile { lists, of, model, units, route } =
            serde_json::from_str(text).map_err(|error| format!("{name}: {error}"))?;
        Ok(Self {
            name,
            lists,
            of,
            model: Tree::parse(model.get(), name)?,
            units,
            route: Tree::parse(route.get(), name)?,
        })
    }
}
