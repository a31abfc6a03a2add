//! Every write except a charge, as a pure function from facts to changes.
//!
//! Refusals, their order and all arithmetic are here, once, so backends cannot differ. Nothing here reads a store, and
//! backends refuse nothing themselves. Backends use this as [`backend::decision`](crate::backend::decision).

mod authorization;
mod auto_top_up;
mod browser_session;
mod buyer;
mod challenge;
mod child_account;
mod claim;
mod create;
mod credit;
mod email;
mod ended_keys;
mod entry;
mod import;
mod issued_key;
mod key;
mod member;
mod operator;
mod prices;
mod processor;
mod quote;
mod refill;
mod revoke;
#[cfg(test)]
mod scene;
mod settle;
mod signup;

pub use authorization::{
    authorization_after, credit_authorization, gives_back_gas_place, keeps_gas_place, open_authorization,
    use_authorization,
};
pub use auto_top_up::{
    TopUpFacts, begin_top_up, has_room, is_top_up_due, may_send_top_up, set_auto_top_up, stop_top_ups,
};
pub use browser_session::{BrowserSessionChanges, BrowserSessionFacts, open_browser_session, sign_in_by_link};
pub use buyer::{BuyerChanges, BuyerFacts, add_receipt_buyer, set_buyer};
pub use challenge::{fail_challenge, open_challenge, rotate_key};
pub use child_account::{MoveChanges, MoveFacts, NewChildFacts, close_child, create_child, move_credits};
pub use claim::{ClaimChanges, ClaimStep, claim_open, claim_paid, claim_step};
pub use create::{CreateChanges, CreateFacts, OwnerFacts, create_account};
pub use credit::{CreditChanges, CreditFacts, credit_payment};
pub use email::{VerifyChanges, VerifyFacts, free_credits_entry, open_email_link, recover_key, verify_email};
pub use ended_keys::{KeyDeletion, KeyEnd, keys_to_delete};
pub use entry::{EntryChanges, post_entry};
pub use import::{ImportChanges, ImportFacts, import_account, imported_key_ids};
pub use issued_key::{
    KeyChangeFacts, KeyChangeWrites, KeyWrite, MeterWrite, NewKeyFacts, OldSecrets, budget_period, change_key,
    create_key, report_leaked, revokes_below,
};
pub use key::{KeyChanges, KeyFacts, replace_key};
pub use member::{MemberChanges, MemberFacts, MemberSignIn, change_member, invite, join, sign_in};
pub use operator::{OperatorFacts, create_operator, revoke_operator, rotate_operator_token};
pub use prices::{cancel_prices, record_prices};
pub use processor::{
    LoggedAction, ReversalChanges, ReversalFacts, credit_processor_payment, reverse_processor_payment,
};
pub use quote::{QuoteFacts, open_quote};
pub use refill::{RefillChanges, RefillProgress, is_refill_due, refill_account};
pub use revoke::revoke_account;
pub use settle::{SettleChanges, SettleFacts, settle_payment};
pub use signup::{RedeemChanges, SignupFacts, approve_signup, open_signup, redeem_signup};

use crate::access::account::Account;

/// The decision on a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decided<C, R> {
    /// Write these changes, all of them, in the transaction that the facts were read in.
    Accepted(C),
    /// Write nothing, and return this refusal.
    Refused(R),
}

/// The account, unless it is revoked.
fn active<K>(account: Option<(K, Account)>) -> Option<(K, Account)> {
    account.filter(|(_, account)| account.revoked_at.is_none())
}
