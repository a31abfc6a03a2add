//! The example price matrix: it can be imported, its tokens are the real ones, and its descriptions are true.

use metering_core::payments::{PaymentKind, Plan};
use serde::Deserialize;

use crate::program::Program;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/plans/base-and-ethereum.json");

#[derive(Deserialize)]
struct PlanList {
    plans: Vec<Plan>,
}

fn imported() -> Vec<Plan> {
    let program = Program::without_store();
    program.run(&format!("plan import {FILE}")).success();
    program.json::<PlanList>("plan list").plans
}

/// Price and credits as whole numbers, so that nothing is rounded.
fn price_and_credits(plan: &Plan) -> (u128, u128) {
    let atoms = u128::try_from(plan.credits.atoms()).unwrap();
    (plan.price().unwrap().get(), atoms)
}

#[test]
fn discount_matches_the_difference_to_the_base_price() {
    let plans = imported();
    let mut discounted = 0;
    for plan in &plans {
        let same_money = |other: &&Plan| (other.chain_id, other.token_contract) == (plan.chain_id, plan.token_contract);
        let base: Vec<&Plan> =
            plans.iter().filter(same_money).filter(|other| other.discount_percent.is_none()).collect();
        let [base] = base[..] else { panic!("{} has not one base plan: {base:?}", plan.key()) };
        let ((price, credits), (base_price, base_credits)) = (price_and_credits(plan), price_and_credits(base));
        let percent = plan.discount_percent.unwrap_or_default();
        // price / credits = base price / base credits * (100 - percent) / 100, without a division.
        let left = 100 - u128::from(percent);
        assert_eq!(price * base_credits * 100, base_price * credits * left, "{}", plan.key());
        assert_eq!(plan.offer.is_some(), percent > 0, "{}", plan.key());
        let stated = format!("{percent} % off");
        assert_eq!(plan.description.contains(&stated), percent > 0, "{}", plan.key());
        discounted += u32::from(percent > 0);
    }
    assert!(discounted > 4, "{discounted}");
}

#[test]
fn larger_plans_are_never_dearer_and_state_their_bonus() {
    let plans = imported();
    for pair in plans.windows(2) {
        let [smaller, larger] = pair else { unreachable!("windows of two") };
        if (smaller.chain_id, smaller.token_contract) != (larger.chain_id, larger.token_contract) {
            continue;
        }
        let ((price, credits), (next_price, next_credits)) = (price_and_credits(smaller), price_and_credits(larger));
        assert!(next_price > price && next_price * credits < price * next_credits, "{}", larger.key());
    }
    let natives = plans.iter().filter(|plan| plan.payment_kind == PaymentKind::NativeValue);
    assert!(natives.clone().any(|plan| plan.bonus_credits.is_positive()));
    for plan in plans.iter().filter(|plan| plan.bonus_credits.is_positive()) {
        assert!(plan.description.contains("more on top"), "{}", plan.key());
    }
}

#[test]
fn tokens_are_those_of_their_chains() {
    // chain, USDC's contract according to its issuer
    let usdc =
        [(1, "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"), (8453, "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913")];
    for (chain_id, contract) in usdc {
        let plans: Vec<Plan> = imported().into_iter().filter(|plan| plan.chain_id == chain_id).collect();
        let (tokens, coins): (Vec<_>, Vec<_>) = plans.iter().partition(|plan| plan.payment_kind == PaymentKind::Erc20);
        assert!(tokens.len() > 2 && coins.len() > 2, "{chain_id}: several sizes of both");
        for plan in tokens {
            let facts = (plan.token_contract.to_checksummed(), plan.token_decimals, plan.token_symbol.as_str());
            assert_eq!(facts, (contract.to_owned(), 6, "USDC"), "{}", plan.key());
        }
        for plan in coins {
            assert_eq!((plan.token_decimals, plan.token_symbol.as_str()), (18, "ETH"), "{}", plan.key());
        }
    }
}
