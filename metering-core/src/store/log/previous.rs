//! The log that another one follows: connects the two for readers of the first.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::store::log::origin::origin_epoch;

/// A log as it ended. Its text is `ORIGIN:SIZE:ROOT`, with the root in base64; no other spelling is accepted, nor a root that
/// a log of this size cannot have.
///
/// ```
/// # use metering_core::store::PreviousLog;
/// let text = "localhost:8787/log/1:70400:CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=";
/// let log: PreviousLog = text.parse()?;
/// assert_eq!((log.origin.as_str(), log.size, log.epoch()), ("localhost:8787/log/1", 70_400, Some(1)));
/// assert_eq!(log.to_string(), text);
/// # Ok::<(), metering_core::store::MalformedPreviousLog>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousLog {
    /// Its origin.
    pub origin: String,
    /// How many leaves it had.
    pub size: u64,
    /// The root of their tree.
    pub root: [u8; 32],
}

/// The text does not describe the end of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected ORIGIN:SIZE:ROOT, such as example.com/log/1:70400:CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=")]
pub struct MalformedPreviousLog;

impl PreviousLog {
    /// The number of its epoch.
    #[must_use]
    pub fn epoch(&self) -> Option<u32> {
        origin_epoch(&self.origin)
    }

    /// Its root in base64, as checkpoints have it.
    #[must_use]
    pub fn root_text(&self) -> String {
        STANDARD.encode(self.root)
    }
}

impl fmt::Display for PreviousLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.origin, self.size, self.root_text())
    }
}

impl FromStr for PreviousLog {
    type Err = MalformedPreviousLog;

    fn from_str(text: &str) -> Result<Self, MalformedPreviousLog> {
        // From the end: the origin may have a port.
        let mut parts = text.rsplitn(3, ':');
        let root = parts.next().and_then(|root| STANDARD.decode(root).ok());
        let root = root.and_then(|root| <[u8; 32]>::try_from(root).ok());
        let size = parts.next().and_then(|size| size.parse::<u64>().ok());
        let unfit = |c: char| c.is_whitespace() || c.is_control() || c == '+';
        let origin = parts.next().filter(|origin| origin_epoch(origin).is_some() && !origin.contains(unfit));
        match (origin, size, root) {
            (Some(origin), Some(size), Some(root)) => {
                let log = Self { origin: origin.to_owned(), size, root };
                let is_empty = root == <[u8; 32]>::from(Sha256::digest(b""));
                let is_sound = is_empty == (size == 0) && log.to_string() == text;
                if is_sound { Ok(log) } else { Err(MalformedPreviousLog) }
            }
            _ => Err(MalformedPreviousLog),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_texts_are_refused() {
        let root = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        assert!(format!("example.com/log/1:0:{root}").parse::<PreviousLog>().is_ok());
        for text in [
            String::new(),
            "example.com/log/1".to_owned(),
            format!("example.com/log/1:{root}"),
            format!("example.com/log/1:-1:{root}"),
            format!("example.com/log/1:+0:{root}"),
            format!("example.com/log/1:00:{root}"),
            format!("example.com/log/1:1:{root}"),
            "example.com/log/1:0:CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=".to_owned(),
            format!("example.com/log:0:{root}"),
            format!("example.com/a b/log/1:0:{root}"),
            "example.com/log/1:0:47DEQpj8HBSa".to_owned(),
            "example.com/log/1:0:?".to_owned(),
        ] {
            assert_eq!(text.parse::<PreviousLog>(), Err(MalformedPreviousLog), "{text}");
        }
    }
}
