//! Reads several URLs from a list or from one string, since an environment variable cannot be a list.

use std::fmt;

use serde::Deserializer;
use serde::de::{Error, SeqAccess, Visitor};

use crate::rpc_url::RpcUrl;

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RpcUrl>, D::Error> {
    deserializer.deserialize_any(UrlListVisitor)
}

struct UrlListVisitor;

impl<'de> Visitor<'de> for UrlListVisitor {
    type Value = Vec<RpcUrl>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of URLs, or one string of comma-separated URLs")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<RpcUrl>, E> {
        let urls = text.split(',').map(str::trim).filter(|url| !url.is_empty());
        urls.map(|url| url.parse().map_err(E::custom)).collect()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<RpcUrl>, A::Error> {
        let mut urls = Vec::new();
        while let Some(url) = list.next_element()? {
            urls.push(url);
        }
        Ok(urls)
    }
}
