//! Finds the workspace's programs next to the running one, in cargo's target directory.
//!
//! Nothing is built from here: a test that builds hides how long it takes, and fails for unrelated reasons.

use std::path::{Path, PathBuf};

/// The program `name` of this workspace, as `cargo build --workspace` left it.
///
/// # Panics
/// If it was not built; the message has the command that builds it.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    find(name).unwrap_or_else(|missing| panic!("{missing}"))
}

/// Like [`program`], for callers that report a missing program themselves.
///
/// # Errors
/// If it was not built; the message has the command that builds it.
pub fn find(name: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().expect("a running program has a path");
    let folder = own.parent().expect("a program is in a folder");
    // Tests are one folder below the programs.
    let folder = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
    let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if path.is_file() {
        return Ok(path);
    }
    Err(format!("{} is missing: run `{}` first", path.display(), build_command(folder)))
}

fn build_command(folder: &Path) -> &'static str {
    if folder.ends_with("release") { "cargo build --workspace --release" } else { "cargo build --workspace" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_program_error_names_the_build_command() {
        let missing = find("no-such-program").unwrap_err();
        assert!(missing.contains("no-such-program") && missing.contains("`cargo build --workspace"), "{missing}");
        assert_eq!(build_command(Path::new("target/release")), "cargo build --workspace --release");
        assert_eq!(build_command(Path::new("target/debug")), "cargo build --workspace");
    }
}
