#![no_main]
//! Definitions that begin as JSON does: the strict reader, and the tolerant one behind it.

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if input.trim_ascii_start().starts_with(b"{") {
        windlass_fuzz::definition::try_out(input);
    }
});
