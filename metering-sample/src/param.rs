//! Request parameters, read from the path and the query.
//!
//! The gateway has already checked their types against the catalogue and normalized them. This file checks that they
//! name something that exists and are within limits. Numbers and booleans contain no characters that need
//! percent-encoding, so nothing is decoded.

use metering_core::chains::Address;

use crate::chain::{Block, BlockNumber, Chain};
use crate::pool::Pool;
use crate::refusal::Refusal;
use crate::token::Token;

/// The query of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query<'a>(&'a str);

impl<'a> Query<'a> {
    pub(crate) fn new(query: Option<&'a str>) -> Self {
        Self(query.unwrap_or_default())
    }

    /// A number, if the parameter is present.
    pub(crate) fn number(self, name: &'static str) -> Result<Option<u64>, Refusal> {
        self.get(name).map(|text| number(name, text)).transpose()
    }

    /// A boolean, `false` when the parameter is absent.
    pub(crate) fn flag(self, name: &'static str) -> Result<bool, Refusal> {
        match self.get(name) {
            None => Ok(false),
            Some(text) if text.eq_ignore_ascii_case("true") || text == "1" => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") || text == "0" => Ok(false),
            Some(_) => Err(Refusal::invalid(name, "must be true or false")),
        }
    }

    fn get(self, name: &str) -> Option<&'a str> {
        let mut pairs = self.0.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        pairs.find_map(|(candidate, value)| (candidate == name).then_some(value))
    }
}

/// The pool named in a path segment.
pub(crate) fn pool(text: &str) -> Result<&'static Pool, Refusal> {
    let address = address("pool_address", text)?;
    Pool::at(address).ok_or(Refusal::UnknownPool(address))
}

/// The token named in a path segment.
pub(crate) fn token(text: &str) -> Result<&'static Token, Refusal> {
    let address = address("token_address", text)?;
    Token::at(address).ok_or(Refusal::UnknownToken(address))
}

fn address(name: &'static str, text: &str) -> Result<Address, Refusal> {
    text.parse().map_err(|error| Refusal::invalid(name, format!("is invalid: {error}")))
}

/// An integer, zero or more.
pub(crate) fn number(name: &'static str, text: &str) -> Result<u64, Refusal> {
    // Parse as signed, like the catalogue does, so that both accept the same numbers.
    let number: i64 = text.parse().map_err(|_| Refusal::invalid(name, "must be an integer, such as 42"))?;
    u64::try_from(number).map_err(|_| Refusal::invalid(name, "must not be negative"))
}

/// A duration in seconds, at least one.
pub(crate) fn seconds(name: &'static str, text: &str) -> Result<u64, Refusal> {
    at_least_one(name, number(name, text)?)
}

/// Refuses zero.
pub(crate) fn at_least_one(name: &'static str, number: u64) -> Result<u64, Refusal> {
    if number == 0 { Err(Refusal::invalid(name, "must be at least 1")) } else { Ok(number) }
}

/// The block named in a path segment; it must be final.
pub(crate) fn final_block(chain: &Chain, text: &str) -> Result<Block, Refusal> {
    let number = BlockNumber::from_u64(number("block_number", text)?);
    let finalized = chain.finalized().map(|block| block.number);
    if finalized.is_some_and(|finalized| number <= finalized) {
        Ok(chain.block(number))
    } else {
        Err(Refusal::NotFinal { finalized })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_parameters_are_found_by_name_and_type_checked() {
        let query = Query::new(Some("page=3&size=-1&metadata=True&time_interval=x&flag=2&bare"));
        assert_eq!(query.number("page"), Ok(Some(3)));
        assert_eq!(query.number("absent"), Ok(None));
        assert_eq!(query.number("size"), Err(Refusal::invalid("size", "must not be negative")));
        assert!(query.number("time_interval").is_err());
        assert!(query.number("bare").is_err());
        assert_eq!(query.flag("metadata"), Ok(true));
        assert_eq!(query.flag("absent"), Ok(false));
        assert!(query.flag("flag").is_err());
        assert_eq!(Query::new(None).number("page"), Ok(None));
    }

    #[test]
    fn addresses_are_malformed_unknown_or_known() {
        let known = "0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640";
        assert_eq!(pool(known).unwrap().address.to_string(), known);
        // A pool is not a token.
        assert!(matches!(token(known), Err(Refusal::UnknownToken(_))));
        assert!(matches!(pool("0x0000000000000000000000000000000000000000"), Err(Refusal::UnknownPool(_))));
        // The second one fails its EIP-55 checksum.
        for text in ["", "0x88", "0x88E6a0c2ddd26feeb64f039a2c41296fcb3f5640", "not%20hex"] {
            assert!(matches!(pool(text), Err(Refusal::Invalid { name: "pool_address", .. })), "{text}");
        }
    }
}
