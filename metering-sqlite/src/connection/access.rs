//! Says whose a database is that cannot be opened. SQLite only says "unable to open database file", and most often a
//! command was run as another user than the server.

use std::path::Path;

use metering_core::StoreError;
use rusqlite::ErrorCode;

use crate::error::Result;

/// Opens a database. An error of SQLite that may have to do with permissions names the file, its owner and our user.
pub(super) fn explained<T>(path: &Path, open: impl FnOnce() -> Result<T>) -> Result<T> {
    open().map_err(|error| match error {
        StoreError::Unavailable(cause) if cause.downcast_ref().is_some_and(may_be_permissions) => {
            let problem = format!("cannot open database {}: {cause}{}", path.display(), owners(path));
            StoreError::Unavailable(problem.into())
        }
        error => error,
    })
}

fn may_be_permissions(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied))
}

/// The owner of a file, or of the folder that it would be in, and the process's user: the end of an error message.
#[cfg(unix)]
pub(super) fn owners(path: &Path) -> String {
    let Some((found, metadata)) =
        path.ancestors().find_map(|found| Some((found, std::fs::metadata(non_empty(found)).ok()?)))
    else {
        return String::new();
    };
    let owner = std::os::unix::fs::MetadataExt::uid(&metadata);
    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o7777;
    let whose = format!("; {} belongs to {} (mode {mode:04o})", non_empty(found).display(), user(owner));
    let ours = std::fs::metadata("/proc/self").map(|process| std::os::unix::fs::MetadataExt::uid(&process));
    let Ok(ours) = ours else { return whose };
    let advice = match ours == owner {
        true => "",
        false => ". Run this as the owner, or give this user the database and its folder",
    };
    format!("{whose}, and this process runs as {}{advice}", user(ours))
}

#[cfg(not(unix))]
pub(super) fn owners(_: &Path) -> String {
    String::new()
}

/// The folder of a relative path without one is the working directory.
#[cfg(unix)]
fn non_empty(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// A user's name and number, as far as this machine knows them.
#[cfg(unix)]
fn user(id: u32) -> String {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id.to_string()).then(|| name.to_owned())
    });
    name.map_or_else(|| format!("uid {id}"), |name| format!("{name} (uid {id})"))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn path_owner_and_user_are_named() {
        let folder = tempfile::tempdir().unwrap();
        // A folder cannot be opened as a database, by any user.
        let error = super::super::open_writer(folder.path()).unwrap_err().to_string();
        let uid = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(folder.path()).unwrap());
        let path = folder.path().display().to_string();
        for part in
            ["unable to open database file", &path, &format!("belongs to {}", user(uid)), "this process runs as"]
        {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(!error.contains("Run this as"), "{error}");
        // For a file that does not exist, the error names its folder.
        assert!(owners(&folder.path().join("new.db")).contains(&format!("; {path} belongs to")));
        assert_eq!(user(0), "root (uid 0)");
        assert_eq!(user(4_000_000_123), "uid 4000000123");
    }
}
