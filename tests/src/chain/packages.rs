//! Where the npm packages are that a chain is made of, and whether this machine does without them.

use std::path::{Path, PathBuf};

/// Set by `./test.sh` on a machine without Node.js.
const SKIP: &str = "METERING_TESTS_SKIP_CHAIN";

/// Whether tests against a real chain are switched off.
#[track_caller]
pub(crate) fn are_skipped() -> bool {
    crate::skipped::by(SKIP)
}

/// The folder with the wallet's script and, once installed, the packages.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("chain")
}

/// The node's program itself, not the script around it: what is started is what must be ended.
#[track_caller]
pub(crate) fn anvil() -> PathBuf {
    let platform = platform(std::env::consts::OS, std::env::consts::ARCH);
    let package = folder().join("node_modules/@foundry-rs").join(format!("anvil-{platform}"));
    let path = package.join("bin").join(format!("anvil{}", std::env::consts::EXE_SUFFIX));
    assert!(path.is_file(), "{} is missing: run `npm ci --omit=dev` in tests/chain, or ./test.sh", path.display());
    path
}

/// As npm packages name platforms.
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
    fn platforms_have_the_names_that_packages_give_them() {
        // the compiler's system and processor, npm's platform
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
