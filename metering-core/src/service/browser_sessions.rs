//! Sessions of browsers: a key, or a link that signs in, exchanged for a token that a browser keeps as a cookie.
//!
//! A session has the rights of its key. Every request looks up the session and then the key, so the end of either ends
//! the session, in every process.

mod sign_in;

use std::sync::Arc;

use crate::access::account::AccountId;
use crate::access::browser_session::{
    BrowserSession, BrowserSessionId, BrowserToken, NewBrowserSession, SessionCredentials,
};
use crate::access::credentials::Caller;
use crate::access::device::DeviceName;
use crate::access::issued_key::{Key, KeyHolder};
use crate::access::key::KeyFault;
use crate::access::member::{Member, MemberId};
use crate::access::role::Right;
use crate::access::scope::Scope;
use crate::error::Error;
use crate::random::SystemRandomness;
use crate::service::config::ServiceConfig;
use crate::service::metering::Service;
use crate::service::{Access, Emails};
use crate::store::{BrowserSessionStore, MemberStore};
use crate::wire::{BrowserSessionDocument, BrowserSessionResponse, BrowserSessionsDocument, EndedSessionsResponse};

/// Sessions of browsers, from [`Service::browser_sessions`].
#[derive(Debug, Clone, Copy)]
pub struct BrowserSessions<'s> {
    access: &'s Access,
    config: &'s ServiceConfig,
    emails: Emails<'s>,
    store: Option<&'s dyn BrowserSessionStore>,
    members: Option<&'s dyn MemberStore>,
}

/// A session that was opened now.
#[derive(Debug, Clone)]
pub struct OpenedSession {
    /// Its token, for the cookie.
    pub token: BrowserToken,
    /// The response.
    pub response: BrowserSessionResponse,
}

impl Service {
    /// Keeps sessions of browsers. Without this, the service refuses them.
    ///
    /// `store` must be the service's own store.
    #[must_use]
    pub fn with_browser_sessions(mut self, store: Arc<dyn BrowserSessionStore>) -> Self {
        self.browser_sessions = Some(store);
        self
    }

    /// Sessions of browsers.
    #[must_use]
    pub fn browser_sessions(&self) -> BrowserSessions<'_> {
        let members = self.members.as_ref().map(|setup| &*setup.store);
        let (store, emails) = (self.browser_sessions.as_deref(), self.emails());
        BrowserSessions { access: &self.access, config: &self.config, emails, store, members }
    }
}

impl<'s> BrowserSessions<'s> {
    /// Opens a session with a key. It requires the key itself: a session cannot prolong itself.
    ///
    /// ```
    /// use metering_core::access::DeviceName;
    /// use metering_core::Service;
    /// use metering_sqlite::SqliteStore;
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Arc::new(SqliteStore::in_memory()?);
    /// let service = Service::with_defaults(store.clone()).with_browser_sessions(store);
    /// let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// let opened = service.browser_sessions().open(&key, DeviceName::of_user_agent("curl/8")).await?;
    ///
    /// // The browser comes back with the token.
    /// let session = service.browser_sessions().find(&opened.token).await?.ok_or("it was opened")?;
    /// assert_eq!(service.usage().balance(&session).await?.org_id, account.id.to_string());
    ///
    /// // It signs out.
    /// service.browser_sessions().end_current(&session).await?;
    /// assert!(service.browser_sessions().find(&opened.token).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key; [`Error::KeyNotAllowed`] when it may not be used from there; or when
    /// the store fails.
    pub async fn open(self, caller: impl Into<Caller<'_>>, device: DeviceName) -> Result<OpenedSession, Error> {
        let caller = caller.into();
        let secret = caller.key.ok_or(Error::Unauthorized)?.hash();
        let holder = self.access.holder(caller, None).await?;
        if holder.secret_expires_at.is_some() {
            return Err(Error::KeyRefused(KeyFault::NotLive));
        }
        let store = self.store()?;
        let (token, new) = self.new_session(device);
        let session = new.of_key(holder.account.id.clone(), secret);
        if !store.open_browser_session(session.clone()).await? {
            return Err(Error::KeyRefused(KeyFault::NotLive));
        }
        opened(token, &session, &holder, None)
    }

    /// The session with this token, for [`Caller::session`]; `None` if it has ended. Its key is looked up by its scope.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn find(self, token: &BrowserToken) -> Result<Option<SessionCredentials>, Error> {
        let Some(store) = self.store else { return Ok(None) };
        let now = self.access.now();
        let found = store.browser_session(&token.hash()).await?;
        let Some(session) = found.filter(|session| session.is_live(now)) else { return Ok(None) };
        if let Some(used) = session.used(now) {
            // The request does not fail because of it.
            if let Err(error) = store.use_browser_session(&used).await {
                tracing::warn!(%error, session = %session.id, "could not note the use of a session");
            }
        }
        let member = match session.member {
            // Read with each request, so a change of the role takes effect immediately.
            Some(id) => match self.member(&session.account, id).await? {
                Some(member) => Some(Arc::new(member)),
                None => return Ok(None),
            },
            None => None,
        };
        Ok(Some(SessionCredentials { id: session.id, token: token.clone(), secret: session.secret, member }))
    }

    /// The sessions of the caller's key and its child keys, the most recently used first. A member who is not an owner
    /// gets only their own.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key or session; [`Error::KeyNotAllowed`] when it may not manage keys; or
    /// when the store fails.
    pub async fn list(self, caller: impl Into<Caller<'_>>) -> Result<BrowserSessionsDocument, Error> {
        let caller = caller.into();
        let visible = self.visible(caller).await?;
        let current = caller.session.map(|session| session.id);
        let members = match (self.members, visible.first()) {
            (Some(members), Some((session, _))) => members.members(&session.account).await?,
            _ => Vec::new(),
        };
        let member = |id: Option<MemberId>| members.iter().find(|member| Some(member.id) == id);
        let document = |(session, key): &(BrowserSession, Key)| {
            document(session, key, current == Some(session.id), member(session.member))
        };
        Ok(BrowserSessionsDocument { data: visible.iter().map(document).collect() })
    }

    /// Ends one of those sessions.
    ///
    /// # Errors
    /// As [`BrowserSessions::list`], and [`Error::NoSuchSession`].
    pub async fn end(self, caller: impl Into<Caller<'_>>, id: &str) -> Result<EndedSessionsResponse, Error> {
        let visible = self.visible(caller.into()).await?;
        let id: BrowserSessionId = id.parse().map_err(|_| Error::NoSuchSession)?;
        let (session, _) = visible.iter().find(|(session, _)| session.id == id).ok_or(Error::NoSuchSession)?;
        let ended = self.store()?.end_browser_sessions(&session.account, &[id]).await?;
        Ok(EndedSessionsResponse { ended })
    }

    /// Ends all of those sessions, also the one that the request came with.
    ///
    /// # Errors
    /// As [`BrowserSessions::list`].
    pub async fn end_all(self, caller: impl Into<Caller<'_>>) -> Result<EndedSessionsResponse, Error> {
        let visible = self.visible(caller.into()).await?;
        let Some((first, _)) = visible.first() else { return Ok(EndedSessionsResponse { ended: 0 }) };
        let ids: Vec<BrowserSessionId> = visible.iter().map(|(session, _)| session.id).collect();
        let ended = self.store()?.end_browser_sessions(&first.account, &ids).await?;
        Ok(EndedSessionsResponse { ended })
    }

    /// Ends the session that the request came with. Its key needs no scope for this, and need not be live.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn end_current(self, session: &SessionCredentials) -> Result<EndedSessionsResponse, Error> {
        let store = self.store()?;
        let Some(found) = store.browser_session(&session.token.hash()).await? else {
            return Ok(EndedSessionsResponse { ended: 0 });
        };
        let ended = store.end_browser_sessions(&found.account, &[found.id]).await?;
        Ok(EndedSessionsResponse { ended })
    }

    /// The sessions that are live, each with its key, which is the caller's or a child of it.
    async fn visible(self, caller: Caller<'_>) -> Result<Vec<(BrowserSession, Key)>, Error> {
        let holder = self.access.holder_as(caller, Some(Scope::Manage), Right::Read).await?;
        let own_only = caller.member().filter(|member| !member.role.may(Right::Own)).map(|member| member.id);
        let own = holder.key().ok_or(Error::KeyRefused(KeyFault::NotLive))?.number;
        let store = self.store()?;
        let labels = self.access.key_labels(&holder.account.id).await?;
        let (now, mut visible) = (self.access.now(), Vec::new());
        for session in store.browser_sessions(&holder.account.id).await? {
            let holder = self.access.store.key_holder(&session.secret).await?;
            let Some(holder) = holder.filter(|holder| holder.is_live(now) && holder.secret_expires_at.is_none()) else {
                continue;
            };
            if let Some(key) = holder.key().filter(|key| labels.is_at_or_below(key.number, own))
                && session.is_live(now)
                && (own_only.is_none() || own_only == session.member)
            {
                visible.push((session, key.clone()));
            }
        }
        Ok(visible)
    }

    async fn member(self, account: &AccountId, id: MemberId) -> Result<Option<Member>, Error> {
        let Some(members) = self.members else { return Ok(None) };
        Ok(members.members(account).await?.into_iter().find(|member| member.id == id))
    }

    fn new_session(self, device: DeviceName) -> (BrowserToken, NewBrowserSession) {
        let token = BrowserToken::generate(&SystemRandomness);
        let id = BrowserSessionId::generate(&SystemRandomness);
        let new = NewBrowserSession { id, token: token.hash(), device, created_at: self.access.now() };
        (token, new)
    }

    fn store(self) -> Result<&'s dyn BrowserSessionStore, Error> {
        self.store.ok_or(Error::SessionsNotOffered)
    }
}

fn opened(
    token: BrowserToken,
    session: &BrowserSession,
    holder: &KeyHolder,
    member: Option<&Member>,
) -> Result<OpenedSession, Error> {
    let key = holder.key().ok_or(Error::KeyRefused(KeyFault::NotLive))?;
    Ok(OpenedSession { token, response: BrowserSessionResponse { data: document(session, key, true, member) } })
}

fn document(session: &BrowserSession, key: &Key, current: bool, member: Option<&Member>) -> BrowserSessionDocument {
    BrowserSessionDocument {
        id: session.id.to_string(),
        device: session.device.to_string(),
        current,
        key_id: key.id.to_string(),
        key_name: key.terms.name.to_string(),
        member: member.map(|member| member.identity.to_string()),
        role: member.map(|member| member.role.to_string()),
        created_at: session.created_at,
        last_used_at: session.used_at,
        expires_at: session.expires_at,
    }
}
