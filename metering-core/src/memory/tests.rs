//! What the conformance suite cannot see from outside: data that is wrong, and a lock that was left in a panic.
