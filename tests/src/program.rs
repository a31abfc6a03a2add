//! Where the workspace's programs are: beside the one that runs now, wherever cargo was told to build.
//!
//! Nothing is built from here: a test that builds hides how long it takes, and fails for reasons of its own.

use std::path::{Path, PathBuf};

/// The program `name` of this workspace, as `cargo build --workspace` left it.
///
/// # Panics
/// When it was not built; the message says how to.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a running program has a path");
    let folder = own.parent().expect("a program is in a folder");
    // Tests are one folder below the programs.
    let folder = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
    let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.is_file(), "{} is missing: run `{}` first", path.display(), build_command(folder));
    path
}

fn build_command(folder: &Path) -> &'static str {
    if folder.ends_with("release") { "cargo build --workspace --release" } else { "cargo build --workspace" }
}
