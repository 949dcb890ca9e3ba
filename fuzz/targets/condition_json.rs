#![no_main]
//! The operator objects of the graph form, evaluated against facts that stand behind them.

use serde_json::{Value, json};
use windlass_engine::expr::json::JsonExpr;
use windlass_engine::meter::Meter;
use windlass_engine::problem::Problems;
use windlass_fuzz::{facts::Everywhere, text_and_rest};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((text, rest)) = text_and_rest(input) else { return };
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    let mut problems = Problems::default();
    let read = JsonExpr::parse(&value, "$", &mut problems);
    assert_eq!(read.is_none(), problems.has_errors(), "what cannot be read has a reason");
    let Some(expr) = read else { return };
    let facts = Everywhere::of(rest);
    let holds = expr.holds(&facts, &Meter::default());
    let _ = expr.refs();
    let negated = JsonExpr::parse(&json!({ "not": value }), "$", &mut problems);
    // It may be too deep by one now.
    if let Some(negated) = negated {
        let opposite = holds.map(|holds| !holds);
        assert_eq!(negated.holds(&facts, &Meter::default()), opposite, "`not` is the opposite");
    }
});
