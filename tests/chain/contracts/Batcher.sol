// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import {Token} from "./Token.sol";

/// Moves more than once, or on behalf of somebody, in one transaction: a transaction is not the same as a payment.
/// For tokens its caller must have been given an allowance by `from`; anyone may use it, which is fine in tests only.
contract Batcher {
    /// Pays the same recipient twice.
    function transferTwice(Token token, address from, address to, uint256 first, uint256 second) external {
        token.transferFrom(from, to, first);
        token.transferFrom(from, to, second);
    }

    /// Pays two recipients.
    function transferToBoth(Token token, address from, address one, uint256 toOne, address other, uint256 toOther)
        external
    {
        token.transferFrom(from, one, toOne);
        token.transferFrom(from, other, toOther);
    }

    /// Hands the native coin on: the recipient is paid, but neither by the transaction's own value nor with a log.
    function forward(address payable to) external payable {
        (bool sent,) = to.call{value: msg.value}("");
        require(sent, "not taken");
    }
}
