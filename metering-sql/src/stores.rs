//! The storage traits, implemented for a [`Backend`](crate::Backend) by its scripts.
//!
//! These are macros because a type can only implement the traits of another crate in its own. What a macro is given after
//! the type are the methods that the backend still writes itself.

mod operators;

/// Implements [`Store`](metering_core::Store).
#[macro_export]
macro_rules! store {
    ($store:ty { $($own:tt)* }) => {
        const _: () = {
            use $crate::private::metering_core::access::KeyHash;
            use $crate::private::metering_core::charging::{CountedRoute, Outcome, Posting, Volume};
            use $crate::private::metering_core::money::{LedgerEntry, NewLedgerEntry};
            use $crate::private::metering_core::store::{Created, Cursor, Page, Posted, Verification};
            use $crate::private::metering_core::usage::{Activity, DailyTotal, DayRange, UsageReport};
            use $crate::private::metering_core::{Account, AccountId, NewAccount, RateLimits, StoreError, Timestamp};
            use $crate::{read, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::Store for $store {
                async fn create_account(&self, account: NewAccount) -> Result<Created> {
                    write(self, account, |db, account| Box::pin($crate::accounts::create(db, account))).await
                }

                async fn account(&self, id: &AccountId) -> Result<Option<Account>> {
                    let found = read(self, id.clone(), |db, id| Box::pin($crate::accounts::by_id(db, id))).await?;
                    Ok(found.map(|(_, account)| account))
                }

                async fn accounts(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<Account>> {
                    let args = (after.cloned(), limit);
                    read(self, args, |db, (after, limit)| Box::pin($crate::accounts::list(db, after.as_ref(), *limit)))
                        .await
                }

                async fn post_entry(&self, id: &AccountId, entry: NewLedgerEntry, now: Timestamp) -> Result<Posted> {
                    let args = (id.clone(), entry, now);
                    write(self, args, |db, (id, entry, now)| Box::pin($crate::accounts::post_entry(db, id, entry, *now))).await
                }

                async fn set_limits(&self, id: &AccountId, limits: RateLimits) -> Result<Option<Account>> {
                    let args = (id.clone(), limits);
                    write(self, args, |db, (id, limits)| Box::pin($crate::accounts::set_limits(db, id, *limits))).await
                }

                async fn revoke_account(&self, id: &AccountId, now: Timestamp) -> Result<Option<Account>> {
                    write(self, (id.clone(), now), |db, (id, now)| Box::pin($crate::accounts::revoke(db, id, *now))).await
                }

                async fn replace_live_key(&self, old: &KeyHash, key: KeyHash, now: Timestamp) -> Result<Option<Account>> {
                    let args = (*old, key, now);
                    write(self, args, |db, (old, key, now)| Box::pin($crate::key_changes::replace_live(db, old, key, *now)))
                        .await
                }

                async fn replace_key(&self, id: &AccountId, key: KeyHash, now: Timestamp) -> Result<Option<Account>> {
                    let args = (id.clone(), key, now);
                    write(self, args, |db, (id, key, now)| Box::pin($crate::key_replacement::replace(db, id, key, *now))).await
                }

                $($own)*
            }
        };
    };
}

/// Implements [`KeyStore`](metering_core::store::KeyStore).
#[macro_export]
macro_rules! key_store {
    ($store:ty { $($own:tt)* }) => {
        const _: () = {
            use $crate::private::metering_core::access::{Key, KeyHash, KeyHolder, KeyId, KeyStatus};
            use $crate::private::metering_core::store::{Cursor, KeyChange, KeyChanged, KeyCreated, NewKey, Page};
            use $crate::private::metering_core::usage::KeyLabel;
            use $crate::private::metering_core::{AccountId, Day, StoreError, Timestamp};
            use $crate::{read, snapshot, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::store::KeyStore for $store {
                async fn keys(
                    &self,
                    account: &AccountId,
                    after: Option<&Cursor>,
                    limit: u32,
                    today: Day,
                ) -> Result<Page<KeyStatus>> {
                    let args = (account.clone(), after.cloned(), limit, today);
                    snapshot(self, args, |db, (account, after, limit, today)| {
                        Box::pin($crate::key_status::list(db, account, after.as_ref(), *limit, *today))
                    })
                    .await
                }

                async fn key(&self, account: &AccountId, id: &KeyId, today: Day) -> Result<Option<KeyStatus>> {
                    let args = (account.clone(), id.clone(), today);
                    snapshot(self, args, |db, (account, id, today)| {
                        Box::pin($crate::key_status::one(db, account, id, *today))
                    })
                    .await
                }

                async fn key_labels(&self, account: &AccountId) -> Result<Vec<KeyLabel>> {
                    read(self, account.clone(), |db, account| Box::pin($crate::key_status::labels(db, account))).await
                }

                async fn create_key(&self, new: NewKey) -> Result<KeyCreated> {
                    write(self, new, |db, new| Box::pin($crate::key_changes::create(db, new))).await
                }

                async fn change_key(
                    &self,
                    account: &AccountId,
                    id: &KeyId,
                    actor: Option<&KeyId>,
                    change: KeyChange,
                    now: Timestamp,
                ) -> Result<KeyChanged> {
                    let args = (account.clone(), id.clone(), actor.cloned(), change, now);
                    write(self, args, |db, (account, id, actor, change, now)| {
                        Box::pin($crate::key_changes::change(db, account, id, actor.as_ref(), change, *now))
                    })
                    .await
                }

                async fn report_leaked(&self, secret: &KeyHash, now: Timestamp) -> Result<Option<Key>> {
                    let args = (*secret, now);
                    write(self, args, |db, (secret, now)| Box::pin($crate::key_changes::report_leaked(db, secret, *now)))
                        .await
                }

                $($own)*
            }
        };
    };
}

/// Implements [`PaymentStore`](metering_core::PaymentStore).
#[macro_export]
macro_rules! payment_store {
    ($store:ty) => {
        const _: () = {
            use $crate::private::metering_core::access::KeyHash;
            use $crate::private::metering_core::chains::{Address, TxRef};
            use $crate::private::metering_core::payments::*;
            use $crate::private::metering_core::store::*;
            use $crate::private::metering_core::{Account, AccountId, StoreError, Timestamp};
            use $crate::{read, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::PaymentStore for $store {
                async fn plans(&self) -> Result<Vec<Plan>> {
                    read(self, (), |db, ()| Box::pin($crate::plans::list(db))).await
                }

                async fn put_plans(&self, plans: Vec<Plan>) -> Result<()> {
                    write(self, plans, |db, plans| Box::pin($crate::plans::put(db, plans))).await
                }

                async fn remove_plan(&self, key: &PlanKey) -> Result<bool> {
                    write(self, key.clone(), |db, key| Box::pin($crate::plans::remove(db, key))).await
                }

                async fn set_plan_active(&self, key: &PlanKey, active: bool) -> Result<bool> {
                    let args = (key.clone(), active);
                    write(self, args, |db, (key, active)| Box::pin($crate::plans::set_active(db, key, *active))).await
                }

                async fn open_quote(&self, quote: Quote) -> Result<QuoteOpened> {
                    write(self, quote, |db, quote| Box::pin($crate::quotes::open(db, quote))).await
                }

                async fn quote(&self, nonce: &NonceHash) -> Result<Option<Quote>> {
                    read(self, *nonce, |db, nonce| Box::pin($crate::quotes::by_nonce(db, nonce))).await
                }

                async fn quote_paid_by(&self, payment: &Payment) -> Result<Option<Quote>> {
                    read(self, payment.clone(), |db, payment| Box::pin($crate::quotes::paid_by(db, payment))).await
                }

                async fn top_up_quotes(&self, account: &AccountId) -> Result<Vec<Quote>> {
                    read(self, account.clone(), |db, account| Box::pin($crate::quotes::top_ups(db, account))).await
                }

                async fn quoted_targets(&self, chain_id: u64) -> Result<Vec<PaymentTarget>> {
                    read(self, chain_id, |db, chain_id| Box::pin($crate::quotes::targets(db, *chain_id))).await
                }

                async fn claim_quote(&self, claim: Claim) -> Result<Claimed> {
                    write(self, claim, |db, claim| Box::pin($crate::claims::claim(db, claim))).await
                }

                async fn credit_payment(&self, credit: PaymentCredit) -> Result<PaymentCredited> {
                    write(self, credit, |db, credit| Box::pin($crate::payments::credit(db, credit))).await
                }

                async fn payment(&self, tx: &TxRef) -> Result<Option<PaymentRecord>> {
                    read(self, *tx, |db, tx| Box::pin($crate::payments::by_tx(db, tx))).await
                }

                async fn payments(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<PaymentRecord>> {
                    let args = (after.cloned(), limit);
                    read(self, args, |db, (after, limit)| Box::pin($crate::payments::list(db, after.as_ref(), *limit)))
                        .await
                }

                async fn unsettled_payments(
                    &self,
                    chain_id: u64,
                    after: Option<&Cursor>,
                    limit: u32,
                ) -> Result<Page<PaymentRecord>> {
                    let args = (chain_id, after.cloned(), limit);
                    read(self, args, |db, (chain_id, after, limit)| {
                        Box::pin($crate::settlements::unsettled(db, *chain_id, after.as_ref(), *limit))
                    })
                    .await
                }

                async fn settle_payment(&self, change: SettlementChange) -> Result<PaymentSettled> {
                    write(self, change, |db, change| Box::pin($crate::settlements::settle(db, change))).await
                }

                async fn linked_accounts(&self, wallet: &Address) -> Result<Vec<AccountId>> {
                    read(self, *wallet, |db, wallet| Box::pin($crate::wallets::accounts_of(db, wallet))).await
                }

                async fn open_challenge(&self, challenge: Challenge) -> Result<()> {
                    write(self, challenge, |db, challenge| Box::pin($crate::challenges::open(db, challenge))).await
                }

                async fn challenge(&self, nonce: &str) -> Result<Option<Challenge>> {
                    read(self, nonce.to_owned(), |db, nonce| Box::pin($crate::challenges::by_nonce(db, nonce))).await
                }

                async fn fail_challenge(&self, nonce: &str) -> Result<()> {
                    write(self, nonce.to_owned(), |db, nonce| Box::pin($crate::challenges::fail(db, nonce))).await
                }

                async fn rotate_key(&self, nonce: &str, key: KeyHash, now: Timestamp) -> Result<Option<Account>> {
                    let args = (nonce.to_owned(), key, now);
                    write(self, args, |db, (nonce, key, now)| {
                        Box::pin($crate::challenges::rotate_key(db, nonce, key, *now))
                    })
                    .await
                }

                async fn account_by_payer(&self, payer: &Address) -> Result<Option<Account>> {
                    read(self, *payer, |db, payer| Box::pin($crate::accounts::by_payer(db, payer))).await
                }

                async fn scan_mark(&self, chain_id: u64) -> Result<Option<u64>> {
                    read(self, chain_id, |db, chain_id| Box::pin($crate::scan_marks::of_chain(db, *chain_id))).await
                }

                async fn set_scan_mark(&self, chain_id: u64, block: u64) -> Result<()> {
                    let args = (chain_id, block);
                    write(self, args, |db, &(chain_id, block)| {
                        Box::pin($crate::scan_marks::advance(db, chain_id, block))
                    })
                    .await
                }

                async fn register_recipients(
                    &self,
                    configured: Vec<(u64, Address)>,
                    now: Timestamp,
                ) -> Result<Vec<Registration>> {
                    let args = (configured, now);
                    write(self, args, |db, (configured, now)| {
                        Box::pin($crate::recipients::register(db, configured, *now))
                    })
                    .await
                }

                async fn recipients(&self) -> Result<Vec<RecipientRecord>> {
                    read(self, (), |db, ()| Box::pin($crate::recipients::list(db))).await
                }

                async fn put_unreadable(&self, arrival: UnreadableArrival) -> Result<()> {
                    write(self, arrival, |db, arrival| Box::pin($crate::unreadable::put(db, arrival))).await
                }

                async fn unreadable(
                    &self,
                    chain_id: u64,
                    from_block: u64,
                    limit: u32,
                ) -> Result<Vec<UnreadableArrival>> {
                    let args = (chain_id, from_block, limit);
                    read(self, args, |db, &(chain, from, limit)| {
                        Box::pin($crate::unreadable::of_chain(db, chain, from, limit))
                    })
                    .await
                }

                async fn unreadable_due(
                    &self,
                    chain_id: u64,
                    now: Timestamp,
                    limit: u32,
                ) -> Result<Vec<UnreadableArrival>> {
                    let args = (chain_id, now, limit);
                    read(self, args, |db, &(chain, now, limit)| {
                        Box::pin($crate::unreadable::due(db, chain, now, limit))
                    })
                    .await
                }

                async fn forget_unreadable(&self, location: &ArrivalLocation) -> Result<()> {
                    write(self, *location, |db, location| Box::pin($crate::unreadable::forget(db, location))).await
                }
            }
        };
    };
}

/// Implements [`SignupStore`](metering_core::SignupStore).
#[macro_export]
macro_rules! signup_store {
    ($store:ty) => {
        const _: () = {
            use $crate::private::metering_core::access::{Email, KeyHash};
            use $crate::private::metering_core::signups::*;
            use $crate::private::metering_core::store::*;
            use $crate::private::metering_core::{Account, NewAccount, StoreError, Timestamp};
            use $crate::{read, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::SignupStore for $store {
                async fn open_signup(&self, session: SignupSession) -> Result<SignupOpened> {
                    write(self, session, |db, session| Box::pin($crate::sessions::open(db, session))).await
                }

                async fn signup(&self, token: &SessionHash) -> Result<Option<SignupSession>> {
                    read(self, *token, |db, token| Box::pin($crate::sessions::by_token(db, token))).await
                }

                async fn signup_of_code(&self, code: &UserCode) -> Result<Option<SignupSession>> {
                    read(self, *code, |db, code| Box::pin($crate::sessions::by_code(db, code))).await
                }

                async fn approve_signup(&self, code: &UserCode, now: Timestamp) -> Result<SignupApproved> {
                    write(self, (*code, now), |db, (code, now)| Box::pin($crate::sessions::approve(db, code, *now)))
                        .await
                }

                async fn redeem_signup(
                    &self,
                    token: &SessionHash,
                    account: NewAccount,
                    now: Timestamp,
                ) -> Result<SignupRedeemed> {
                    let args = (*token, account, now);
                    write(self, args, |db, (token, account, now)| {
                        Box::pin($crate::sessions::redeem(db, token, account, *now))
                    })
                    .await
                }

                async fn account_by_email(&self, email: &Email) -> Result<Option<Account>> {
                    read(self, email.clone(), |db, email| Box::pin($crate::accounts::by_email(db, email))).await
                }

                async fn open_email_link(&self, link: EmailLink) -> Result<bool> {
                    write(self, link, |db, link| Box::pin($crate::links::open(db, link))).await
                }

                async fn verify_email(&self, token: &LinkHash, now: Timestamp) -> Result<EmailVerified> {
                    write(self, (*token, now), |db, (token, now)| Box::pin($crate::links::verify(db, token, *now)))
                        .await
                }

                async fn recover_key(&self, token: &LinkHash, key: KeyHash, now: Timestamp) -> Result<Option<Account>> {
                    let args = (*token, key, now);
                    write(self, args, |db, (token, key, now)| Box::pin($crate::links::recover(db, token, key, *now)))
                        .await
                }

                async fn use_solution(&self, solution: [u8; 32], expires_at: Timestamp) -> Result<bool> {
                    let args = (solution, expires_at);
                    write(self, args, |db, (solution, until)| {
                        Box::pin($crate::sessions::use_solution(db, solution, *until))
                    })
                    .await
                }
            }
        };
    };
}

/// Implements [`EventStore`](metering_core::store::EventStore).
#[macro_export]
macro_rules! event_store {
    ($store:ty { $($own:tt)* }) => {
        const _: () = {
            use ::core::time::Duration;

            use $crate::private::metering_core::events::*;
            use $crate::private::metering_core::store::{Cursor, Page, WebhookCreated};
            use $crate::private::metering_core::{Account, AccountId, Credits, StoreError, Timestamp};
            use $crate::{read, webhook_deletion, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::store::EventStore for $store {
                async fn set_balance_alert(&self, id: &AccountId, threshold: Option<Credits>) -> Result<Option<Account>> {
                    let args = (id.clone(), threshold);
                    write(self, args, |db, (id, below)| Box::pin($crate::accounts::set_alert(db, id, *below))).await
                }

                async fn create_webhook(&self, new: NewWebhook) -> Result<WebhookCreated> {
                    write(self, new, |db, new| Box::pin($crate::webhooks::create(db, new))).await
                }

                async fn set_operator_webhook(&self, terms: Option<WebhookTerms>, now: Timestamp) -> Result<()> {
                    let Some(terms) = terms else {
                        return webhook_deletion::run(self, None, WebhookId::OPERATOR).await.map(drop);
                    };
                    write(self, (terms, now), |db, (terms, now)| {
                        Box::pin($crate::webhooks::set_operators(db, terms, *now))
                    })
                    .await
                }

                async fn webhooks(&self, account: Option<&AccountId>) -> Result<Vec<Webhook>> {
                    read(self, account.cloned(), |db, account| Box::pin($crate::webhooks::list(db, account.as_ref())))
                        .await
                }

                async fn change_webhook(
                    &self,
                    account: &AccountId,
                    id: &WebhookId,
                    change: WebhookChange,
                    now: Timestamp,
                ) -> Result<Option<Webhook>> {
                    let args = (account.clone(), *id, change, now);
                    write(self, args, |db, (account, id, change, now)| {
                        Box::pin($crate::webhooks::change(db, account, id, change, *now))
                    })
                    .await
                }

                async fn delete_webhook(&self, account: &AccountId, id: &WebhookId) -> Result<bool> {
                    webhook_deletion::run(self, Some(account.clone()), *id).await
                }

                async fn test_webhook(
                    &self,
                    account: Option<&AccountId>,
                    id: &WebhookId,
                    now: Timestamp,
                ) -> Result<Option<Delivery>> {
                    let args = (account.cloned(), *id, now);
                    write(self, args, |db, (account, id, now)| {
                        Box::pin($crate::deliveries::test(db, account.as_ref(), id, *now))
                    })
                    .await
                }

                async fn events(&self, account: &AccountId, after: Option<&Cursor>, limit: u32) -> Result<Page<Event>> {
                    let args = (account.clone(), after.cloned(), limit);
                    read(self, args, |db, (account, after, limit)| {
                        Box::pin($crate::events::list(db, account, after.as_ref(), *limit))
                    })
                    .await
                }

                async fn delivery_backlog(&self, now: Timestamp) -> Result<DeliveryBacklog> {
                    read(self, now, |db, now| Box::pin($crate::due::backlog(db, *now))).await
                }

                async fn claim_shared(
                    &self,
                    now: Timestamp,
                    lease: Duration,
                    limit: u32,
                    owner: WebhookOwner,
                    shares: DeliveryShares,
                ) -> Result<Vec<DueDelivery>> {
                    let args = (now, limit, owner, shares);
                    let found = read(self, args, |db, (now, limit, owner, shares)| {
                        Box::pin($crate::due::find(db, *now, *limit, *owner, shares))
                    })
                    .await?;
                    if found.is_empty() {
                        return Ok(Vec::new());
                    }
                    write(self, (found, now, lease), |db, (found, now, lease)| {
                        Box::pin($crate::due::claim(db, found, *now, *lease))
                    })
                    .await
                }

                async fn finish_delivery(
                    &self,
                    id: DeliveryId,
                    attempt: u32,
                    outcome: AttemptOutcome,
                    now: Timestamp,
                ) -> Result<Option<Delivery>> {
                    let args = (id, attempt, outcome, now);
                    write(self, args, |db, (id, attempt, outcome, now)| {
                        Box::pin($crate::deliveries::finish(db, *id, *attempt, outcome, *now))
                    })
                    .await
                }

                async fn resend(&self, account: Option<&AccountId>, id: DeliveryId, now: Timestamp) -> Result<Option<Delivery>> {
                    let args = (account.cloned(), id, now);
                    write(self, args, |db, (account, id, now)| {
                        Box::pin($crate::deliveries::resend(db, account.as_ref(), *id, *now))
                    })
                    .await
                }

                $($own)*
            }
        };
    };
}
