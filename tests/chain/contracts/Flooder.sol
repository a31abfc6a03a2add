// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import {Token} from "./Token.sol";

/// Pays tokens and writes as many empty logs as asked, so that the payment's receipt is larger than anybody reads.
contract Flooder {
    /// `logs` is rounded down to a multiple of ten. The caller must have approved this contract before.
    function transfer(Token token, address to, uint256 amount, uint256 logs) external {
        token.transferFrom(msg.sender, to, amount);
        assembly ("memory-safe") {
            for { let left := div(logs, 10) } left { left := sub(left, 1) } {
                log0(0, 0) log0(0, 0) log0(0, 0) log0(0, 0) log0(0, 0)
                log0(0, 0) log0(0, 0) log0(0, 0) log0(0, 0) log0(0, 0)
            }
        }
    }
}
