//! Choices made from bytes: the same bytes make the same choices, and none left means the plainest one. So an input that
//! a test shrinks, or a fuzzer mutates, stays meaningful.

pub struct Dice<'b> {
    bytes: &'b [u8],
}

impl<'b> Dice<'b> {
    pub fn new(bytes: &'b [u8]) -> Self {
        Dice { bytes }
    }

    pub fn is_spent(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        usize::from(*first) % n.max(1)
    }

    /// True once in `n` times; never when nothing is left.
    pub fn once_in(&mut self, n: usize) -> bool {
        !self.is_spent() && self.below(n) == n - 1
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// Bytes that look random; the same seed gives the same ones (splitmix64).
pub fn noise(seed: u64, n: usize) -> Vec<u8> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).to_le_bytes()[7]
    };
    (0..n).map(next).collect()
}
