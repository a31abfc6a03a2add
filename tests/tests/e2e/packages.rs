//! The Debian package and the container image, installed and run.

mod debian;

use std::path::{Path, PathBuf};

use metering_tests::skipped;

/// Whether the tests of packages are skipped.
fn skips() -> bool {
    skipped::by("METERING_TESTS_SKIP_PACKAGES")
}

/// The root of the repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
