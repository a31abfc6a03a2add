//! Runs the example programs, as a reader would.

use std::env;
use std::process::Command;

#[test]
fn a_plan_is_sold_and_the_lost_key_replaced() {
    let test = env::current_exe().unwrap();
    let profile = test.parent().and_then(|deps| deps.parent()).expect("tests are in target/PROFILE/deps");
    let program = profile.join("examples").join(format!("sell_a_plan{}", env::consts::EXE_SUFFIX));
    let output = Command::new(program).output().expect("cargo builds the examples along with the tests");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(" has 12 credits\n10 credits more: 22\n2 payments are final\n"), "{text}");
}
