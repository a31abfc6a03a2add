/// Implements [`MemberStore`](metering_core::store::MemberStore).
#[macro_export]
macro_rules! member_store {
    ($store:ty) => {
        const _: () = {
            use $crate::private::metering_core::access::*;
            use $crate::private::metering_core::signups::LinkHash;
            use $crate::private::metering_core::store::{Cursor, Invited, MemberChange, MemberChanged, Page};
            use $crate::private::metering_core::{AccountId, StoreError, Timestamp};
            use $crate::{members, read, shared, snapshot, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::store::MemberStore for $store {
                async fn members(&self, account: &AccountId) -> Result<Vec<Member>> {
                    read(self, account.clone(), |db, account| shared(members::of_account(db, account))).await
                }

                async fn invitations(&self, account: &AccountId) -> Result<Vec<Invitation>> {
                    read(self, account.clone(), |db, account| shared(members::invitations(db, account))).await
                }

                async fn invitation(&self, token: &LinkHash) -> Result<Option<Invitation>> {
                    read(self, *token, |db, token| shared(members::invitation(db, token))).await
                }

                async fn invite(&self, invitation: Invitation, actor: AccountActor) -> Result<Invited> {
                    write(self, (invitation, actor), |db, (new, actor)| shared(members::invite(db, new, actor))).await
                }

                async fn readdress_invitation(
                    &self,
                    account: &AccountId,
                    id: MemberId,
                    token: LinkHash,
                ) -> Result<Option<Invitation>> {
                    write(self, (account.clone(), id, token), |db, (account, id, token)| {
                        shared(members::readdress(db, account, *id, token))
                    })
                    .await
                }

                async fn change_member(
                    &self,
                    account: &AccountId,
                    id: MemberId,
                    actor: AccountActor,
                    change: MemberChange,
                    now: Timestamp,
                ) -> Result<MemberChanged> {
                    write(self, (account.clone(), id, actor, change, now), |db, (account, id, actor, change, now)| {
                        shared(members::change(db, account, *id, actor, *change, *now))
                    })
                    .await
                }

                async fn open_sign_in(&self, proof: SignInProof) -> Result<()> {
                    write(self, proof, |db, proof| shared(members::open_sign_in(db, proof))).await
                }

                async fn sign_in_proof(&self, token: &LinkHash) -> Result<Option<SignInProof>> {
                    read(self, *token, |db, token| shared(members::proof(db, token))).await
                }

                async fn sign_in_choices(&self, identity: &Identity) -> Result<Vec<SignInChoice>> {
                    snapshot(self, identity.clone(), |db, identity| shared(members::choices(db, identity))).await
                }

                async fn sign_in(
                    &self,
                    proof: &LinkHash,
                    account: &AccountId,
                    new: NewBrowserSession,
                ) -> Result<Option<BrowserSession>> {
                    write(self, (*proof, account.clone(), new), |db, (proof, account, new)| {
                        shared(members::sign_in(db, proof, account, new))
                    })
                    .await
                }

                async fn join(&self, link: &LinkHash, new: NewBrowserSession) -> Result<Option<BrowserSession>> {
                    write(self, (*link, new), |db, (link, new)| shared(members::join(db, link, new))).await
                }

                async fn log_account_action(
                    &self,
                    account: &AccountId,
                    action: NewAccountAction,
                ) -> Result<Option<i64>> {
                    write(self, (account.clone(), action), |db, (account, action)| {
                        shared(members::log(db, account, action))
                    })
                    .await
                }

                async fn end_account_action(&self, account: &AccountId, number: i64, status: u16) -> Result<()> {
                    write(self, (account.clone(), number, status), |db, (account, number, status)| {
                        shared(members::end_action(db, account, *number, *status))
                    })
                    .await
                }

                async fn account_log(
                    &self,
                    account: &AccountId,
                    after: Option<&Cursor>,
                    limit: u32,
                ) -> Result<Page<AccountAction>> {
                    read(self, (account.clone(), after.cloned(), limit), |db, (account, after, limit)| {
                        shared(members::account_log(db, account, after.as_ref(), *limit))
                    })
                    .await
                }
            }
        };
    };
}
