//! Python packages for the tests: virtual environments that `./test.sh` creates in the target directory.

use std::path::{Path, PathBuf};

/// A program of the virtual environment `name`, such as `python`.
#[track_caller]
#[must_use]
pub fn program(name: &str, program: &str) -> PathBuf {
    let found = program_in(&tool(name), program);
    found.unwrap_or_else(|| panic!("tools/{name} has no {program}: delete it, and run ./test.sh to create it again"))
}

/// The program that `./test.sh` installed under this name in the folder `tools` of the target directory.
#[track_caller]
#[must_use]
pub fn tool(name: &str) -> PathBuf {
    let found = find_tool(name);
    found.unwrap_or_else(|| panic!("tools/{name} is missing in the target directory: run ./test.sh to create it"))
}

/// Like [`program`], but `None` if it is missing.
#[must_use]
pub fn find(name: &str, program: &str) -> Option<PathBuf> {
    program_in(&find_tool(name)?, program)
}

fn find_tool(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    own.ancestors().map(|folder| folder.join("tools").join(name)).find(|path| path.exists())
}

fn program_in(environment: &Path, program: &str) -> Option<PathBuf> {
    let folder = environment.join(if cfg!(windows) { "Scripts" } else { "bin" });
    let file = folder.join(format!("{program}{}", std::env::consts::EXE_SUFFIX));
    file.is_file().then_some(file)
}
