// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// Emits events for transfers that never happened. Any contract can do this, so only logs from the pinned token's own
/// address may count.
contract ForgedTransfers {
    event Transfer(address indexed from, address indexed to, uint256 value);

    function forge(address from, address to, uint256 value) external {
        emit Transfer(from, to, value);
    }

    /// Like an NFT (ERC-721): the same first topic, but the number is a fourth topic and the data is empty.
    function forgeNft(address from, address to, uint256 id) external {
        bytes32 topic = Transfer.selector;
        assembly ("memory-safe") {
            log4(0, 0, topic, from, to, id)
        }
    }

    /// Like some old tokens: the same first topic, and everything else in the data.
    function forgeUnindexed(address from, address to, uint256 value) external {
        bytes32 topic = Transfer.selector;
        bytes memory data = abi.encode(from, to, value);
        assembly ("memory-safe") {
            log1(add(data, 32), mload(data), topic)
        }
    }
}
