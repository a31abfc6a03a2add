// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// A contract wallet whose signatures are longer than those of keys, as with many smart wallets: the number of the owner,
/// and the owner's signature. It has one owner, whose number is 0.
contract SmartWallet {
    address public immutable owner;

    constructor(address owner_) {
        owner = owner_;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        if (signature.length != 97 || bytes32(signature[0:32]) != 0) return 0xffffffff;
        bytes32 r = bytes32(signature[32:64]);
        bytes32 s = bytes32(signature[64:96]);
        address signer = ecrecover(hash, uint8(signature[96]), r, s);
        return signer == owner && signer != address(0) ? this.isValidSignature.selector : bytes4(0xffffffff);
    }
}
