//! The Debian package and the container image, installed and run, also by a real systemd.

mod container;
mod debian;
mod systemd;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use metering_tests::debian_root::printed;
use metering_tests::skipped;
use metering_tests::venv::tool;

/// Whether the tests of packages are skipped.
fn skips() -> bool {
    skipped::by("TESTS_SKIP_PACKAGES")
}

/// The root of the repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The package of the programs that cargo has built. It is made once, for all tests.
fn package() -> &'static Path {
    static PACKAGE: LazyLock<PathBuf> = LazyLock::new(|| {
        let target = tool("debian-root.tar").ancestors().nth(2).unwrap().to_owned();
        let package = Path::new(env!("CARGO_TARGET_TMPDIR")).join("metering.deb");
        let mut build = Command::new(repository().join("deploy/debian/build"));
        build.args(["--profile", "dev", "--no-compile", "--version", "1.0-1", "--output"]);
        run(build.arg(&package).env("CARGO_TARGET_DIR", target));
        package
    });
    &PACKAGE
}

fn run(command: &mut Command) -> String {
    printed(&format!("{command:?}"), &command.output().unwrap())
}
