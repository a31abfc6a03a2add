/// Implements [`BrowserSessionStore`](metering_core::store::BrowserSessionStore).
#[macro_export]
macro_rules! browser_session_store {
    ($store:ty) => {
        $crate::scripted! {
            use metering_core::{AccountId, access::*, signups::LinkHash, store::BrowserSessionStore};
            impl BrowserSessionStore for $store {
                async fn use_browser_session(&self, session: &BrowserSession) -> Result<()> {
                    let args = (session.token, session.used_at, session.expires_at);
                    $crate::write(self, args, |db, (token, used_at, expires_at)| {
                        $crate::shared($crate::browser_sessions::note_use(db, token, *used_at, *expires_at))
                    })
                    .await
                }
            }
            write open_browser_session(session: BrowserSession) -> bool = browser_sessions::open;
            write sign_in_by_link(link: &LinkHash, new: NewBrowserSession)
                -> Option<BrowserSession> = browser_sessions::open_by_link;
            read browser_session(token: &BrowserTokenHash) -> Option<BrowserSession> = browser_sessions::by_token;
            read browser_sessions(account: &AccountId) -> Vec<BrowserSession> = browser_sessions::of_account;
            write end_browser_sessions(account: &AccountId, ids: &[BrowserSessionId]) -> u64 = browser_sessions::end;
        }
    };
}
