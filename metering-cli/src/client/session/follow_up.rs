//! Adds the profile of this run to the commands that a message tells the user to run next, so that they use the same
//! account and not the default one.
//!
//! Messages come from code that does not know the profile. They put commands in backticks or on separate lines; the
//! profile is added when a message is written to stderr.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::client::access::profile::ProfileName;

/// The profile of this run, which is one command.
static PROFILE: OnceLock<ProfileName> = OnceLock::new();

/// Sets the profile that printed commands name from now on.
pub(crate) fn set_profile(profile: &ProfileName) {
    // A run opens one profile; some commands open it twice.
    let _ = PROFILE.set(profile.clone());
}

/// The message, with its commands as they must be typed.
pub(crate) fn addressed(message: &str) -> Cow<'_, str> {
    match PROFILE.get().filter(|profile| !profile.is_default()) {
        Some(profile) => addressed_to(profile, message).into(),
        None => message.into(),
    }
}

fn addressed_to(profile: &ProfileName, message: &str) -> String {
    message.split('\n').map(|line| line_to(profile, line)).collect::<Vec<_>>().join("\n")
}

fn line_to(profile: &ProfileName, line: &str) -> String {
    let of_profile = |command: &str| format!("{command} --profile {profile}");
    if uses_a_profile(line.trim_start()) {
        return of_profile(line);
    }
    let mut parts: Vec<Cow<'_, str>> = line.split('`').map(Cow::from).collect();
    let last = parts.len() - 1;
    // Every second part is between backticks, unless it is the last: that backtick is not closed.
    for part in parts[..last].iter_mut().skip(1).step_by(2).filter(|part| uses_a_profile(part)) {
        *part = of_profile(part).into();
    }
    parts.join("`")
}

fn uses_a_profile(command: &str) -> bool {
    let mut words = command.split(' ');
    words.next() == Some("metering")
        && words.next().is_some_and(|word| word != "admin")
        && words.all(|word| word != "--profile")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_the_profile_and_nothing_else_changes() {
        let table = [
            (
                "claim it by `metering signup-pay --tx HASH`, or",
                "claim it by `metering signup-pay --tx HASH --profile x`, or",
            ),
            (
                "`metering plans` shows, `metering topup` pays.",
                "`metering plans --profile x` shows, `metering topup --profile x` pays.",
            ),
            ("then run:\n  metering rotate --nonce n\n", "then run:\n  metering rotate --nonce n --profile x\n"),
            ("run `metering topup --profile y`", "run `metering topup --profile y`"),
            ("run `metering admin verify`", "run `metering admin verify`"),
            (
                "a `metering` is not a command, and neither is a metering call",
                "a `metering` is not a command, and neither is a metering call",
            ),
            ("a stray ` and `metering plans", "a stray ` and `metering plans"),
            ("an open `metering plans", "an open `metering plans"),
            ("", ""),
        ];
        for (message, expected) in table {
            assert_eq!(addressed_to(&"x".parse().unwrap(), message), expected);
        }
    }
}
