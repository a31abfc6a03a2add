//! Opens a page in the user's browser.

use std::process::{Command, Stdio};

use crate::output::notice;

/// Asks the platform to open the page; if that fails, the user still has the URL.
pub(super) fn open(url: &str) {
    if !is_page(url) {
        notice("The service's URL is not a web page; it was not opened.");
        return;
    }
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        notice(&format!("Could not open the browser ({program}: {error}); open the page yourself."));
    }
}

/// Whether the URL is a web page. The service chose it, so it must not start other programs or be read as an option.
fn is_page(url: &str) -> bool {
    (url.starts_with("https://") || url.starts_with("http://")) && url.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_urls_are_opened() {
        assert!(is_page("https://api.example.com/verify?code=ABCD-EFGH"));
        for bad in ["", "--help", "file:///etc/passwd", "javascript:alert(1)", "https://a b", "https://a\n", "/verify"]
        {
            assert!(!is_page(bad), "{bad}");
        }
    }
}
