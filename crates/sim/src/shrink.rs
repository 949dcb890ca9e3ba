//! Seeds: creating the world of a seed, playing it twice, and shrinking a failing one.

use std::collections::BTreeSet;

use crate::bug::PlantedBug;
use crate::checker::Violation;
use crate::fault::SimFaults;
use crate::rng::SimRng;
use crate::simulation::{SimReport, Simulation};
use crate::world::{BEGIN, SimSetup};

/// The setup of a seed.
pub fn setup(seed: u64, bug: Option<PlantedBug>) -> SimSetup {
    let mut rng = SimRng::new(seed ^ 0xabcd);
    SimSetup {
        seed,
        n_runs: rng.index(4) + 1,
        n_servers: rng.index(3) + 1,
        heal_at: BEGIN.after(rng.between(20_000, 150_000)),
        faults: SimFaults::swarm(&mut rng),
        bug,
    }
}

/// Plays a seed twice; the traces must match.
pub fn play_twice(setup: &SimSetup) -> SimReport {
    let mut first = Simulation::play(setup);
    let second = Simulation::play(setup);
    if first.violation.is_none() && (first.trace, first.n_events) != (second.trace, second.n_events) {
        let message = format!("two plays of seed {} differ", setup.seed);
        first.violation = Some(Violation { invariant: "determinism", message });
    }
    first
}

/// The smallest setup that still breaks the same invariant: fewer faults, fewer runs, fewer servers, less time.
pub fn shrink(failing: &SimSetup) -> SimSetup {
    let Some(violation) = Simulation::play(failing).violation else { return failing.clone() };
    let still = |setup: &SimSetup| {
        Simulation::play(setup).violation.is_some_and(|found| found.invariant == violation.invariant)
    };
    let mut best = failing.clone();
    loop {
        let smaller = candidates(&best).into_iter().find(|candidate| still(candidate));
        match smaller {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

fn candidates(of: &SimSetup) -> Vec<SimSetup> {
    let mut list = Vec::new();
    let faults = of.faults.enabled();
    for fault in faults {
        let fewer: BTreeSet<_> = faults.iter().copied().filter(|other| other != fault).collect();
        list.push(SimSetup { faults: SimFaults::only(fewer), ..of.clone() });
    }
    if of.n_runs > 1 {
        list.push(SimSetup { n_runs: of.n_runs - 1, ..of.clone() });
    }
    if of.n_servers > 1 {
        list.push(SimSetup { n_servers: of.n_servers - 1, ..of.clone() });
    }
    let ms = of.heal_at.since(BEGIN);
    if ms > 2_000 {
        list.push(SimSetup { heal_at: BEGIN.after(ms / 2), ..of.clone() });
    }
    list
}
