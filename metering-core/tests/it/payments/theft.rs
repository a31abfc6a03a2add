//! The theft game: honest customers and a thief, who sees every transaction and can call every endpoint, move in random
//! order. In the end, no customer's money is in an account that the thief can spend from, the thief has no more credits
//! than it paid for, and every customer who paid can use what they bought.

mod moves;
mod simulation;
mod verdict;

use proptest::prelude::*;

use moves::{Move, moves};
use simulation::Simulation;

fn play(moves: Vec<Move>, proof: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut game = Simulation::new(proof).await;
        for next in moves {
            game.play(next).await;
        }
        game.assert_no_customer_lost_credits(proof).await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn thief_never_gains_more_than_it_paid(moves in moves()) {
        play(moves, true);
    }

    #[test]
    fn quoted_payments_are_safe_even_without_payer_proof(moves in moves()) {
        play(moves, false);
    }
}
