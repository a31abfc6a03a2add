//! Parts of the tests that need tools which a developer's machine may lack. `./test.sh` detects this, reports it, and
//! disables them by an environment variable. With `./test.sh --complete` both the script and this module fail instead.
//!
//! The variables start with `TESTS_`: the programs under test read every variable that starts with `METERING_` as
//! configuration, and report unknown ones.

use std::io::Write;

/// Returns from a test that needs what is not installed: `skip_if!(postgres::is_skipped());`.
#[macro_export]
macro_rules! skip_if {
    ($is_skipped:expr) => {
        if $is_skipped {
            return;
        }
    };
}

/// Whether tests are disabled by `variable` (`1`). If so, reports it on the real standard error, past the test
/// harness's capture.
///
/// # Panics
/// With `TESTS_COMPLETE=1`, where nothing may be skipped.
#[must_use]
#[track_caller]
pub fn by(variable: &str) -> bool {
    let is = |name: &str| std::env::var_os(name).is_some_and(|set| set == "1");
    let skipped = is(variable);
    if skipped {
        assert!(!is("TESTS_COMPLETE"), "{variable} is set, but nothing may be skipped with --complete");
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let _ = writeln!(std::io::stderr(), "skipped because {variable} is set: {test}");
    }
    skipped
}
