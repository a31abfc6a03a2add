//! `catalogue models import`: reads a price map into the models file, and shows what changes.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use metering_core::Credits;
use metering_import::{
    ModelChange, ModelList, PriceChange, PriceMapImport, PriceMapOptions, PriceRate, read_price_map,
};
use serde::Serialize;
use serde_json::json;

use crate::admin::catalogue::indented::indented;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::new_file::refuse_special;
use crate::output::{Format, write_json};
use crate::table::{Column, Table, table, write_pairs};

/// Write the prices of a price map that LiteLLM publishes into a file with models, and show what that changes.
#[derive(Debug, Args)]
#[command(after_help = "\
FILE is LiteLLM's model_prices_and_context_window.json. Its prices, in USD per token, become credits per million tokens:
times --markup, divided by --usd-per-credit, rounded up to 12 decimals. A catalogue names the result with
\"models\": {\"file\": \"models.json\"}. Each import replaces the file, so write your own changes into the catalogue:
\"models\": [{\"file\": \"models.json\"}, {\"gpt-4\": null}].

Prices that no preset can charge, such as those of long prompts, are listed, and the model is sold without them. Models
that no preset sells are listed too, and left out. Unknown fields are ignored.

To see what the new file changes before it is served, import with --dry-run; or import it under another name, and use
`catalogue diff` and `catalogue rehearse` with a catalogue that names it.

Examples:
  metering admin catalogue models import prices.json --markup 1.2 --usd-per-credit 1 --dry-run
  metering admin catalogue models import prices.json --markup 1.2 --usd-per-credit 0.01 --to /etc/metering/models.json
  metering admin catalogue models import p.json --markup 1.1 --usd-per-credit 1 --provider groq --preset openai-chat")]
pub(crate) struct ImportArgs {
    /// The price map.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The factor for the provider's prices.
    #[arg(long, value_name = "NUMBER")]
    markup: String,
    /// The price of a credit, in USD.
    #[arg(long, value_name = "USD")]
    usd_per_credit: String,
    /// The file to write.
    #[arg(long, value_name = "FILE", default_value = "models.json")]
    to: PathBuf,
    /// Take the models of this provider, by its name in the map. May be repeated.
    #[arg(long = "provider", value_name = "NAME", default_values = ["openai", "anthropic", "gemini"])]
    providers: Vec<String>,
    /// Sell all of them with this preset. By default, it is derived from provider and mode.
    #[arg(long, value_name = "PRESET")]
    preset: Option<String>,
    /// Hold this many credits for a model whose limits are not in the map. By default, such models are left out.
    #[arg(long, value_name = "CREDITS")]
    max: Option<Credits>,
    /// Charge the price of long prompts for all prompts.
    #[arg(long)]
    long_prompts: bool,
    /// Show what would change, and write nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Serialize)]
struct Document<'i> {
    models: usize,
    written: bool,
    changes: &'i [ModelChange],
    not_charged: Vec<Listed<'i>>,
    left_out: Vec<Listed<'i>>,
}

/// A model with a remark.
#[derive(Debug, Serialize)]
struct Listed<'i> {
    model: &'i str,
    what: &'i str,
}

const NOT_CHARGED: &[Column] = &[Column::text("NOT CHARGED"), Column::text("PRICE")];
const LEFT_OUT: &[Column] = &[Column::text("LEFT OUT"), Column::text("BECAUSE")];

impl ImportArgs {
    pub(crate) async fn run(self, _session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let rate =
            PriceRate::new(&self.markup, &self.usd_per_credit).map_err(|error| Failure::Usage(error.to_string()))?;
        let map = fs::read_to_string(&self.file).map_err(|error| unreadable(&self.file, &error))?;
        let options = PriceMapOptions {
            providers: self.providers.clone(),
            preset: self.preset.clone(),
            max: self.max,
            long_prompts: self.long_prompts,
        };
        let import = read_price_map(&map, rate, &options)
            .map_err(|error| Failure::Failed(format!("{}: {error}", self.file.display())))?;
        let changes = before(&self.to)?.changes_to(&import.models);
        if !self.dry_run {
            self.replace(&import.models)?;
        }
        let document = Document {
            models: import.models.len(),
            written: !self.dry_run,
            changes: &changes,
            not_charged: listed(&import.not_charged),
            left_out: listed(&import.left_out),
        };
        if self.format.json {
            return write_json(out, &document);
        }
        self.write(out, &import, &changes)
    }

    /// Replaces the file atomically, so a server that starts meanwhile reads the old or the new one.
    fn replace(&self, models: &ModelList) -> Result<(), Failure> {
        refuse_special(&self.to)?;
        let unwritable =
            |error: io::Error| Failure::Failed(format!("cannot write {}: {error}; nothing changed", self.to.display()));
        let source = json!({"markup": self.markup, "usd_per_credit": self.usd_per_credit});
        let mut document = serde_json::to_value(models).map_err(|error| Failure::Failed(error.to_string()))?;
        document["x-import"] = source;
        let folder = self.to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(unwritable)?;
        file.write_all(indented(&document.to_string()).as_bytes()).map_err(unwritable)?;
        set_readable(file.as_file(), &self.to).map_err(unwritable)?;
        file.persist(&self.to).map_err(|error| unwritable(error.error))?;
        Ok(())
    }

    fn write(&self, out: &mut dyn Write, import: &PriceMapImport, changes: &[ModelChange]) -> Result<(), Failure> {
        let file = self.to.display().to_string();
        let written = if self.dry_run { format!("{file}, not written (--dry-run)") } else { file };
        write_pairs(out, &[("File", &written), ("Models", &import.models.len()), ("Changes", &changes.len())])?;
        if !changes.is_empty() {
            writeln!(out)?;
            table!(out, changes, |change| {
                word("CHANGE") => change.change.as_str(),
                text("MODEL") => change.model,
                text("CREDITS PER MILLION") => in_words(change),
            })?;
        }
        for (columns, rows) in [(NOT_CHARGED, &import.not_charged), (LEFT_OUT, &import.left_out)] {
            if !rows.is_empty() {
                writeln!(out)?;
                let mut table = Table::new(columns);
                for (model, what) in rows {
                    table.row([model, what]);
                }
                table.write(out)?;
            }
        }
        Ok(())
    }
}

/// The models of the existing file; none if there is no file.
fn before(file: &Path) -> Result<ModelList, Failure> {
    match fs::read_to_string(file) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| {
            let name = file.display();
            Failure::Failed(format!(
                "{name} is no file with models: {error}; move it away, or write to another with --to"
            ))
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ModelList::default()),
        Err(error) => Err(unreadable(file, &error)),
    }
}

/// Gives a new file the permissions of the one that it replaces, or the default ones: a temporary file is private.
#[cfg(unix)]
fn set_readable(file: &fs::File, replaced: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    const READABLE: u32 = 0o644;
    let permissions = fs::metadata(replaced).map(|found| found.permissions());
    file.set_permissions(permissions.unwrap_or_else(|_| fs::Permissions::from_mode(READABLE)))
}

#[cfg(not(unix))]
fn set_readable(_file: &fs::File, _replaced: &Path) -> io::Result<()> {
    Ok(())
}

fn unreadable(file: &Path, error: &io::Error) -> Failure {
    Failure::Failed(format!("cannot read {}: {error}", file.display()))
}

fn listed(pairs: &[(String, String)]) -> Vec<Listed<'_>> {
    pairs.iter().map(|(model, what)| Listed { model, what }).collect()
}

/// The prices that change, such as `input_tokens 1 -> 1.2`.
fn in_words(change: &ModelChange) -> String {
    let part = |(unit, PriceChange { before, after }): (&String, &PriceChange)| match (before, after) {
        (Some(before), Some(after)) => format!("{unit} {before} -> {after}"),
        (None, Some(after)) => format!("{unit} {after}"),
        (Some(before), None) => format!("{unit} {before} -> none"),
        (None, None) => unit.clone(),
    };
    let parts: Vec<String> = change.units.iter().map(part).collect();
    if parts.is_empty() { "other terms".to_owned() } else { parts.join(", ") }
}
