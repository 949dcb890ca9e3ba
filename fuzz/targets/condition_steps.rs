#![no_main]
//! The comparison lists of the steps form, evaluated against facts that stand behind them.

use serde_json::Value;
use windlass_engine::expr::steps::Test;
use windlass_engine::meter::Meter;
use windlass_engine::problem::Problems;
use windlass_fuzz::{facts::Everywhere, text_and_rest};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((text, rest)) = text_and_rest(input) else { return };
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    let mut problems = Problems::default();
    let read = Test::parse(&value, "$", &mut problems);
    assert_eq!(read.is_none(), problems.has_errors(), "what cannot be read has a reason");
    let Some(test) = read else { return };
    let facts = Everywhere::of(rest);
    let holds = || test.holds(&facts, &Meter::default());
    assert_eq!(holds(), holds(), "the same facts give the same answer");
    let _ = test.refs();
});
