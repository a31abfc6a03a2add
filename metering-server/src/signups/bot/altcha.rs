//! ALTCHA proof of work, protocol version 2: the browser finds a counter by trial, the server verifies one hash.
//!
//! Challenges are signed and carry their expiry, so the server does not store them. It only remembers used solutions.

use std::net::IpAddr;
use std::time::Duration;

use altcha::{Challenge, CreateChallengeOptions, Payload, VerifySolutionOptions, create_challenge, verify_solution};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use metering_core::signups::{BotCheck, BotCheckError, BotVerdict};
use metering_core::{Clock, Randomness, SystemClock, SystemRandomness, Timestamp};
use sha3::{Digest, Sha3_256};
use zeroize::Zeroizing;

use crate::config::SignupConfig;

use super::demand::Demand;

/// How long a challenge is valid.
const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// How many attempts a browser needs when there were few recent signups: at least `MIN_ATTEMPTS`, plus up to
/// `EXTRA_ATTEMPTS`. With 5,000 iterations each, a phone takes a second or two. More work means more attempts, not more
/// iterations: verifying costs the server one derivation no matter how many there are, and the widget shows progress.
const MIN_ATTEMPTS: u32 = 300;
const EXTRA_ATTEMPTS: u32 = 512;
/// The longest solution that is parsed, in bytes.
const MAX_SOLUTION_BYTES: usize = 8_192;

/// Issues challenges and verifies solutions.
pub(crate) struct ProofOfWork {
    cost: u32,
    demand: Demand,
    challenge_secret: Zeroizing<String>,
    key_secret: Zeroizing<String>,
}

impl std::fmt::Debug for ProofOfWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProofOfWork").field("cost", &self.cost).finish_non_exhaustive()
    }
}

impl ProofOfWork {
    /// Uses the configured secret, or generates one. With a generated secret, challenges are only valid in this
    /// process.
    pub(crate) fn new(config: &SignupConfig) -> Self {
        let secret = match &config.challenge_secret {
            Some(secret) => Zeroizing::new(secret.expose().to_owned()),
            None => {
                let mut bytes = Zeroizing::new([0; 32]);
                SystemRandomness.fill(bytes.as_mut_slice());
                Zeroizing::new(hex::encode(bytes.as_slice()))
            }
        };
        let derived = |purpose: &str| {
            let mut hasher = Sha3_256::new();
            hasher.update(purpose.as_bytes());
            hasher.update(secret.as_bytes());
            Zeroizing::new(hex::encode(hasher.finalize()))
        };
        Self {
            cost: config.altcha_cost,
            demand: Demand::new(config.altcha_max_factor, SystemClock.now()),
            challenge_secret: derived("altcha challenge"),
            key_secret: derived("altcha key"),
        }
    }

    /// A challenge for a client, in the widget's format. It takes more work after many recent signups.
    ///
    /// # Errors
    /// When it cannot be created, which does not happen with validated settings.
    pub(crate) fn challenge(&self, client: IpAddr, now: Timestamp) -> Result<Challenge, altcha::Error> {
        let factor = self.demand.challenge(client, now);
        let mut drawn = [0; 4];
        SystemRandomness.fill(&mut drawn);
        let attempts = MIN_ATTEMPTS * factor + u32::from_le_bytes(drawn) % (EXTRA_ATTEMPTS * factor);
        create_challenge(CreateChallengeOptions {
            algorithm: "PBKDF2/SHA-256".to_owned(),
            cost: self.cost,
            counter: Some(attempts),
            expires_at: Some(now.saturating_add(LIFETIME).unix_seconds()),
            hmac_signature_secret: Some(self.challenge_secret.to_string()),
            hmac_key_signature_secret: Some(self.key_secret.to_string()),
            ..CreateChallengeOptions::default()
        })
    }

    /// Counts an approved signup.
    pub(super) fn approved(&self, client: IpAddr, now: Timestamp) {
        self.demand.signup(client, now);
    }

    /// Forgets idle clients.
    pub(super) fn forget_idle(&self, now: Timestamp) {
        self.demand.forget_idle(now);
    }

    fn is_solved(&self, payload: &Payload) -> bool {
        // A challenge without a key signature would be verified by deriving the key, at a cost chosen by the sender.
        if payload.challenge.parameters.key_signature.as_ref().is_none_or(String::is_empty) {
            return false;
        }
        let options = VerifySolutionOptions {
            hmac_key_signature_secret: Some(self.key_secret.to_string()),
            ..VerifySolutionOptions::new(&payload.challenge, &payload.solution, self.challenge_secret.as_str())
        };
        verify_solution(options).is_ok_and(|result| result.verified)
    }
}

#[async_trait]
impl BotCheck for ProofOfWork {
    async fn judge(&self, token: &str, _: Option<IpAddr>, now: Timestamp) -> Result<BotVerdict, BotCheckError> {
        let payload = read(token);
        let Some(payload) = payload.filter(|payload| self.is_solved(payload)) else { return Ok(BotVerdict::Failed) };
        let expires_at = payload.challenge.parameters.expires_at.unwrap_or(0);
        let expires_at = Timestamp::from_unix_millis(expires_at.saturating_mul(1_000));
        if expires_at <= now {
            return Ok(BotVerdict::Failed);
        }
        // Identify a solution by its signed challenge: other parts can be encoded in more than one way.
        let parameters = &payload.challenge.parameters;
        let solution =
            Sha3_256::digest(format!("{}.{}", parameters.nonce.to_lowercase(), parameters.salt.to_lowercase()));
        Ok(BotVerdict::Passed { once: Some((solution.into(), expires_at)) })
    }
}

/// Decodes what the widget sends: the challenge and its solution, as JSON in base64.
fn read(token: &str) -> Option<Payload> {
    if token.len() > MAX_SOLUTION_BYTES {
        return None;
    }
    serde_json::from_slice(&STANDARD.decode(token.trim()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use altcha::{SolveChallengeOptions, solve_challenge};

    use super::*;

    fn now() -> Timestamp {
        use metering_core::{Clock, SystemClock};
        SystemClock.now()
    }

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn check() -> ProofOfWork {
        ProofOfWork::new(&SignupConfig { altcha_cost: 10, ..SignupConfig::default() })
    }

    fn solve(challenge: &Challenge) -> Payload {
        let solution = solve_challenge(SolveChallengeOptions::new(challenge)).unwrap().unwrap();
        Payload { challenge: challenge.clone(), solution }
    }

    fn encode(payload: &Payload) -> String {
        STANDARD.encode(serde_json::to_vec(payload).unwrap())
    }

    async fn verdict(check: &ProofOfWork, payload: &Payload) -> BotVerdict {
        check.judge(&encode(payload), None, now()).await.unwrap()
    }

    #[tokio::test]
    async fn a_solved_challenge_passes_and_is_named() {
        let check = check();
        let payload = solve(&check.challenge(CLIENT, now()).unwrap());
        let BotVerdict::Passed { once: Some(first) } = verdict(&check, &payload).await else { panic!("refused") };
        let BotVerdict::Passed { once: Some(again) } = verdict(&check, &payload).await else { panic!("refused") };
        assert_eq!(first.0, again.0, "the same solution has the same id");
        let other = solve(&check.challenge(CLIENT, now()).unwrap());
        let BotVerdict::Passed { once: Some(other) } = verdict(&check, &other).await else { panic!("refused") };
        assert_ne!(first.0, other.0);
    }

    #[tokio::test]
    async fn unsolved_challenge_fails() {
        let check = check();
        let challenge = check.challenge(CLIENT, now()).unwrap();
        let good = solve(&challenge);
        type Change = fn(&mut Payload);
        let table: [(&str, Change); 8] = [
            ("another counter's key", |p| p.solution.derived_key = "00".repeat(32)),
            ("a forged signature", |p| p.challenge.signature = Some("00".repeat(32))),
            ("no signature", |p| p.challenge.signature = None),
            ("no signature of the key", |p| p.challenge.parameters.key_signature = None),
            ("a lower cost", |p| p.challenge.parameters.cost = 1),
            ("another expiry", |p| p.challenge.parameters.expires_at = Some(i64::MAX)),
            ("no expiry", |p| p.challenge.parameters.expires_at = None),
            ("another challenge's nonce", |p| p.challenge.parameters.nonce = "00".repeat(16)),
        ];
        for (what, change) in table {
            let mut payload = good.clone();
            change(&mut payload);
            assert_eq!(verdict(&check, &payload).await, BotVerdict::Failed, "{what}");
        }
        for garbage in ["", "x", "e30=", "bnVsbA==", &"A".repeat(9_000)] {
            assert_eq!(check.judge(garbage, None, now()).await, Ok(BotVerdict::Failed), "{garbage:.20}");
        }
        let other = ProofOfWork::new(&SignupConfig { altcha_cost: 10, ..SignupConfig::default() });
        assert_eq!(verdict(&other, &good).await, BotVerdict::Failed, "another server's challenge");
    }

    /// How the work of one network's challenges grows, in tries. `cargo test -- --nocapture` also prints the time that
    /// the least and the most work take on one core at the default cost.
    #[test]
    fn work_rises_with_a_networks_challenges_and_stays_solvable() {
        let check = ProofOfWork::new(&SignupConfig::default());
        let solved = |challenge: &Challenge| {
            let started = std::time::Instant::now();
            let solution = solve(challenge).solution;
            println!("{} attempts took {:?} of one core", solution.counter, started.elapsed());
            solution.counter
        };
        let first = solved(&check.challenge(CLIENT, now()).unwrap());
        assert!((300..812).contains(&first), "{first}");
        let mut last = check.challenge(CLIENT, now()).unwrap();
        for _ in 0..30 {
            last = check.challenge(CLIENT, now()).unwrap();
        }
        let last = solved(&last);
        assert!((300 * 16..812 * 16).contains(&last), "{last}");
        let other = check.challenge("203.0.113.9".parse().unwrap(), now()).unwrap();
        assert!(solved(&other) < 812, "another network still gets the least work");
    }

    #[tokio::test]
    async fn an_expired_challenge_fails() {
        let check = check();
        let earlier = now().saturating_sub(LIFETIME + Duration::from_secs(2));
        let payload = solve(&check.challenge(CLIENT, earlier).unwrap());
        assert_eq!(verdict(&check, &payload).await, BotVerdict::Failed);
    }

    #[tokio::test]
    async fn servers_sharing_a_secret_accept_each_others_challenges() {
        let config: SignupConfig =
            toml::from_str("altcha_cost = 10\nchallenge_secret = 'a secret of sixteen or more'").unwrap();
        let (one, other) = (ProofOfWork::new(&config), ProofOfWork::new(&config));
        let payload = solve(&one.challenge(CLIENT, now()).unwrap());
        assert!(matches!(verdict(&other, &payload).await, BotVerdict::Passed { .. }));
    }
}
