/// Implements [`MemberStore`](metering_core::store::MemberStore).
#[macro_export]
macro_rules! member_store {
    ($store:ty) => {
        $crate::scripted! {
            use metering_core::{
                AccountId, Timestamp,
                access::*,
                signups::LinkHash,
                store::{Cursor, Invited, MemberChange, MemberChanged, MemberStore, Page},
            };
            impl MemberStore for $store {}
            read members(account: &AccountId) -> Vec<Member> = members::of_account;
            read invitations(account: &AccountId) -> Vec<Invitation> = members::invitations;
            read invitation(token: &LinkHash) -> Option<Invitation> = members::invitation;
            write invite(invitation: Invitation, actor: AccountActor) -> Invited = members::invite;
            write readdress_invitation(account: &AccountId, id: MemberId, token: LinkHash)
                -> Option<Invitation> = members::readdress;
            write change_member(
                account: &AccountId, id: MemberId, actor: AccountActor, change: MemberChange, now: Timestamp
            ) -> MemberChanged = members::change;
            write open_sign_in(proof: SignInProof) -> () = members::open_sign_in;
            read sign_in_proof(token: &LinkHash) -> Option<SignInProof> = members::proof;
            snapshot sign_in_choices(identity: &Identity) -> Vec<SignInChoice> = members::choices;
            write sign_in(proof: &LinkHash, account: &AccountId, new: NewBrowserSession)
                -> Option<BrowserSession> = members::sign_in;
            write join(link: &LinkHash, new: NewBrowserSession) -> Option<BrowserSession> = members::join;
            write log_account_action(account: &AccountId, action: NewAccountAction) -> Option<i64> = members::log;
            write end_account_action(account: &AccountId, number: i64, status: u16) -> () = members::end_action;
            read account_log(account: &AccountId, after: ?Cursor, limit: u32)
                -> Page<AccountAction> = members::account_log;
        }
    };
}
