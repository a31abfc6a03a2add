//! Compares the public API of the library crates with its listing in `docs/public-api`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use clap::Parser;

/// The crates that other programs depend on.
const CRATES: [&str; 11] = [
    "metering-core",
    "metering-admin",
    "metering-sql",
    "metering-sqlite",
    "metering-postgres",
    "metering-pay",
    "metering-import",
    "metering-evm",
    "metering-client",
    "metering-log",
    "metering-proof",
];

/// Compares the public API of the library crates with its listing in docs/public-api.
#[derive(Parser)]
struct Arguments {
    /// Update the listing.
    #[arg(long)]
    write: bool,
}

fn main() -> ExitCode {
    match compare(Arguments::parse().write) {
        Ok(changed) if changed.is_empty() => ExitCode::SUCCESS,
        Ok(changed) => {
            println!("{changed}");
            println!(
                "The public API changed. If that is intended, run `just public-api --write`, and say in CHANGELOG.md"
            );
            println!("what users of the crate have to do.");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("public-api: {error}");
            ExitCode::from(2)
        }
    }
}

/// The lines that were added and removed; empty after an update.
fn compare(write: bool) -> Result<String, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the crate has no parent folder")?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    document(root, &target)?;
    let mut changed = String::new();
    for name in CRATES {
        let json = target.join("doc").join(format!("{}.json", name.replace('-', "_")));
        let listing = root.join("docs/public-api").join(format!("{name}.txt"));
        let now = listed(&json)?;
        if write {
            fs::write(listing, now)?;
            continue;
        }
        let before = fs::read_to_string(&listing).map_err(|error| format!("{}: {error}", listing.display()))?;
        let differing = |sign, these: &str, those: &str| {
            let only = these.lines().filter(|line| !those.lines().any(|other| other == *line));
            only.map(|line| format!("{sign} {line}\n")).collect::<String>()
        };
        changed += &differing('-', &before, &now);
        changed += &differing('+', &now, &before);
    }
    Ok(changed)
}

/// Runs cargo doc with JSON output.
fn document(root: &Path, target: &Path) -> Result<(), Box<dyn Error>> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).env("CARGO_TARGET_DIR", target).env("RUSTDOC", root.join("tests/public-api/rustdoc-json"));
    // Without the feature for the server's own document (openapi).
    cargo.args(["doc", "--locked", "--lib", "--no-deps", "--features", "metering-core/tower,metering-evm/wallet"]);
    cargo.args(CRATES.iter().flat_map(|name| ["--package", name]));
    let status = cargo.status()?;
    if status.success() { Ok(()) } else { Err(format!("cargo doc ended with {status}").into()) }
}

/// The public items, one per line.
fn listed(json: &Path) -> Result<String, Box<dyn Error>> {
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}
