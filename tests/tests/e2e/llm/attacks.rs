//! Requests of clients that try to get more than they pay for, and the outcome: the true cost next to the charge.
//!
//! A request is refused with the path of the wrong member and costs nothing, or it is served and its charge is exactly
//! its true cost. Nothing that the catalogue does not name reaches the upstream.

mod anthropic;
mod bodies;
mod gemini;
mod openai;
mod parallel;

use crate::llm::scene::Scene;

/// A request and the expected outcome.
struct Attack {
    what: &'static str,
    target: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: Vec<u8>,
    outcome: Outcome,
}

enum Outcome {
    /// 400 with this text, usually the JSON pointer of what is wrong.
    Refused(&'static str),
    /// Another refusal, with one of these statuses.
    RefusedWith(&'static [u16]),
    /// Served, charged exactly its true cost, and at least that much was held. The upstream got none of these texts, in
    /// body, path or headers.
    Served(&'static [&'static str]),
    /// The same, but less than the cost was held, for this reason.
    HeldTooLittle(&'static str),
}

use Outcome::{HeldTooLittle, Refused, RefusedWith, Served};

impl Attack {
    fn new(what: &'static str, target: &'static str, body: impl Into<Vec<u8>>, outcome: Outcome) -> Self {
        Self { what, target, headers: &[], body: body.into(), outcome }
    }

    fn headers(mut self, headers: &'static [(&'static str, &'static str)]) -> Self {
        self.headers = headers;
        self
    }
}

/// Sends each request, and lists what is not as it has to be.
#[track_caller]
fn check(attacks: &[Attack]) {
    let scene = Scene::new();
    let account = scene.site.account("100");
    let mut wrong = Vec::new();
    for attack in attacks {
        let before = scene.upstream.received().len();
        let response = scene.send(&account, attack.target, attack.headers, &attack.body);
        let reached = scene.upstream.received().split_off(before);
        let mut fail = |problem: String| wrong.push(format!("{}: {problem}", attack.what));
        match attack.outcome {
            Refused(_) | RefusedWith(_) if !reached.is_empty() => fail("it reached the upstream".to_owned()),
            Refused(pointer) if response.status != 400 || !response.text().contains(pointer) => {
                fail(format!("not refused at {pointer}: {} {}", response.status, response.text()));
            }
            RefusedWith(statuses) if !statuses.contains(&response.status) => {
                fail(format!("status {} {}", response.status, response.text()));
            }
            Refused(_) | RefusedWith(_) => {}
            Served(_) | HeldTooLittle(_) if response.status != 200 || reached.len() != 1 => {
                fail(format!("reached {} times: {} {}", reached.len(), response.status, response.text()));
            }
            Served(_) | HeldTooLittle(_) => {
                let (paid, cost) = (scene.paid(&account, &response), reached[0].cost_atoms);
                let forwarded = format!("{} {:?} {}", reached[0].target, reached[0].headers, text(&reached[0].body));
                if paid.charged != cost || cost == 0 {
                    fail(format!("cost {cost} atoms, charged {paid:?}: {forwarded}"));
                }
                match attack.outcome {
                    Served(_) if paid.released == 0 => fail(format!("too little was held: {paid:?}")),
                    HeldTooLittle(why) if paid.released > 0 => fail(format!("enough is held ({paid:?}), though {why}")),
                    Served(removed) => {
                        let kept = removed.iter().filter(|removed| forwarded.contains(**removed));
                        kept.for_each(|kept| fail(format!("{kept} reached the upstream: {forwarded}")));
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), attacks.len(), wrong.join("\n"));
}

fn text(body: &[u8]) -> String {
    String::from_utf8_lossy(body).into_owned()
}
