// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// Reverts every call and payment, so that a transaction can be mined and have failed.
contract Reverter {
    fallback() external payable {
        revert("always");
    }

    receive() external payable {
        revert("always");
    }

    function fail() external pure {
        revert("always");
    }
}
