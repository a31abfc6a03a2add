//! Runs campaigns one after the other, prints their findings, and decides whether the run passed.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use metering_core::{Randomness, SystemRandomness};

use super::report::Report;
use super::{Arguments, CAMPAIGNS, Campaign, Setting};

/// Runs the selected campaigns, and returns whether all passed.
///
/// # Errors
/// If a campaign is unknown, or the output cannot be written.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<bool, String> {
    if arguments.list {
        list(out).map_err(|error| error.to_string())?;
        return Ok(true);
    }
    let chosen = chosen(arguments)?;
    let seed = arguments.seed.unwrap_or_else(random_seed);
    let both = arguments.all || arguments.smoke;
    let mut failed = Vec::new();
    for campaign in chosen {
        if (campaign.is_skipped)() {
            continue;
        }
        for plant in [false, true] {
            if (both || plant == arguments.plant) && !run_one(campaign, arguments, seed, plant, out)? {
                failed.push(format!("{}{}", campaign.name, if plant { " --plant" } else { "" }));
            }
        }
    }
    if !failed.is_empty() {
        writeln!(out, "chaos: FAILED: {} (seed {seed})", failed.join(", ")).map_err(|error| error.to_string())?;
    }
    Ok(failed.is_empty())
}

fn list(out: &mut dyn Write) -> std::io::Result<()> {
    for campaign in CAMPAIGNS {
        writeln!(out, "{:<18} {}\n{:<18} planted bug: {}", campaign.name, campaign.about, "", campaign.planted)?;
    }
    Ok(())
}

fn chosen(arguments: &Arguments) -> Result<Vec<&'static Campaign>, String> {
    if arguments.campaigns.is_empty() {
        return Ok(CAMPAIGNS.iter().collect());
    }
    let find = |name: &String| {
        let found = CAMPAIGNS.iter().find(|campaign| campaign.name == name);
        found.ok_or_else(|| format!("unknown campaign {name:?}; run `chaos --list` to see all"))
    };
    arguments.campaigns.iter().map(find).collect()
}

/// Runs one campaign, prints its report, and returns whether it passed.
fn run_one(
    campaign: &Campaign,
    arguments: &Arguments,
    seed: u64,
    plant: bool,
    out: &mut dyn Write,
) -> Result<bool, String> {
    let duration = arguments.duration();
    let mut setting = Setting::new(duration, seed, plant);
    let mut report = Report::default();
    let completed = catch_unwind(AssertUnwindSafe(|| (campaign.run)(&mut setting, &mut report)));
    let unproven = campaign.proves.iter().find(|counter| report.counter(counter) == 0);
    let (verdict, passed) = verdict(completed.is_ok(), unproven.copied(), plant, report.loss_count());
    let what = if plant { format!("planted bug: {}", campaign.planted) } else { campaign.about.to_owned() };
    let mut print = || {
        writeln!(out, "{}{}: {what}", campaign.name, if plant { " --plant" } else { "" })?;
        writeln!(
            out,
            "  seed {seed}, faults for {} s, {} s in all",
            duration.as_secs(),
            setting.created.elapsed().as_secs()
        )?;
        writeln!(out, "{report}  => {verdict}\n")?;
        out.flush()
    };
    print().map_err(|error| error.to_string())?;
    Ok(passed)
}

fn verdict(completed: bool, unproven: Option<&str>, plant: bool, losses: u64) -> (String, bool) {
    if let Some(counter) = unproven.filter(|_| completed) {
        return (format!("FAILED: this run proves nothing, because {counter:?} is 0"), false);
    }
    match (completed, plant, losses) {
        (false, _, _) => ("FAILED: the campaign itself panicked, see above".to_owned(), false),
        (true, false, 0) => ("passed: nothing lost".to_owned(), true),
        (true, false, losses) => (format!("FAILED: {losses} losses"), false),
        (true, true, 0) => ("FAILED: the planted bug was NOT caught".to_owned(), false),
        (true, true, losses) => (format!("passed: planted bug caught ({losses} losses)"), true),
    }
}

fn random_seed() -> u64 {
    let mut bytes = [0; 4];
    SystemRandomness.fill(&mut bytes);
    u64::from(u32::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_bug_passes_only_with_losses() {
        let passes = |completed, plant, losses| verdict(completed, None, plant, losses).1;
        assert!(passes(true, false, 0) && passes(true, true, 3));
        assert!(!passes(true, false, 1) && !passes(true, true, 0));
        assert!(!passes(false, false, 0) && !passes(false, true, 3));
        let idle = |plant, losses| verdict(true, Some("kills"), plant, losses).1;
        assert!(!idle(false, 0) && !idle(true, 3), "a run without faults proves nothing");
    }
}
