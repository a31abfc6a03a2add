//! What one source reports about a token with signed authorizations (EIP-3009), and about one of these.

use metering_core::Timestamp;
use metering_core::chains::{Address, TokenDomain, TokenUnits, TxHash};
use metering_pay::offers::{Asset, AuthorizationId, PERMIT2, Spendable};

use crate::block::Head;
use crate::call::{Call, word_of};
use crate::capacity::Search;
use crate::contract::{self, first_word, output};
use crate::encoding::{Data, Height, Quantity};
use crate::failure::Failure;
use crate::log::Log;
use crate::results::BatchResults;
use crate::scan::{self, Scan, SearchMethod};
use crate::source::Source;

/// `DOMAIN_SEPARATOR()` (EIP-3009).
const DOMAIN_SEPARATOR: [u8; 4] = [0x36, 0x44, 0xe5, 0x15];

/// `eip712Domain()` (EIP-5267).
const EIP_712_DOMAIN: [u8; 4] = [0x84, 0xb0, 0x19, 0x6e];

/// `name()` (EIP-20).
const NAME: [u8; 4] = [0x06, 0xfd, 0xde, 0x03];

/// `version()`, which tokens with signed authorizations usually have.
const VERSION: [u8; 4] = [0x54, 0xfd, 0x4d, 0x50];

/// `authorizationState(address,bytes32)` (EIP-3009).
const AUTHORIZATION_STATE: [u8; 4] = [0xe9, 0x4a, 0x01, 0x02];

/// `nonceBitmap(address,uint256)` (Permit2).
const NONCE_BITMAP: [u8; 4] = [0x4f, 0xe0, 0x2b, 0x44];

/// `balanceOf(address)` (EIP-20).
const BALANCE_OF: [u8; 4] = [0x70, 0xa0, 0x82, 0x31];

/// `allowance(address,address)` (EIP-20).
const ALLOWANCE: [u8; 4] = [0xdd, 0x62, 0xed, 0x3e];

/// The fields of a domain in EIP-5267: name, version, chain id and contract, without a salt.
const FIELDS: u8 = 0b0_1111;

/// How much a chain's clock may differ from the one that `since` was read from.
const CLOCK_MARGIN_SECONDS: i64 = 120;

/// How many blocks back to look for a block of a given time. Each step is twice as far back as the one before, so at
/// most twice the necessary blocks are searched.
const BLOCKS_BACK: [u32; 20] = {
    let mut back = [16; 20];
    let mut index = 1;
    while index < back.len() {
        back[index] = back[index - 1] * 2;
        index += 1;
    }
    back
};

/// The token at `token`, if it can be offered.
pub(crate) async fn asset(source: &Source, chain_id: u64, token: Address) -> Result<Option<Asset>, Failure> {
    // Only tests whether the contract has the function; the authorization need not exist.
    let any = state_call(Address::ZERO, &[0; 32]);
    let inputs: [&[u8]; 6] = [&contract::DECIMALS, &DOMAIN_SEPARATOR, &EIP_712_DOMAIN, &NAME, &VERSION, &any];
    let calls = inputs.map(|input| Call::contract(token, input));
    let read = |results: &mut BatchResults<'_>| {
        let decimals = contract::read_decimals(output(results)?.as_deref())?;
        let separator = output(results)?.as_deref().and_then(first_word);
        let own = output(results)?.and_then(|output| domain(&output, chain_id, token));
        let (name, version) = (output(results)?, output(results)?);
        let has_state = output(results)?.as_deref().and_then(flag).is_some();
        let usual = text(name, 0).zip(text(version, 0));
        let usual = usual.map(|(name, version)| TokenDomain { name, version, chain_id, contract: token });
        let fitting = own.into_iter().chain(usual).find(|domain| Some(domain.separator()) == separator);
        let (Some(domain), Some(decimals), true) = (fitting, decimals, has_state) else { return Ok(None) };
        Ok(Some(Asset { domain, decimals }))
    };
    source.send_batch(&calls, read).await
}

/// Whether the contract has executed or cancelled an authorization.
pub(crate) async fn is_used(source: &Source, id: &AuthorizationId) -> Result<bool, Failure> {
    let call = Call::contract(id.token, &state_call(id.payer, id.nonce.as_bytes()));
    let read = |results: &mut BatchResults<'_>| {
        let Data(output) = results.next()?;
        flag(&output).ok_or_else(|| Failure::malformed("eth_call", "the state of an authorization is not a boolean"))
    };
    source.send_batch(&[call], read).await
}

/// Whether Permit2 has executed or cancelled a permit. Each bit of a word is a nonce; the rest of the nonce names the word.
pub(crate) async fn is_permit_used(source: &Source, id: &AuthorizationId) -> Result<bool, Failure> {
    let nonce = id.nonce.as_bytes();
    let (position, [bit]) = (&nonce[..31], [nonce[31]]);
    let call = Call::contract(PERMIT2, &[&NONCE_BITMAP[..], &word_of(id.payer), &[0_u8], position].concat());
    let bitmap = source.send_batch(&[call], |results| word(results, "the nonces of a payer are not a word")).await?;
    Ok(bitmap[31 - usize::from(bit / 8)] & (1_u8 << (bit % 8)) != 0)
}

/// How much of an owner's tokens Permit2 may transfer.
pub(crate) async fn spendable(source: &Source, token: Address, owner: Address) -> Result<Spendable, Failure> {
    let balance = Call::contract(token, &[&BALANCE_OF[..], &word_of(owner)].concat());
    let allowance = Call::contract(token, &[&ALLOWANCE[..], &word_of(owner), &word_of(PERMIT2)].concat());
    let read = |results: &mut BatchResults<'_>| {
        let balance = TokenUnits::from_word(word(results, "the balance of a token is not a number")?);
        let allowance = TokenUnits::from_word(word(results, "the allowance of a token is not a number")?);
        Ok(Spendable { balance, allowance })
    };
    source.send_batch(&[balance, allowance], read).await
}

/// The word that a contract returned.
fn word(results: &mut BatchResults<'_>, problem: &'static str) -> Result<[u8; 32], Failure> {
    let Data(output) = results.next()?;
    first_word(&output).ok_or_else(|| Failure::malformed("eth_call", problem))
}

/// The transaction that executed an authorization in the blocks since about this time.
pub(crate) async fn executed_in(
    source: &Source,
    id: &AuthorizationId,
    since: Timestamp,
) -> Result<Option<TxHash>, Failure> {
    let range = blocks_since(source, since.unix_millis() / 1_000 - CLOCK_MARGIN_SECONDS).await?;
    let method = SearchMethod {
        search: Search::Logs,
        calls: |from, to| vec![Call::executions(id, from, to)],
        read: |results: &mut BatchResults<'_>, from, to| {
            let logs: Vec<Log> = results.next()?;
            let executions = logs.iter().filter(|log| log.is_execution(id.token, id.payer, id.nonce.as_bytes()));
            executions.map(|log| scan::found(log, (from, to))).collect()
        },
    };
    let mut found = Scan::default();
    method.search(source, range, &mut found).await?;
    match (found.found.last(), found.unreadable.keys().next()) {
        (Some(found), _) => Ok(Some(found.hash)),
        (None, None) => Ok(None),
        (None, Some(block)) => Err(Failure::malformed("eth_getLogs", format_args!("block {block} cannot be searched"))),
    }
}

/// The newest block, and one that is older than this time, if the source has one.
async fn blocks_since(source: &Source, unix_seconds: i64) -> Result<(u64, u64), Failure> {
    let Height(newest) = source.send_batch(&[Call::block_number()], |results| results.next()).await?;
    let numbers = BLOCKS_BACK.map(|back| newest.saturating_sub(back.into()));
    let calls = numbers.map(|number| Call::block(number, false));
    let first = source.send_batch(&calls, |results| {
        let mut first = None;
        for number in numbers {
            let head: Option<Head> = results.next()?;
            let is_older = |head: Head| {
                let Quantity(seconds) = head.timestamp;
                head.number == Height(number) && i64::try_from(seconds).is_ok_and(|seconds| seconds < unix_seconds)
            };
            if head.is_some_and(is_older) {
                first = first.or(Some(number));
            }
        }
        Ok(first)
    });
    Ok((first.await?.unwrap_or(0), newest))
}

/// The call of `authorizationState`.
fn state_call(payer: Address, nonce: &[u8; 32]) -> Vec<u8> {
    [&AUTHORIZATION_STATE[..], &word_of(payer), nonce].concat()
}

/// The boolean that a contract returned.
fn flag(output: &[u8]) -> Option<bool> {
    match first_word(output)? {
        [0, .., flag @ (0 | 1)] if output[..31].iter().all(|byte| *byte == 0) => Some(flag == 1),
        _ => None,
    }
}

/// Reads the domain from the return data of `eip712Domain()`: fields, name, version, chain id, contract, salt and
/// extensions.
fn domain(output: &[u8], chain_id: u64, contract: Address) -> Option<TokenDomain> {
    let word = |index: usize| output.get(index * 32..)?.first_chunk::<32>().copied();
    let mut id = [0; 32];
    id[24..].copy_from_slice(&chain_id.to_be_bytes());
    let is_it = word(0)?[0] == FIELDS && word(3)? == id && word(4)? == word_of(contract);
    let (name, version) = (text(Some(output), 1)?, text(Some(output), 2)?);
    is_it.then_some(TokenDomain { name, version, chain_id, contract })
}

/// The text that the word with this index points to, in the contract ABI.
fn text(output: Option<impl AsRef<[u8]>>, index: usize) -> Option<String> {
    let output = output.as_ref()?.as_ref();
    let number = |at: usize| {
        let word = output.get(at..)?.first_chunk::<32>()?;
        let (zeros, number) = word.split_at(24);
        let number = u64::from_be_bytes(number.try_into().ok()?);
        usize::try_from(number).ok().filter(|_| zeros.iter().all(|byte| *byte == 0))
    };
    let start = number(index * 32)?;
    let length = number(start)?;
    let bytes = output.get(start.checked_add(32)?..)?.get(..length)?;
    String::from_utf8(bytes.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use sha3::{Digest, Keccak256};

    use super::*;

    #[test]
    fn selectors_are_the_hashes_of_the_signatures() {
        let table = [
            (DOMAIN_SEPARATOR, "DOMAIN_SEPARATOR()"),
            (EIP_712_DOMAIN, "eip712Domain()"),
            (NAME, "name()"),
            (VERSION, "version()"),
            (AUTHORIZATION_STATE, "authorizationState(address,bytes32)"),
            (NONCE_BITMAP, "nonceBitmap(address,uint256)"),
            (BALANCE_OF, "balanceOf(address)"),
            (ALLOWANCE, "allowance(address,address)"),
        ];
        for (selector, signature) in table {
            assert_eq!(selector, Keccak256::digest(signature)[..4], "{signature}");
        }
    }

    #[test]
    fn texts_are_read_as_the_abi_says() {
        let word = |number: u8| format!("{number:064x}");
        let bytes = |words: &[String]| hex::decode(words.concat()).ok();
        let usdc = format!("{:0<64}", hex::encode("USDC"));
        assert_eq!(text(bytes(&[word(32), word(4), usdc.clone()]), 0).as_deref(), Some("USDC"));
        assert_eq!(text(bytes(&[word(9), word(64), word(4), usdc.clone()]), 1).as_deref(), Some("USDC"));
        assert_eq!(text(bytes(&[word(32), word(0)]), 0).as_deref(), Some(""));
        // Cut off, beyond the end, as 32 bytes without a length, not UTF-8, lengths that overflow.
        let wrong = [
            vec![],
            vec![word(32)],
            vec![word(32), word(33), usdc.clone()],
            vec![word(96), word(4), usdc.clone()],
            vec![usdc.clone()],
            vec![word(32), word(1), "ff".repeat(32)],
            vec![word(32), "f".repeat(64), usdc.clone()],
            vec!["f".repeat(64), word(4), usdc],
            vec![format!("{:0>64}", "f".repeat(16)), word(4)],
        ];
        for words in wrong {
            assert_eq!(text(bytes(&words), 0), None, "{words:?}");
        }
    }

    #[test]
    fn blocks_back_double() {
        assert_eq!((BLOCKS_BACK[0], BLOCKS_BACK[1], BLOCKS_BACK[19]), (16, 32, 8_388_608));
    }
}
