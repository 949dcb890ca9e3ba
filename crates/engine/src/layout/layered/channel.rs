//! The tracks of a channel: lines between two layers that run across them, each on a track of its own where they would
//! cover one another.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Ends nearer than this on the two sides of a channel would look like one line.
const NEAR: i32 = 5;

/// A line across a channel, with the places where it meets either side.
#[derive(Debug, Clone, Default)]
pub(super) struct Trunk {
    pub(super) left: Vec<i32>,
    pub(super) right: Vec<i32>,
}

impl Trunk {
    fn ends(&self) -> impl Iterator<Item = i32> {
        self.left.iter().chain(&self.right).copied()
    }

    fn low(&self) -> i32 {
        self.ends().min().unwrap_or(0)
    }

    fn high(&self) -> i32 {
        self.ends().max().unwrap_or(0)
    }

    /// Trunks with a lower key come first, because then fewer lines cross: of those that lead on, the one that has
    /// farther to go in the way of another; those that turn back stay near their side.
    fn key(&self) -> (u8, i32) {
        let mean =
            |ends: &[i32]| ends.iter().sum::<i32>().checked_div(i32::try_from(ends.len()).unwrap_or(1));
        match (mean(&self.left), mean(&self.right)) {
            (Some(left), Some(right)) if right >= left => (1, -left),
            (Some(left), Some(_)) => (1, left),
            (Some(_), None) => (0, self.high() - self.low()),
            (None, _) => (2, self.low() - self.high()),
        }
    }
}

/// The track of every trunk, and how many tracks there are. A trunk that leads straight on needs none.
pub(super) fn tracks(trunks: &[Trunk]) -> (Vec<Option<usize>>, usize) {
    let mut found = vec![None; trunks.len()];
    let bent: Vec<usize> = (0..trunks.len()).filter(|ix| trunks[*ix].low() < trunks[*ix].high()).collect();
    let mut used = TrackTree::new(bent.iter().flat_map(|ix| trunks[*ix].ends()));
    let mut n_tracks = 0;
    for ix in in_order(trunks, &bent) {
        let (low, high) = (trunks[ix].low(), trunks[ix].high());
        let track = used.take(low, high);
        n_tracks = n_tracks.max(track + 1);
        found[ix] = Some(track);
    }
    (found, n_tracks)
}

/// Trunks in the order of their keys, but for those that must come first: where one leaves the left side at the place
/// at which another arrives at the right side, the first one turns off first.
fn in_order(trunks: &[Trunk], bent: &[usize]) -> Vec<usize> {
    let mut arrivals: Vec<(i32, usize)> =
        bent.iter().flat_map(|ix| trunks[*ix].right.iter().map(|end| (*end, *ix))).collect();
    arrivals.sort_unstable();
    let mut waits = vec![0_usize; trunks.len()];
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); trunks.len()];
    for ix in bent {
        for end in &trunks[*ix].left {
            let from = arrivals.partition_point(|(other, _)| *other < end - NEAR);
            for (_, other) in arrivals[from..].iter().take_while(|(other, _)| *other <= end + NEAR) {
                if other != ix {
                    after[*ix].push(*other);
                    waits[*other] += 1;
                }
            }
        }
    }
    let mut open: Vec<usize> = bent.to_vec();
    open.sort_by_key(|ix| (trunks[*ix].key(), *ix));
    let mut ready: BinaryHeap<Reverse<((u8, i32), usize)>> = BinaryHeap::new();
    ready.extend(open.iter().filter(|ix| waits[**ix] == 0).map(|ix| Reverse((trunks[*ix].key(), *ix))));
    let mut ordered = Vec::with_capacity(bent.len());
    let mut done = vec![false; trunks.len()];
    let mut rest = open.into_iter();
    loop {
        // Trunks that wait for one another in a circle: the first one goes on.
        let next = ready.pop().map(|Reverse((_, ix))| ix).or_else(|| rest.find(|ix| !done[*ix]));
        let Some(ix) = next else { return ordered };
        if std::mem::replace(&mut done[ix], true) {
            continue;
        }
        ordered.push(ix);
        for other in &after[ix] {
            waits[*other] = waits[*other].saturating_sub(1);
            if waits[*other] == 0 && !done[*other] {
                ready.push(Reverse((trunks[*other].key(), *other)));
            }
        }
    }
}

/// The first free track over every stretch between two ends: a segment tree of maxima.
pub(super) struct TrackTree {
    ends: Vec<i32>,
    /// The most in each subtree, and what was added to the whole of it.
    most: Vec<usize>,
    whole: Vec<usize>,
}

impl TrackTree {
    pub(super) fn new(ends: impl Iterator<Item = i32>) -> TrackTree {
        let mut ends: Vec<i32> = ends.collect();
        ends.sort_unstable();
        ends.dedup();
        let size = ends.len().next_power_of_two() * 2;
        TrackTree { ends, most: vec![0; size], whole: vec![0; size] }
    }

    /// Takes the first track beyond all that are taken between the two places, ends included.
    pub(super) fn take(&mut self, low: i32, high: i32) -> usize {
        let at = |end: i32| self.ends.partition_point(|other| *other < end);
        let (from, to) = (at(low), at(high));
        let last = self.ends.len() - 1;
        let track = self.first_free(1, (0, last), (from, to));
        self.raise(1, (0, last), (from, to), track + 1);
        track
    }

    fn first_free(&self, node: usize, span: (usize, usize), asked: (usize, usize)) -> usize {
        if asked.1 < span.0 || span.1 < asked.0 {
            return 0;
        }
        if asked.0 <= span.0 && span.1 <= asked.1 {
            return self.most[node];
        }
        let middle = span.0.midpoint(span.1);
        let first = self.first_free(node * 2, (span.0, middle), asked);
        let second = self.first_free(node * 2 + 1, (middle + 1, span.1), asked);
        first.max(second).max(self.whole[node])
    }

    fn raise(&mut self, node: usize, span: (usize, usize), asked: (usize, usize), to: usize) {
        if asked.1 < span.0 || span.1 < asked.0 {
            return;
        }
        self.most[node] = self.most[node].max(to);
        if asked.0 <= span.0 && span.1 <= asked.1 {
            self.whole[node] = self.whole[node].max(to);
            return;
        }
        let middle = span.0.midpoint(span.1);
        self.raise(node * 2, (span.0, middle), asked, to);
        self.raise(node * 2 + 1, (middle + 1, span.1), asked, to);
    }
}
