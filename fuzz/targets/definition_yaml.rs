#![no_main]
//! Definitions that do not begin as JSON does: the YAML reader.

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if !input.trim_ascii_start().starts_with(b"{") {
        windlass_fuzz::definition::try_out(input);
    }
});
