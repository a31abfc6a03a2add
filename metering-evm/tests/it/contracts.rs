//! Contract queries.

use metering_core::chains::ChainReader;
use serde_json::json;

use crate::node::{Chain, Fault, address, word};
use crate::scene::{alone, unavailable};

const DECIMALS: &str = "0x313ce567";
const IS_VALID_SIGNATURE: &str = "0x1626ba7e";

#[tokio::test]
async fn decimals_are_a_number_of_8_bits_or_none() {
    // response, decimals
    let table = [
        (Ok(json!(word("0x12"))), Some(18)),
        (Ok(json!(word("0x0"))), Some(0)),
        (Ok(json!(word("0xff"))), Some(255)),
        (Ok(json!("0x")), None),
        (Err((3, "execution reverted")), None),
        (Err((-32_000, "execution reverted")), None),
        (Err((-32_000, "invalid opcode: INVALID")), None),
    ];
    for (output, decimals) in table {
        let (node, reader) = alone(Chain::default().with_contract(address(1), DECIMALS, output.clone())).await;
        assert_eq!(reader.token_decimals(address(1)).await, Ok(decimals), "{output:?}");
        assert_eq!(node.state().requests, [["eth_chainId", "eth_call"]]);
    }
    for output in [word("0x100"), format!("0x01{}", "0".repeat(62)), "0x12".to_owned()] {
        let chain = Chain::default().with_contract(address(1), DECIMALS, Ok(json!(output)));
        let (_node, reader) = alone(chain).await;
        let why = unavailable(reader.token_decimals(address(1)).await);
        assert!(why.contains("not a number of 8 bits"), "{output}: {why}");
    }
    let (node, reader) = alone(Chain::default()).await;
    node.always(Fault::Errs(-32_000, "missing trie node"));
    assert!(unavailable(reader.token_decimals(address(1)).await).contains("missing trie node"));
}

#[tokio::test]
async fn signature_is_accepted_only_with_the_full_magic_value() {
    let magic = format!("0x1626ba7e{}", "0".repeat(56));
    // response, accepted
    let table = [
        (Ok(json!(magic)), true),
        (Ok(json!(format!("{magic}{}", "0".repeat(64)))), true),
        (Ok(json!(word("0x1626ba7e"))), false),
        (Ok(json!("0x1626ba7e")), false),
        (Ok(json!(format!("0xffffffff{}", "0".repeat(56)))), false),
        // What the identity precompile returns: its input.
        (Ok(json!(format!("0x1626ba7e{}", "ab".repeat(96)))), false),
        (Ok(json!("0x")), false),
        (Err((3, "execution reverted")), false),
        (Err((-32_015, "VM execution error.")), false),
    ];
    for (output, accepted) in table {
        let (node, reader) =
            alone(Chain::default().with_contract(address(1), IS_VALID_SIGNATURE, output.clone())).await;
        assert_eq!(reader.accepts_signature(address(1), [0xab; 32], &[7; 65]).await, Ok(accepted), "{output:?}");
        let input = node.state().parameters[0][0]["data"].as_str().unwrap().to_owned();
        let call =
            ["1626ba7e", &"ab".repeat(32), &word("0x40")[2..], &word("0x41")[2..], &"07".repeat(65), &"00".repeat(31)];
        assert_eq!(input, format!("0x{}", call.concat()));
    }
    let (node, reader) = alone(Chain::default()).await;
    node.always(Fault::Errs(-32_000, "daily quota used up"));
    assert!(unavailable(reader.accepts_signature(address(1), [0; 32], &[]).await).contains("daily quota used up"));
}

#[tokio::test]
async fn delegation_is_not_contract_code() {
    let delegation = format!("0xef0100{}", "ab".repeat(20));
    // code, contract
    let table = [("0x", false), ("0x6080", true), (&*delegation, false), ("0xef0100", true)];
    for (code, contract) in table {
        let mut chain = Chain::default();
        chain.code.insert(address(1), code.to_owned());
        let (_node, reader) = alone(chain).await;
        assert_eq!(reader.has_code(address(1)).await, Ok(contract), "{code}");
    }
}
