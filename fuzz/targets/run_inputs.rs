#![no_main]
//! Random runs with an oracle beside them: every byte is a choice.

use windlass_fuzz::game;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Err(broken) = game::play(input) {
        panic!("{broken}");
    }
});
