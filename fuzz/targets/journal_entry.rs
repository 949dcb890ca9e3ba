#![no_main]
//! Stored entries: any bytes are read or refused, and what was read is written so that it reads the same.

use windlass_engine::journal::Entry;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok(entry) = Entry::decode(input) else { return };
    let again = Entry::decode(&entry.encode()).expect("what was written can be read");
    assert_eq!(again, entry);
});
