#![no_main]
//! Cron expressions in any zone, at any time: `expression | zone`, and behind it the moment.

use windlass_engine::schedule::cron::{Cron, Dst};
use windlass_engine::time::Timestamp;
use windlass_fuzz::text_and_rest;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((text, rest)) = text_and_rest(input) else { return };
    let (expr, zone) = text.split_once('|').unwrap_or((text, "Europe/Berlin"));
    let Ok(cron) = Cron::parse(expr, zone) else { return };
    let mut moment = [0; 8];
    moment.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let after = Timestamp(i64::from_le_bytes(moment));
    let dst = [Dst::Shift, Dst::Skip, Dst::Twice][rest.len() % 3];
    let cron = cron.with_dst(dst);
    let mut last = after;
    for slot in cron.upcoming(after, 5) {
        assert!(slot > last, "{slot:?} comes after {last:?}");
        let just_before = Timestamp(slot.0 - 1);
        assert_eq!(cron.next_after(just_before), Some(slot), "a slot is found from just before it");
        let (found, _) = cron.latest(last, slot, 3);
        assert_eq!(found, [slot], "there is one slot up to the next slot");
        last = slot;
    }
    let text = serde_json::to_string(&cron).expect("a cron is two texts");
    let read: Cron = serde_json::from_str(&text).expect("what was written can be read");
    assert_eq!(read, cron);
});
