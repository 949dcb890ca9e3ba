//! Fair share of the lower classes: where runs wait together, the higher class goes first, and one claim in
//! five is kept for a lower one.
//!
//! The lower classes take these turns one after another, so that each of them gets on however much there is above it.
//! A claim that no lower class wants goes to the highest class, and the next claim is kept instead.

/// One turn in so many is kept: a fifth is felt by those who wait, and hardly by those who are urgent.
pub const SHARE: u32 = 5;

/// Whose turn it is in one place. `P` is a class; the greater, the more urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share<P> {
    /// Turns since a lower class had one.
    n_since: u32,
    /// The class that had it.
    last: Option<P>,
}

impl<P> Default for Share<P> {
    fn default() -> Self {
        Share { n_since: 0, last: None }
    }
}

impl<P: Ord + Copy> Share<P> {
    /// Whether the next turn is kept for a class below the one that would have it.
    pub fn is_kept(&self) -> bool {
        self.n_since >= SHARE - 1
    }

    /// Classes to search for a kept claim: below the first of these, and if there is none, below the
    /// second. `top` is the class that would have it otherwise.
    pub fn below(&self, top: P) -> [P; 2] {
        [self.last.map_or(top, |last| last.min(top)), top]
    }

    /// A claim went to the class `given`; in order, it would have been that of `top`.
    pub fn gave(&mut self, top: P, given: P) {
        if given < top {
            *self = Share { n_since: 0, last: Some(given) };
        } else {
            self.n_since = self.n_since.saturating_add(1);
        }
    }

    /// A kept claim went to a job without a class: it is used up, and the next lower class
    /// stays next.
    pub fn note_grant_by_other(&mut self) {
        self.n_since = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Gives so many claims to classes that always have jobs.
    fn turns(classes: &[i32], n: usize) -> BTreeMap<i32, usize> {
        let (mut share, mut counts) = (Share::default(), BTreeMap::new());
        let top = *classes.iter().max().unwrap();
        for _ in 0..n {
            let lower = |below: i32| classes.iter().copied().filter(|class| *class < below).max();
            let kept = share.is_kept().then(|| share.below(top).into_iter().find_map(lower)).flatten();
            let given = kept.unwrap_or(top);
            share.gave(top, given);
            *counts.entry(given).or_default() += 1;
        }
        counts
    }

    #[test]
    fn four_turns_in_five_are_those_of_the_highest_and_the_others_take_the_fifth_in_turn() {
        assert_eq!(turns(&[2, -2], 100), BTreeMap::from([(2, 80), (-2, 20)]));
        assert_eq!(turns(&[2, 1, 0, -1, -2], 100), [(2, 80), (1, 5), (0, 5), (-1, 5), (-2, 5)].into());
    }

    #[test]
    fn a_class_that_is_alone_has_every_turn() {
        assert_eq!(turns(&[0], 100), BTreeMap::from([(0, 100)]));
    }

    #[test]
    fn an_unused_turn_is_kept() {
        let mut share = Share::default();
        (0..1_000).for_each(|_| share.gave(2, 2));
        assert!(share.is_kept());
        share.gave(2, -2);
        assert!(!share.is_kept());
        // Classes above the last one get their claim when the cycle begins anew.
        assert_eq!(share.below(2), [-2, 2]);
        assert_eq!(share.below(-3), [-3, -3]);
    }

    #[test]
    fn a_kept_turn_that_another_claim_used_moves_no_run_in_the_round() {
        let mut share = Share::default();
        (0..SHARE).for_each(|_| share.gave(2, 2));
        share.gave(2, 0);
        (0..SHARE).for_each(|_| share.gave(2, 2));
        share.note_grant_by_other();
        assert!(!share.is_kept());
        assert_eq!(share.below(2), [0, 2]);
    }
}
