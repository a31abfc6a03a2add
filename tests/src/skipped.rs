//! Parts of the tests that need tools which a developer's machine may lack. `./test.sh` detects this, says so, and
//! disables them by an environment variable. In CI both `./test.sh` and this module fail instead.

use std::io::Write;

/// Whether tests are disabled by `variable` (`1`). If so, reports it on the real standard error, past the test
/// harness's capture.
///
/// # Panics
/// In CI (`CI=true`), where nothing may be skipped.
#[must_use]
#[track_caller]
pub fn by(variable: &str) -> bool {
    let is = |name: &str, value: &str| std::env::var_os(name).is_some_and(|set| set == value);
    let skipped = is(variable, "1");
    if skipped {
        assert!(!is("CI", "true"), "{variable} is set, but CI must not skip tests");
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let _ = writeln!(std::io::stderr(), "skipped because {variable} is set: {test}");
    }
    skipped
}
