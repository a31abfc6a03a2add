//! Lists the contracts of each trait for the macros in `src/contracts.rs`, so that none can be forgotten.
//!
//! A contract is a public function of a public module. Its signature says the rest: the trait of the store that it takes,
//! and, by `Verified` instead of `Arc`, whether the store's books are verified after it.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=src");
    let folder = env::var("OUT_DIR").expect("Cargo sets it");
    fs::write(Path::new(&folder).join("contracts.rs"), lists()).expect("the lists can be written");
}

/// A macro with the list of each trait.
fn lists() -> String {
    let mut lists = BTreeMap::<String, String>::new();
    let suite = read("lib");
    for module in suite.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')) {
        for line in read(module).lines().filter(|line| line.starts_with("pub async fn ")) {
            let Some((contract, store, mark)) = contract(line) else {
                panic!("a public function of {module} is not a contract: {line}");
            };
            *lists.entry(store.to_owned()).or_default() += &format!("        {module}::{contract}{mark},\n");
        }
    }
    let mut text = "/// The tests of the contracts that take a store of one trait.\n".to_owned();
    text += "#[doc(hidden)]\n#[macro_export]\nmacro_rules! contracts_of {\n";
    for (store, list) in lists {
        text += &format!("    ({store}, $fresh:expr) => {{ $crate::conformance_tests! {{ $fresh;\n{list}    }} }};\n");
    }
    text + "}\n"
}

/// The contract that begins on a line: its name, the trait of its store, and its mark in the list.
fn contract(line: &str) -> Option<(&str, &str, &'static str)> {
    let (name, parameter) = line.strip_prefix("pub async fn ")?.split_once("(store: ")?;
    let (pointer, store) = parameter.strip_suffix(">) {")?.split_once("<dyn ")?;
    let mark = match pointer {
        "Arc" => "",
        "Verified" => ": verified",
        _ => return None,
    };
    Some((name, store, mark))
}

fn read(module: &str) -> String {
    let path = Path::new("src").join(module).with_extension("rs");
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
