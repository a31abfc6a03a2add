//! Creating an account: free, or by paying for a plan. Both resume after an interruption.

pub(crate) mod signup;
pub(crate) mod signup_pay;
