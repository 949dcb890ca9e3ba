#![no_main]
//! The expressions of the dag form, evaluated against facts that stand behind them.

use windlass_engine::expr::cel::CelExpr;
use windlass_engine::meter::Meter;
use windlass_fuzz::{facts::Everywhere, text_and_rest};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((text, rest)) = text_and_rest(input) else { return };
    let Ok(expr) = CelExpr::parse(text) else { return };
    let facts = Everywhere::of(rest);
    let holds = || expr.holds(&facts, &Meter::default());
    assert_eq!(holds(), holds(), "the same facts give the same answer");
    let _ = expr.refs();
});
