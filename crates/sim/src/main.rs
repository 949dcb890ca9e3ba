//! `windlass-sim [--seeds N] [--from SEED] [--seed SEED] [--bug NAME | --bugs] [--threads N]`

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use windlass_sim::bug::{self, PlantedBug};
use windlass_sim::fault::SimFault;
use windlass_sim::shrink::{play_twice, setup, shrink};
use windlass_sim::simulation::Simulation;

/// A planted bug must be found within so many seeds.
const BUG_SEEDS: u64 = 10_000;

struct SimArgs {
    seeds: u64,
    from: u64,
    only: Option<u64>,
    bug: Option<PlantedBug>,
    bugs: bool,
    threads: usize,
}

fn main() -> ExitCode {
    let args = match parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(error) => {
            eprintln!("windlass-sim: {error}");
            eprintln!(
                "usage: windlass-sim [--seeds N] [--from SEED] [--seed SEED] [--bug NAME | --bugs] [--threads N]"
            );
            return ExitCode::from(2);
        }
    };
    let good = match (args.only, args.bugs) {
        (Some(seed), _) => one(seed, args.bug),
        (None, true) => all_found(args.threads),
        (None, false) => many(&args),
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<SimArgs, String> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut args = SimArgs { seeds: 2_000, from: 0, only: None, bug: None, bugs: false, threads };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("`{text}` is no number"));
        match word.as_str() {
            "--seeds" => args.seeds = number(value()?)?,
            "--from" => args.from = number(value()?)?,
            "--seed" => args.only = Some(number(value()?)?),
            "--bug" => args.bug = Some(value()?.parse()?),
            "--bugs" => args.bugs = true,
            "--threads" => args.threads = usize::try_from(number(value()?)?).unwrap_or(1).max(1),
            other => return Err(format!("unknown option `{other}`")),
        }
    }
    Ok(args)
}

/// Plays one seed and prints its story.
fn one(seed: u64, bug: Option<PlantedBug>) -> bool {
    let outcome = play_twice(&setup(seed, bug));
    for line in &outcome.story {
        eprintln!("{line}");
    }
    eprintln!(
        "seed {seed}: {:?}, trace {:016x}, {} commits",
        outcome.violation, outcome.trace, outcome.n_events
    );
    outcome.violation.is_none()
}

/// Whether every planted bug is found.
fn all_found(threads: usize) -> bool {
    let next = AtomicU64::new(0);
    let missed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(bug) =
                    bug::ALL.get(usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(0))
                {
                    missed.fetch_add(u64::from(!find(*bug)), Ordering::Relaxed);
                }
            });
        }
    });
    let missed = missed.into_inner();
    println_summary(bug::ALL.len() as u64, usize::try_from(missed).unwrap_or(usize::MAX));
    missed == 0
}

/// Whether a planted bug is found.
fn find(bug: PlantedBug) -> bool {
    for seed in 0..BUG_SEEDS {
        if let Some(violation) = Simulation::play(&setup(seed, Some(bug))).violation {
            eprintln!("{bug:?}: found by seed {seed}: {} {}", violation.invariant, violation.message);
            return true;
        }
    }
    eprintln!("{bug:?}: NOT FOUND in {BUG_SEEDS} seeds");
    false
}

#[derive(Default)]
struct SimTotals {
    n_commits: u64,
    simulated_ms: u64,
    hits: BTreeMap<SimFault, u64>,
    failed: Vec<u64>,
}

fn many(args: &SimArgs) -> bool {
    let next = AtomicU64::new(args.from);
    let end = args.from + args.seeds;
    let sum = Mutex::new(SimTotals::default());
    std::thread::scope(|scope| {
        for _ in 0..args.threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let outcome = play_twice(&setup(seed, args.bug));
                    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
                    sum.n_commits += outcome.n_events;
                    sum.simulated_ms += outcome.simulated_ms;
                    for (fault, n) in outcome.hits {
                        *sum.hits.entry(fault).or_default() += n;
                    }
                    if let Some(violation) = outcome.violation {
                        eprintln!("seed {seed}: {} {}", violation.invariant, violation.message);
                        sum.failed.push(seed);
                    }
                }
            });
        }
    });
    report(args, sum.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn report(args: &SimArgs, sum: SimTotals) -> bool {
    let hours = sum.simulated_ms / 3_600_000;
    eprintln!("{} seeds, {} commits, {hours} simulated hours", args.seeds, sum.n_commits);
    eprintln!("faults: {:?}", sum.hits);
    let mut failed = sum.failed;
    failed.sort_unstable();
    if let Some(seed) = failed.first() {
        eprintln!("{} seeds failed; shrinking {seed} (play it with --seed {seed})", failed.len());
        eprintln!("{:#?}", shrink(&setup(*seed, args.bug)));
    }
    println_summary(args.seeds, failed.len());
    failed.is_empty()
}

#[expect(clippy::print_stdout, reason = "the closing line is the output of the program")]
fn println_summary(seeds: u64, failed: usize) {
    println!("simulated: {} passed, {failed} failed", seeds.saturating_sub(failed as u64));
}
