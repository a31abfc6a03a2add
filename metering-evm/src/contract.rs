//! Contract queries: whether there is code at an address, a token's decimals (EIP-20), and whether a contract wallet
//! accepts a signature (EIP-1271).

use metering_core::chains::{AccountCode, Address};
use sha3::{Digest, Keccak256};

use crate::call::Call;
use crate::encoding::Data;
use crate::failure::Failure;
use crate::results::BatchResults;
use crate::source::Source;

const METHOD: &str = "eth_call";

/// `decimals()` (EIP-20).
pub(crate) const DECIMALS: [u8; 4] = [0x31, 0x3c, 0xe5, 0x67];

/// `isValidSignature(bytes32,bytes)` (EIP-1271). The function returns the same value for a valid signature.
const IS_VALID_SIGNATURE: [u8; 4] = [0x16, 0x26, 0xba, 0x7e];

/// The first bytes of the code of an address with a delegation; the target's address follows (EIP-7702).
const DELEGATION: [u8; 3] = [0xef, 0x01, 0x00];

/// The decimals of `token`; `None` if there is no contract that returns them.
pub(crate) async fn decimals(source: &Source, token: Address) -> Result<Option<u8>, Failure> {
    read_decimals(call(source, token, &DECIMALS).await?.as_deref())
}

/// Reads the decimals from a contract's return data.
pub(crate) fn read_decimals(output: Option<&[u8]>) -> Result<Option<u8>, Failure> {
    let Some(output) = output.filter(|output| !output.is_empty()) else { return Ok(None) };
    match first_word(output) {
        Some([0, .., decimals]) if output[..31].iter().all(|byte| *byte == 0) => Ok(Some(decimals)),
        _ => Err(Failure::malformed(METHOD, "the decimals are not a number of 8 bits")),
    }
}

/// The kind of code at `address`.
///
/// An address with a delegation (EIP-7702) is still controlled by its private key, so it is not a contract. No contract
/// can look like one, since no contract code may begin with that byte (EIP-3541).
pub(crate) async fn code(source: &Source, address: Address) -> Result<AccountCode, Failure> {
    let Data(code) = source.send_batch(&[Call::code(address)], |results| results.next()).await?;
    Ok(match code.as_slice() {
        [] => AccountCode::Empty,
        code if is_delegation(code) => AccountCode::Delegated,
        _ => AccountCode::Contract,
    })
}

/// The hash of the code at `address`, if there is any. Accounts with the same delegation have the same hash.
pub(crate) async fn code_hash(source: &Source, address: Address) -> Result<Option<[u8; 32]>, Failure> {
    let Data(code) = source.send_batch(&[Call::code(address)], |results| results.next()).await?;
    Ok((!code.is_empty()).then(|| Keccak256::digest(code).into()))
}

fn is_delegation(code: &[u8]) -> bool {
    code.len() == DELEGATION.len() + 20 && code.starts_with(&DELEGATION)
}

/// Whether the contract at `wallet` accepts `signature` over `digest`.
///
/// The whole word must match, not only its first four bytes: the identity precompile at address 4 returns its input,
/// which begins with exactly the bytes that mean yes.
pub(crate) async fn accepts(
    source: &Source,
    wallet: Address,
    digest: [u8; 32],
    signature: &[u8],
) -> Result<bool, Failure> {
    let mut yes = [0; 32];
    yes[..4].copy_from_slice(&IS_VALID_SIGNATURE);
    let output = call(source, wallet, &is_valid_signature(digest, signature)).await?;
    Ok(output.as_deref().and_then(first_word) == Some(yes))
}

/// The return data of a contract call, empty if there is no contract; `None` if the contract reverted.
async fn call(source: &Source, to: Address, input: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
    source.send_batch(&[Call::contract(to, input)], output).await
}

/// Reads the return data of a contract call; `None` if the contract reverted.
pub(crate) fn output(results: &mut BatchResults<'_>) -> Result<Option<Vec<u8>>, Failure> {
    match results.next_or_error::<Data>()? {
        Ok(Data(output)) => Ok(Some(output)),
        Err(error) if error.is_revert() => Ok(None),
        Err(error) => Err(Failure::Rpc(error)),
    }
}

pub(crate) fn first_word(output: &[u8]) -> Option<[u8; 32]> {
    output.first_chunk().copied()
}

/// The call in the contract ABI: the digest, the offset of the bytes, their length, and the bytes, padded to words.
fn is_valid_signature(digest: [u8; 32], signature: &[u8]) -> Vec<u8> {
    const WORD: usize = 32;
    let length = u64::try_from(signature.len()).unwrap_or(u64::MAX);
    let mut input = IS_VALID_SIGNATURE.to_vec();
    input.extend_from_slice(&digest);
    input.extend_from_slice(&word(64));
    input.extend_from_slice(&word(length));
    input.extend_from_slice(signature);
    let padded = signature.len().next_multiple_of(WORD) - signature.len();
    input.extend(std::iter::repeat_n(0, padded));
    input
}

fn word(number: u64) -> [u8; 32] {
    let mut word = [0; 32];
    word[24..].copy_from_slice(&number.to_be_bytes());
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_the_hashes_of_the_signatures() {
        assert_eq!(DECIMALS, Keccak256::digest(b"decimals()")[..4]);
        assert_eq!(IS_VALID_SIGNATURE, Keccak256::digest(b"isValidSignature(bytes32,bytes)")[..4]);
    }

    #[test]
    fn the_call_is_encoded_as_the_abi_says() {
        let expected = concat!(
            "1626ba7e",
            "abababababababababababababababababababababababababababababababab",
            "0000000000000000000000000000000000000000000000000000000000000040",
            "0000000000000000000000000000000000000000000000000000000000000003",
            "0102030000000000000000000000000000000000000000000000000000000000",
        );
        assert_eq!(hex::encode(is_valid_signature([0xab; 32], &[1, 2, 3])), expected);
        // bytes, length of the call
        for (bytes, length) in [(0, 100), (1, 132), (32, 132), (33, 164), (65, 196)] {
            assert_eq!(is_valid_signature([0; 32], &vec![7; bytes]).len(), length, "{bytes}");
        }
    }
}
