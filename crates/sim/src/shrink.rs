//! Seeds: making a world of one, checking it twice, and making a failing one smaller.

use std::collections::BTreeSet;

use windlass_engine::time::Timestamp;

use crate::bug::Bug;
use crate::checker::Violation;
use crate::fault::Faults;
use crate::rng::Rng;
use crate::world::{Outcomes, Setup, World};

/// The world of a seed.
pub fn setup(seed: u64, bug: Option<Bug>) -> Setup {
    let mut rng = Rng::new(seed ^ 0xabcd);
    Setup {
        seed,
        n_runs: rng.index(4) + 1,
        n_servers: rng.index(3) + 1,
        heal_at: Timestamp(1_000_000).after(rng.between(20_000, 150_000)),
        faults: Faults::swarm(&mut rng),
        bug,
    }
}

/// Plays a seed twice: the traces must match.
pub fn play_twice(setup: &Setup) -> Outcomes {
    let mut first = World::play(setup);
    let second = World::play(setup);
    if first.violation.is_none() && (first.trace, first.n_events) != (second.trace, second.n_events) {
        let message = format!("two plays of seed {} differ", setup.seed);
        first.violation = Some(Violation { invariant: "determinism", message });
    }
    first
}

/// The smallest world found that still breaks the same invariant: fewer faults, fewer runs, fewer servers, less time.
pub fn shrink(failing: &Setup) -> Setup {
    let Some(violation) = World::play(failing).violation else { return failing.clone() };
    let still = |setup: &Setup| {
        World::play(setup).violation.is_some_and(|found| found.invariant == violation.invariant)
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

fn candidates(of: &Setup) -> Vec<Setup> {
    let mut list = Vec::new();
    let faults = of.faults.enabled();
    for fault in faults {
        let fewer: BTreeSet<_> = faults.iter().copied().filter(|other| other != fault).collect();
        list.push(Setup { faults: Faults::only(fewer), ..of.clone() });
    }
    if of.n_runs > 1 {
        list.push(Setup { n_runs: of.n_runs - 1, ..of.clone() });
    }
    if of.n_servers > 1 {
        list.push(Setup { n_servers: of.n_servers - 1, ..of.clone() });
    }
    let ms = of.heal_at.since(Timestamp(1_000_000));
    if ms > 2_000 {
        list.push(Setup { heal_at: Timestamp(1_000_000).after(ms / 2), ..of.clone() });
    }
    list
}
