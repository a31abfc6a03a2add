//! Where the npm packages for chains are, and whether this machine skips these tests.

use std::path::{Path, PathBuf};

/// Set by `./test.sh` on a machine without Node.js.
const SKIP: &str = "TESTS_SKIP_CHAIN";

/// Whether tests against a real chain are disabled.
#[track_caller]
pub(crate) fn are_skipped() -> bool {
    crate::skipped::by(SKIP)
}

/// The directory with the wallet's script and, once installed, the packages.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("chain")
}

/// The node's binary itself rather than the script around it, because the process that is started must be the one to
/// kill.
#[track_caller]
pub(crate) fn anvil() -> PathBuf {
    let platform = platform(std::env::consts::OS, std::env::consts::ARCH);
    let package = folder().join("node_modules/@foundry-rs").join(format!("anvil-{platform}"));
    let path = package.join("bin").join(format!("anvil{}", std::env::consts::EXE_SUFFIX));
    assert!(path.is_file(), "{} is missing: run `npm ci --omit=dev` in tests/chain, or ./test.sh", path.display());
    path
}

/// The platform's name in npm packages.
fn platform(os: &str, arch: &str) -> String {
    let os = match os {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    };
    let arch = match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{os}-{arch}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platform_names_match_npm_packages() {
        // Rust's operating system and architecture, npm's platform
        let table = [
            ("linux", "x86_64", "linux-amd64"),
            ("linux", "aarch64", "linux-arm64"),
            ("macos", "aarch64", "darwin-arm64"),
            ("windows", "x86_64", "win32-amd64"),
        ];
        for (os, arch, expected) in table {
            assert_eq!(platform(os, arch), expected);
        }
    }
}
