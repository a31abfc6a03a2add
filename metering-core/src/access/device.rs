//! The name of a device in a list of sessions: its browser and system, in plain words, from `User-Agent`.
//!
//! The header is a claim of the client, good enough to recognise one's own devices. Its text is not kept.

use std::str::FromStr;

use crate::text_traits::text_traits;

/// Browsers by their token in `User-Agent`. Most also claim to be others, so the order counts.
const BROWSERS: [(&str, &str); 12] = [
    ("EdgiOS/", "Edge"),
    ("EdgA/", "Edge"),
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Vivaldi/", "Vivaldi"),
    ("FxiOS/", "Firefox"),
    ("Firefox/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
];

/// Systems, likewise.
const SYSTEMS: [(&str, &str); 8] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Macintosh", "Mac"),
    ("Linux", "Linux"),
    ("FreeBSD", "FreeBSD"),
];

/// The name of a device, such as `Firefox on Linux`.
///
/// ```
/// use metering_core::access::DeviceName;
///
/// let header = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
/// assert_eq!(DeviceName::of_user_agent(header).as_str(), "Firefox on Linux");
/// assert_eq!(DeviceName::of_user_agent("").as_str(), "Unknown device");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceName(String);

/// The text is not the name of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name of a device is one line of 1 to 60 characters")]
pub struct DeviceNameError;

impl DeviceName {
    const MAX_CHARS: usize = 60;

    /// The name of the device that sent this `User-Agent`.
    #[must_use]
    pub fn of_user_agent(text: &str) -> Self {
        let named =
            |names: &[(&str, &'static str)]| names.iter().find(|(mark, _)| text.contains(mark)).map(|(_, name)| *name);
        Self(match (named(&BROWSERS), named(&SYSTEMS)) {
            (Some(browser), Some(system)) => format!("{browser} on {system}"),
            (Some(browser), None) => browser.to_owned(),
            (None, Some(system)) => format!("Browser on {system}"),
            (None, None) => "Unknown device".to_owned(),
        })
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DeviceName {
    type Err = DeviceNameError;

    fn from_str(text: &str) -> Result<Self, DeviceNameError> {
        let is_name = (1..=Self::MAX_CHARS).contains(&text.chars().count()) && !text.chars().any(char::is_control);
        if is_name { Ok(Self(text.to_owned())) } else { Err(DeviceNameError) }
    }
}

text_traits!(DeviceName: Display);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_by_browser_and_system() {
        // User-Agent, name
        let table = [
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 \
                 Safari/537.36 Edg/130.0.0.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 \
                 Safari/605.1.15",
                "Safari on Mac",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) \
                 CriOS/130.0 Mobile/15E148 Safari/604.1",
                "Chrome on iPhone",
            ),
            (
                "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile \
                 Safari/537.36",
                "Chrome on Android",
            ),
            ("Mozilla/5.0 (X11; Linux x86_64)", "Browser on Linux"),
            ("curl/8.5.0", "curl"),
            ("<script>\n", "Unknown device"),
        ];
        for (header, name) in table {
            let device = DeviceName::of_user_agent(header);
            assert_eq!(device.as_str(), name, "{header}");
            assert_eq!(device.as_str().parse(), Ok(device), "it can be read back");
        }
        assert!("".parse::<DeviceName>().is_err() && "a\nb".parse::<DeviceName>().is_err());
    }
}
