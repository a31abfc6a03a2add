//! Parts of the tests that a person's machine may lack the tools for. `./test.sh` finds out, says so, and switches them
//! off by an environment variable; in CI it fails instead, and so does this.

use std::io::Write;

/// Whether tests are switched off by `variable` (`1`); says so if they are, past the capture of passing tests' output.
///
/// # Panics
/// In CI (`CI=true`), which skips nothing.
#[must_use]
#[track_caller]
pub fn by(variable: &str) -> bool {
    let is = |name: &str, value: &str| std::env::var_os(name).is_some_and(|set| set == value);
    let skipped = is(variable, "1");
    if skipped {
        assert!(!is("CI", "true"), "{variable} is set, but CI skips nothing");
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let _ = writeln!(std::io::stderr(), "skipped, since {variable} is set: {test}");
    }
    skipped
}
