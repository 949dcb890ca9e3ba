//! Agreement with the `cel` crate: wherever it gives an answer, ours is the same.

use super::outcome;
use proptest::prelude::*;

/// Expressions that are true or false, over literals, with few brackets: how they are read depends on precedence.
fn any_expression() -> impl Strategy<Value = String> {
    let number = prop::sample::select(vec!["0", "1", "2", "3", "-1", "size('ab')", "size([1])", "int('3')"]);
    let number = number.prop_map(str::to_owned).prop_recursive(2, 4, 2, |inner| {
        let op = prop::sample::select(vec!["+", "-", "*", "/", "%"]);
        prop_oneof![
            3 => (inner.clone(), op, inner.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
            1 => inner.prop_map(|a| format!("-({a})")),
        ]
    });
    let text =
        prop::sample::select(vec!["'a'", "'b'", "'ab'", "''", "'a' + 'b'", "string(1)", r"'\x61'", "r'a'"]);
    let compare = || prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let leaf = prop_oneof![
        4 => (number.clone(), compare(), number.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        1 => (number.clone(), compare()).prop_map(|(a, op)| format!("{a} {op} 1.5")),
        2 => (text.clone(), compare(), text.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        1 => (number.clone(), number.clone()).prop_map(|(a, b)| format!("{a} in [{b}, 2]")),
        1 => (number.clone(), compare()).prop_map(|(a, op)| format!("[0, 1, 2].exists(x, x {op} {a})")),
        1 => (number.clone(), compare()).prop_map(|(a, op)| format!("[0, 1, 2].all(x, x {op} {a})")),
        1 => (number.clone(), compare()).prop_map(|(a, op)| format!("[0, 1, 2].exists_one(x, x {op} {a})")),
        1 => (number, compare()).prop_map(|(a, op)| format!("size([0, 1, 2].filter(x, x {op} {a})) == 2")),
        1 => text.clone().prop_map(|a| format!("'ab'.startsWith({a})")),
        1 => text.prop_map(|a| format!("'ab'.contains({a})")),
        1 => prop::sample::select(vec!["true", "false", "null == 1", "[1, 2] == [1, 2.0]"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        let op = prop::sample::select(vec!["&&", "||"]);
        prop_oneof![
            4 => (inner.clone(), op, inner.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
            1 => inner.clone().prop_map(|a| format!("!({a})")),
            1 => (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Where the `cel` crate finds an answer, ours is the same.
    #[test]
    fn answers_agree_with_those_of_the_cel_crate(text in any_expression()) {
        let theirs = ::cel::Program::compile(&text).unwrap().execute(&::cel::Context::default());
        // Divisions by zero have none.
        prop_assume!(theirs.is_ok());
        prop_assert_eq!(outcome(&text).map(::cel::Value::Bool).ok(), theirs.ok(), "{}", text);
    }
}
