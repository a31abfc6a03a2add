//! The rule for recurring credits: set, shown, replaced and removed.

use crate::program::Program;

#[test]
fn a_rule_is_set_shown_and_removed() {
    let program = Program::without_store();
    let text = "Every month (UTC), accounts get 2 credits, up to a balance of 2.5.\n";
    let none = "Accounts are not refilled.\n";
    for (line, expected) in [
        ("refill set --credits 2 --every month --cap 2.5", text),
        ("refill show", text),
        ("refill off", none),
        ("refill show", none),
        ("refill show --json", "{\"refill\":null}\n"),
        // Twice is no error.
        ("refill off", none),
    ] {
        assert_eq!(program.run(line).success(), expected, "{line}");
    }
    let rule = "{\"cap\":2.5,\"credits\":2,\"every\":\"monthly\"}";
    program.run("refill set --credits 2 --every month --cap 2.5").success();
    program.documents(&[("refill show", &[("/refill", rule)]), ("refill off", &[("/refill", "null")])]);
}

#[test]
fn periods_have_two_names() {
    let program = Program::without_store();
    for (name, stored) in [
        ("day", "daily"),
        ("daily", "daily"),
        ("week", "weekly"),
        ("weekly", "weekly"),
        ("month", "monthly"),
        ("monthly", "monthly"),
    ] {
        let set = format!("refill set --credits 1 --every {name} --cap 1");
        program.documents(&[(&set, &[("/refill/every", &format!("\"{stored}\""))])]);
    }
    let text = program.run("refill show").success();
    assert_eq!(text, "Every month (UTC), accounts get 1 credit, up to a balance of 1.\n");
}

#[test]
fn a_rule_that_is_not_valid_changes_nothing() {
    let program = Program::without_store();
    program.run("refill set --credits 2 --every week --cap 3").success();
    program.refuses(&[
        ("refill set --credits 0 --every month --cap 2", 2, "--credits must be above 0"),
        ("refill set --credits 2 --every month --cap 0", 2, "--cap must be above 0"),
        ("refill set --credits 2 --every year --cap 2", 2, "must be day, week or month"),
        ("refill set --credits two --every month --cap 2", 2, "--credits"),
        ("refill set --credits 0.123456789 --every month --cap 2", 2, "--credits"),
        ("refill set --credits 2 --every month", 2, "--cap"),
    ]);
    let kept = [("/refill/credits", "2"), ("/refill/every", "\"weekly\""), ("/refill/cap", "3")];
    program.documents(&[("refill show", &kept)]);
}

#[test]
fn changes_of_the_rule_are_in_the_audit_log() {
    let program = Program::without_store();
    program.run("refill set --credits 2 --every month --cap 2").success();
    program.run("refill off --reason 'End of the trial'").success();
    let rule = "{\"cap\":2,\"credits\":2,\"every\":\"monthly\"}";
    let newest = [
        ("/entries/0/action", "\"refill.remove\""),
        ("/entries/0/reason", "\"End of the trial\""),
        ("/entries/0/before", rule),
        ("/entries/1/action", "\"refill.set\""),
        ("/entries/1/subject", "\"refill\""),
        ("/entries/1/outcome/after", rule),
    ];
    program.documents(&[("audit", &newest)]);
}
