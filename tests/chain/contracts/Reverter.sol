// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// Refuses whatever it is asked or sent, so that a transaction can be in a block and have failed.
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
