// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import {Token} from "./Token.sol";

/// Makes several transfers, or transfers for somebody else, in one transaction: a transaction is not the same as a
/// payment. For tokens, `from` must have given the caller an allowance. Anyone may use this contract, which is fine in
/// tests only.
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

    /// Forwards the native coin: the recipient is paid, but not by the transaction's own value, and without a log.
    function forward(address payable to) external payable {
        (bool sent,) = to.call{value: msg.value}("");
        require(sent, "not taken");
    }
}
