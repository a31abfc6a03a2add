//! The JSON document of `--data`.

use std::convert::Infallible;
use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::IgnoredAny;

use crate::failure::Failure;

/// Where the JSON comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Payload {
    /// On the command line.
    Text(String),
    /// In a file.
    File(PathBuf),
    /// On standard input.
    Stdin,
}

impl FromStr for Payload {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match (text, text.strip_prefix('@')) {
            ("-", _) => Self::Stdin,
            (_, Some(path)) => Self::File(path.into()),
            (text, None) => Self::Text(text.to_owned()),
        })
    }
}

impl Payload {
    /// Reads the bytes, and checks that they are JSON unless another type is allowed.
    pub(super) fn read(&self, is_json: bool) -> Result<Vec<u8>, Failure> {
        let bytes = match self {
            Self::Text(text) => text.clone().into_bytes(),
            Self::File(path) => {
                fs::read(path).map_err(|error| Failure::Failed(format!("cannot read {}: {error}", path.display())))?
            }
            Self::Stdin => {
                let mut bytes = Vec::new();
                let read = io::stdin().read_to_end(&mut bytes);
                read.map_err(|error| Failure::Failed(format!("cannot read standard input: {error}")))?;
                bytes
            }
        };
        if !is_json {
            return Ok(bytes);
        }
        match serde_json::from_slice::<IgnoredAny>(&bytes) {
            Ok(IgnoredAny) => Ok(bytes),
            Err(error) => Err(Failure::Usage(format!("--data is not JSON: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_given_in_three_ways_and_is_json() {
        assert_eq!("-".parse(), Ok(Payload::Stdin));
        assert_eq!("@a b.json".parse(), Ok(Payload::File("a b.json".into())));
        assert_eq!("{}".parse(), Ok(Payload::Text("{}".to_owned())));
        assert_eq!(Payload::Text("{\"a\": 1.10}".to_owned()).read(true).unwrap(), b"{\"a\": 1.10}");
        for bad in ["", "{", "a", "{} {}"] {
            assert!(matches!(Payload::Text(bad.to_owned()).read(true), Err(Failure::Usage(_))), "{bad}");
            assert_eq!(Payload::Text(bad.to_owned()).read(false).unwrap(), bad.as_bytes());
        }
        assert!(matches!(Payload::File("/nonexistent/x".into()).read(true), Err(Failure::Failed(_))));
    }
}
