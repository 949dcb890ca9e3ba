#![no_main]
//! Random runs with an oracle beside them: every byte is a choice.

use windlass_fuzz::game;

/// Bytes of one game; longer ones say the same at greater length.
const BYTES: usize = 1_000;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if input.len() <= BYTES
        && let Err(broken) = game::play(input)
    {
        panic!("{broken}");
    }
});
