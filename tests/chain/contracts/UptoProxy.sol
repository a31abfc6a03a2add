// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

interface Permits {
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

    function permitWitnessTransferFrom(
        PermitTransferFrom memory permit,
        SignatureTransferDetails calldata details,
        address owner,
        bytes32 witness,
        string calldata witnessTypeString,
        bytes calldata signature
    ) external;
}

/// Transfers a part of a permit, for the facilitator that was signed for: a stand-in for x402's proxy for the scheme `upto`,
/// written for these tests from its specification. It has no constructor and no immutables, so that its code can be placed at
/// the proxy's address. Its errors are texts.
contract UptoProxy {
    struct Witness {
        address to;
        address facilitator;
        uint256 validAfter;
    }

    Permits private constant PERMIT2 = Permits(0x000000000022D473030F116dDEE9F6B43aC78BA3);

    event Settled();

    function settle(
        Permits.PermitTransferFrom calldata permit,
        uint256 amount,
        address owner,
        Witness calldata witness,
        bytes calldata signature
    ) external {
        require(amount <= permit.permitted.amount, "AmountExceedsPermitted");
        require(amount != 0, "InvalidAmount");
        require(msg.sender == witness.facilitator, "UnauthorizedFacilitator");
        require(block.timestamp >= witness.validAfter, "PaymentTooEarly");
        bytes32 hash = keccak256(
            abi.encode(
                keccak256("Witness(address to,address facilitator,uint256 validAfter)"),
                witness.to,
                witness.facilitator,
                witness.validAfter
            )
        );
        PERMIT2.permitWitnessTransferFrom(
            permit,
            Permits.SignatureTransferDetails(witness.to, amount),
            owner,
            hash,
            "Witness witness)TokenPermissions(address token,uint256 amount)Witness(address to,address facilitator,uint256 validAfter)",
            signature
        );
        emit Settled();
    }
}
