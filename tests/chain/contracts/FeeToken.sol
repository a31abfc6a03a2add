// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import {Token} from "./Token.sol";

/// A token that keeps 1 % of each transfer: the recipient gets less than the sender sent, and the logs say so. An
/// amount must be judged by what arrived, not by the call's argument.
contract FeeToken is Token {
    address public immutable feeCollector;

    constructor(string memory name_, string memory symbol_, uint8 decimals_) Token(name_, symbol_, decimals_) {
        feeCollector = msg.sender;
    }

    function _transfer(address from, address to, uint256 amount) internal override {
        uint256 fee = amount / 100;
        _move(from, to, amount - fee);
        _move(from, feeCollector, fee);
    }
}
