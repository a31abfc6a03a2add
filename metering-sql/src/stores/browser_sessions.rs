/// Implements [`BrowserSessionStore`](metering_core::store::BrowserSessionStore).
#[macro_export]
macro_rules! browser_session_store {
    ($store:ty) => {
        const _: () = {
            use $crate::private::metering_core::access::*;
            use $crate::private::metering_core::signups::LinkHash;
            use $crate::private::metering_core::{AccountId, StoreError};
            use $crate::{browser_sessions, read, shared, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::store::BrowserSessionStore for $store {
                async fn open_browser_session(&self, session: BrowserSession) -> Result<bool> {
                    write(self, session, |db, session| shared(browser_sessions::open(db, session))).await
                }

                async fn sign_in_by_link(
                    &self,
                    link: &LinkHash,
                    new: NewBrowserSession,
                ) -> Result<Option<BrowserSession>> {
                    let args = (*link, new);
                    write(self, args, |db, (link, new)| shared(browser_sessions::open_by_link(db, link, new))).await
                }

                async fn browser_session(&self, token: &BrowserTokenHash) -> Result<Option<BrowserSession>> {
                    read(self, *token, |db, token| shared(browser_sessions::by_token(db, token))).await
                }

                async fn use_browser_session(&self, session: &BrowserSession) -> Result<()> {
                    let args = (session.token, session.used_at, session.expires_at);
                    write(self, args, |db, (token, used_at, expires_at)| {
                        shared(browser_sessions::note_use(db, token, *used_at, *expires_at))
                    })
                    .await
                }

                async fn browser_sessions(&self, account: &AccountId) -> Result<Vec<BrowserSession>> {
                    read(self, account.clone(), |db, account| shared(browser_sessions::of_account(db, account))).await
                }

                async fn end_browser_sessions(&self, account: &AccountId, ids: &[BrowserSessionId]) -> Result<u64> {
                    let args = (account.clone(), ids.to_vec());
                    write(self, args, |db, (account, ids)| shared(browser_sessions::end(db, account, ids))).await
                }
            }
        };
    };
}
