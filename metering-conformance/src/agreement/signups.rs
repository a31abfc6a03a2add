//! Applies operations on signup sessions and solutions to the store and the model.

use metering_core::access::EmailStatus;
use metering_core::money::LedgerKind;
use metering_core::signups::SignupSession;
use metering_core::store::{NewAccount, SignupRedeemed};

use super::super::operation::{Signup, code, token};
use super::super::scene::MINUTE;
use super::{Pair, assert_agree, email_address, entry};

impl Pair {
    pub(super) async fn sign_up(&mut self, signup: Signup) {
        match signup {
            Signup::Open { token: number, code: code_number, email, capitals } => {
                let session = SignupSession {
                    token: token(number),
                    user_code: code(code_number),
                    email: email_address(email, capitals),
                    agent_name: format!("signer-{number}").parse().unwrap(),
                    created_at: self.now,
                    expires_at: self.now.saturating_add(MINUTE * 15),
                    approved_at: None,
                };
                let expected = self.model.open_signup(&session);
                assert_agree(self.store.open_signup(session).await, expected, "whether the session was opened");
            }
            Signup::Approve { code: number } => {
                let expected = self.model.approve_signup(&code(number), self.now);
                let result = self.store.approve_signup(&code(number), self.now).await.unwrap();
                assert_eq!(result, expected, "whether the session was approved");
            }
            Signup::Redeem { token, entries, key } => self.redeem(token, &entries, key).await,
            Signup::Solve { solution } => {
                let expires_at = self.now.saturating_add(MINUTE * 10);
                let expected = self.model.use_solution([solution; 32], expires_at);
                let result = self.store.use_solution([solution; 32], expires_at).await.unwrap();
                assert_eq!(result, expected, "whether the solution was new");
            }
        }
    }

    async fn redeem(&mut self, number: u8, entries: &[(LedgerKind, i64)], key: Option<usize>) {
        let (token, key) = (token(number), self.key(key));
        let new = NewAccount {
            id: self.new_id(),
            agent_name: format!("signer-{number}").parse().unwrap(),
            email: self.model.signup(&token).map(|session| session.email.clone()),
            email_status: EmailStatus::Unchecked,
            payer: None,
            limits: metering_core::RateLimits::NONE,
            key,
            entries: entries.iter().map(|(kind, amount)| entry(*kind, *amount)).collect(),
            created_at: self.now,
        };
        let expected = self.model.redeem_signup(&token, &new, self.now);
        if matches!(expected, Ok(SignupRedeemed::Account(_))) {
            self.keys.push(key);
        }
        let result = self.store.redeem_signup(&token, new, self.now).await;
        assert_agree(result, expected, "whether the session was redeemed");
    }
}
