use async_trait::async_trait;

use crate::access::account::{Account, Email};
use crate::access::key::KeyHash;
use crate::clock::Timestamp;
use crate::decision::{self, Decided, RedeemChanges, SignupFacts, VerifyFacts};
use crate::signups::link::{EmailLink, LinkHash};
use crate::signups::signup::{SessionHash, SignupSession, UserCode};
use crate::store::{EmailVerified, NewAccount, SignupApproved, SignupOpened, SignupRedeemed, SignupStore, StoreError};

use super::MemoryStore;
use super::state::State;

impl State {
    fn open_signup(&mut self, session: SignupSession) -> Result<SignupOpened, StoreError> {
        let facts = SignupFacts {
            email_taken: self.owner_facts(Some(&session.email), None).email_taken,
            code_taken: self.signups.of_code(&session.user_code).is_some(),
            token_in_use: self.signups.sessions.contains_key(&session.token),
        };
        Ok(match decision::open_signup(session, facts)? {
            Decided::Accepted(session) => {
                self.signups.sessions.insert(session.token, session);
                SignupOpened::Opened
            }
            Decided::Refused(refusal) => refusal,
        })
    }

    fn approve_signup(&mut self, code: &UserCode, now: Timestamp) -> SignupApproved {
        let session = self.signups.of_code(code).cloned();
        let email = session.as_ref().map(|session| &session.email);
        let email_taken = self.owner_facts(email, None).email_taken;
        match decision::approve_signup(session, email_taken, now) {
            Decided::Accepted(session) => {
                self.signups.sessions.insert(session.token, session);
                SignupApproved::Approved
            }
            Decided::Refused(refusal) => refusal,
        }
    }

    fn redeem_signup(
        &mut self,
        token: &SessionHash,
        account: NewAccount,
        now: Timestamp,
    ) -> Result<SignupRedeemed, StoreError> {
        let session = self.signups.sessions.get(token).cloned();
        let facts = self.create_facts(&account);
        Ok(match decision::redeem_signup(session, account, facts, now)? {
            Decided::Accepted(RedeemChanges { account, token }) => {
                self.signups.sessions.remove(&token);
                SignupRedeemed::Account(self.insert_account(account))
            }
            Decided::Refused(refusal) => refusal,
        })
    }

    fn open_email_link(&mut self, link: EmailLink) -> Result<bool, StoreError> {
        let token_in_use = self.signups.links.contains_key(&link.token);
        let account = self.record(&link.account).map(|record| &record.account);
        let Some(link) = decision::open_email_link(link, account, token_in_use)? else { return Ok(false) };
        self.signups.links.retain(|_, old| old.account != link.account || old.purpose != link.purpose);
        self.signups.links.insert(link.token, link);
        Ok(true)
    }

    fn verify_email(&mut self, token: &LinkHash, now: Timestamp) -> EmailVerified {
        let link = self.signups.links.get(token).cloned();
        let account = link.as_ref().and_then(|link| self.found(&link.account));
        let email = account.as_ref().and_then(|(_, account)| account.email.as_ref());
        let email_held = self.owner_facts(email, None).email_taken;
        let changes = match decision::verify_email(VerifyFacts { link, account, email_held }, now) {
            Decided::Accepted(changes) => changes,
            Decided::Refused(refusal) => return refusal,
        };
        self.signups.links.remove(&changes.token);
        if let Some(entry) = changes.entry_changes() {
            self.write_entry(entry);
        }
        self.accounts[changes.row].account.email_status = changes.account.email_status;
        changes.into_outcome()
    }

    fn recover_key(&mut self, token: &LinkHash, key: KeyHash, now: Timestamp) -> Result<Option<Account>, StoreError> {
        let Some(link) = self.signups.links.get(token) else { return Ok(None) };
        let facts = self.key_facts(&link.account, &key);
        let changes = decision::recover_key(link, facts, key, now)?;
        Ok(changes.map(|changes| {
            self.signups.links.remove(token);
            self.write_keys(changes)
        }))
    }
}

#[async_trait]
impl SignupStore for MemoryStore {
    async fn open_signup(&self, session: SignupSession) -> Result<SignupOpened, StoreError> {
        self.state()?.open_signup(session)
    }

    async fn signup(&self, token: &SessionHash) -> Result<Option<SignupSession>, StoreError> {
        Ok(self.state()?.signups.sessions.get(token).cloned())
    }

    async fn signup_of_code(&self, code: &UserCode) -> Result<Option<SignupSession>, StoreError> {
        Ok(self.state()?.signups.of_code(code).cloned())
    }

    async fn approve_signup(&self, code: &UserCode, now: Timestamp) -> Result<SignupApproved, StoreError> {
        Ok(self.state()?.approve_signup(code, now))
    }

    async fn redeem_signup(
        &self,
        token: &SessionHash,
        account: NewAccount,
        now: Timestamp,
    ) -> Result<SignupRedeemed, StoreError> {
        self.state()?.redeem_signup(token, account, now)
    }

    async fn account_by_email(&self, email: &Email) -> Result<Option<Account>, StoreError> {
        Ok(self.state()?.active(|account| account.held_email() == Some(email)).cloned())
    }

    async fn open_email_link(&self, link: EmailLink) -> Result<bool, StoreError> {
        self.state()?.open_email_link(link)
    }

    async fn verify_email(&self, token: &LinkHash, now: Timestamp) -> Result<EmailVerified, StoreError> {
        Ok(self.state()?.verify_email(token, now))
    }

    async fn recover_key(&self, token: &LinkHash, key: KeyHash, now: Timestamp) -> Result<Option<Account>, StoreError> {
        self.state()?.recover_key(token, key, now)
    }

    async fn use_solution(&self, solution: [u8; 32], expires_at: Timestamp) -> Result<bool, StoreError> {
        Ok(self.state()?.signups.use_once(solution, expires_at))
    }
}
