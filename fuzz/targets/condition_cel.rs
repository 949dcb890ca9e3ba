#![no_main]
//! The expressions of the dag form, evaluated against facts that stand behind them.

use windlass_engine::expr::cel::CelExpr;
use windlass_fuzz::{facts::Everywhere, text_and_rest};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((text, rest)) = text_and_rest(input) else { return };
    let Ok(expr) = CelExpr::parse(text) else { return };
    let facts = Everywhere::of(rest);
    assert_eq!(expr.holds(&facts), expr.holds(&facts), "the same facts give the same answer");
    let _ = expr.refs();
});
