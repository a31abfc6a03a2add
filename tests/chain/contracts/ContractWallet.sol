// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// A contract wallet owned by one key. It pays with `execute` and accepts its owner's signatures through EIP-1271,
/// because no key belongs to its own address.
contract ContractWallet {
    address public immutable owner;

    constructor(address owner_) {
        owner = owner_;
    }

    receive() external payable {}

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        if (signature.length != 65) return 0xffffffff;
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        address signer = ecrecover(hash, uint8(signature[64]), r, s);
        return signer == owner && signer != address(0) ? this.isValidSignature.selector : bytes4(0xffffffff);
    }

    function execute(address to, uint256 value, bytes calldata data) external returns (bytes memory) {
        require(msg.sender == owner, "not the owner");
        (bool done, bytes memory answer) = to.call{value: value}(data);
        require(done, "the call failed");
        return answer;
    }
}
