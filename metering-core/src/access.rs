//! Who may charge, and how much: accounts, their API keys and rate limits, and the credentials of a request.
//!
//! A key exists in plain text only when it is issued and in the request that carries it; stores see its hash.

pub(crate) mod account;
pub(crate) mod browser_session;
pub(crate) mod budget;
pub(crate) mod credentials;
pub(crate) mod device;
pub(crate) mod email;
pub(crate) mod email_status;
pub(crate) mod hash_kind;
pub(crate) mod invisible;
pub(crate) mod issued_key;
pub(crate) mod key;
pub(crate) mod key_hint;
pub(crate) mod key_id;
pub(crate) mod key_record;
pub(crate) mod key_terms;
pub(crate) mod key_use;
pub(crate) mod member;
pub(crate) mod network;
pub(crate) mod own_machine;
pub(crate) mod role;
pub(crate) mod route_pattern;
pub(crate) mod scope;
pub(crate) mod secret_record;
pub(crate) mod succession;

pub use account::{Account, AccountId, AccountIdError, AgentName, AgentNameError, Payer, RateLimits, Totals};
pub use browser_session::{
    BrowserSession, BrowserSessionId, BrowserSessionIdError, BrowserToken, BrowserTokenHash, BrowserTokenKind,
    MalformedBrowserToken, NewBrowserSession, SessionCredentials,
};
pub use budget::{Budget, BudgetReset, BudgetResetError, Spent};
pub use credentials::{Caller, ClientAddress, Credentials, KEY_HEADERS};
pub use device::{DeviceName, DeviceNameError};
pub use email::{Email, EmailError};
pub use email_status::EmailStatus;
pub use hash_kind::{HashKind, HashKindError};
pub use invisible::is_invisible;
pub use issued_key::{Key, KeyHolder, KeyStatus, KeyUsage};
pub use key::{ApiKey, ApiKeyKind, KeyFault, KeyHash, MalformedKey};
pub use key_hint::{KeyHint, KeyHintError};
pub use key_id::{KeyId, KeyIdError, KeyNumber};
pub use key_record::KeyRecord;
pub use key_terms::{KeyName, KeyNameError, KeyTerms, WiderTerms};
pub use key_use::{KeyRefusal, KeyUse};
pub use member::{
    AccountAction, AccountActor, Identity, IdentityError, Invitation, Member, MemberId, MemberIdError,
    NewAccountAction, SignInChoice, SignInProof,
};
pub use network::{Networks, NetworksError};
pub use own_machine::is_own_machine;
pub use role::{MemberRole, MemberRoleError, Right};
pub use route_pattern::{RoutePatterns, RoutePatternsError};
pub use scope::{Scope, Scopes, ScopesError};
pub use secret_record::SecretRecord;
pub use succession::{ROTATION_KEY_MIN, ShortRotationKey};
