//! Reads numbers of blocks from one number, a list, or one string, since an environment variable cannot be a list.

use std::fmt;

use serde::Deserializer;
use serde::de::{Error, SeqAccess, Visitor};

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
    deserializer.deserialize_any(LogBlocksVisitor)
}

struct LogBlocksVisitor;

impl<'de> Visitor<'de> for LogBlocksVisitor {
    type Value = Vec<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of blocks, or a list with one for each of rpc_urls")
    }

    fn visit_u64<E: Error>(self, blocks: u64) -> Result<Vec<u64>, E> {
        Ok(vec![blocks])
    }

    fn visit_i64<E: Error>(self, blocks: i64) -> Result<Vec<u64>, E> {
        u64::try_from(blocks).map(|blocks| vec![blocks]).map_err(E::custom)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<u64>, E> {
        let numbers = text.split(',').map(str::trim).filter(|number| !number.is_empty());
        numbers.map(|number| number.parse().map_err(E::custom)).collect()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<u64>, A::Error> {
        let mut numbers = Vec::new();
        while let Some(number) = list.next_element()? {
            numbers.push(number);
        }
        Ok(numbers)
    }
}
