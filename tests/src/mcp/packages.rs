//! Where the SDKs are, and whether this machine skips these tests.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Set by `./test.sh` on a machine without Node.js or Python.
const SKIP: &str = "TESTS_SKIP_MCP";

/// Whether tests with MCP clients are disabled.
#[track_caller]
pub(super) fn are_skipped() -> bool {
    crate::skipped::by(SKIP)
}

/// The command that runs a script with the TypeScript SDK.
#[track_caller]
pub(super) fn node(script: &str) -> Command {
    let installed = folder().join("node_modules/@modelcontextprotocol/sdk");
    assert!(installed.is_dir(), "{} is missing: run `npm ci` in tests/mcp, or ./test.sh", installed.display());
    let mut command = Command::new("node");
    command.arg(folder().join(format!("{script}.mjs")));
    command
}

/// The command that runs a script with the Python SDK, in the virtual environment that `./test.sh` creates in the target
/// directory.
#[track_caller]
pub(super) fn python(script: &str) -> Command {
    let mut command = Command::new(crate::venv::program("mcp-venv", "python"));
    command.arg(folder().join(format!("{script}.py")));
    command
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp")
}
