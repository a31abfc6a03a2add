// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

interface Transferable {
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// Moves tokens by their owner's permit: a stand-in for Permit2, written for these tests from what it specifies. It has one of
/// its functions, with the same message, nonces and limits. It has no constructor and no immutables, so that its code can be
/// placed at Permit2's address. Its errors are texts.
contract Permit2 {
    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    struct PermitTransferFrom {
        TokenPermissions permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct SignatureTransferDetails {
        address to;
        uint256 requestedAmount;
    }

    mapping(address => mapping(uint256 => uint256)) public nonceBitmap;

    function permitWitnessTransferFrom(
        PermitTransferFrom memory permit,
        SignatureTransferDetails calldata details,
        address owner,
        bytes32 witness,
        string calldata witnessTypeString,
        bytes calldata signature
    ) external {
        require(block.timestamp <= permit.deadline, "SignatureExpired");
        require(details.requestedAmount <= permit.permitted.amount, "InvalidAmount");
        _useNonce(owner, permit.nonce);
        bytes32 digest = keccak256(abi.encodePacked("\x19\x01", _domain(), _message(permit, witness, witnessTypeString)));
        require(_recover(digest, signature) == owner, "InvalidSigner");
        bool moved = Transferable(permit.permitted.token).transferFrom(owner, details.to, details.requestedAmount);
        require(moved, "TRANSFER_FROM_FAILED");
    }

    /// A nonce names a word, and a bit in it.
    function _useNonce(address owner, uint256 nonce) private {
        uint256 bit = 1 << (nonce & 0xff);
        uint256 word = nonceBitmap[owner][nonce >> 8];
        require(word & bit == 0, "InvalidNonce");
        nonceBitmap[owner][nonce >> 8] = word | bit;
    }

    function _domain() private view returns (bytes32) {
        return keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,uint256 chainId,address verifyingContract)"),
                keccak256("Permit2"),
                block.chainid,
                address(this)
            )
        );
    }

    /// The spender is who calls.
    function _message(PermitTransferFrom memory permit, bytes32 witness, string calldata witnessTypeString)
        private
        view
        returns (bytes32)
    {
        bytes32 kind = keccak256(
            abi.encodePacked(
                "PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,",
                witnessTypeString
            )
        );
        bytes32 permitted = keccak256(
            abi.encode(
                keccak256("TokenPermissions(address token,uint256 amount)"),
                permit.permitted.token,
                permit.permitted.amount
            )
        );
        return keccak256(abi.encode(kind, permitted, msg.sender, permit.nonce, permit.deadline, witness));
    }

    function _recover(bytes32 digest, bytes calldata signature) private pure returns (address signer) {
        require(signature.length == 65, "InvalidSignatureLength");
        signer = ecrecover(digest, uint8(signature[64]), bytes32(signature[:32]), bytes32(signature[32:64]));
        require(signer != address(0), "InvalidSignature");
    }
}
