use super::*;
use crate::expr::fixture::any_json;
use crate::reference::fixture::TestFacts;
use proptest::prelude::*;
use serde_json::json;

fn world() -> TestFacts {
    TestFacts(json!({
        "params": {"n": 7, "s": "7", "big": 9_007_199_254_740_993_u64, "list": [1, "2", 3.0], "no": null},
        "shared": {"name": "Ada", "obj": {"k": 1}},
    }))
}

fn problems_of(value: &Value) -> Vec<crate::problem::Problem> {
    let mut problems = Problems::default();
    let parsed = JsonExpr::parse(value, "$.expr", &mut problems);
    assert_eq!(parsed.is_none(), problems.has_errors(), "{value}");
    problems.into_list()
}

#[track_caller]
fn check(value: Value, expected: bool) {
    let mut problems = Problems::default();
    let parsed = JsonExpr::parse(&value, "$", &mut problems);
    let parsed = parsed.unwrap_or_else(|| panic!("{:?}", problems.into_list()));
    assert_eq!(parsed.holds(&world(), &Meter::default()), Ok(expected), "{value}");
}

#[test]
fn numbers_and_numeric_strings_compare_as_numbers() {
    check(json!({"eq": ["$params.n", 7]}), true);
    check(json!({"eq": ["$params.s", 7]}), true);
    check(json!({"eq": ["$params.n", 7.0]}), true);
    check(json!({"gt": ["10", "9"]}), true);
    check(json!({"ge": ["$params.n", "7.0"]}), true);
    check(json!({"eq": ["$params.big", "9007199254740992"]}), false);
    check(json!({"gt": ["$params.big", "9007199254740992"]}), true);
    check(json!({"lt": [u64::MAX - 1, u64::MAX]}), true);
    check(json!({"eq": ["0e1", "0e2"]}), false);
    check(json!({"lt": ["abc", "abd"]}), true);
}

#[test]
fn values_of_different_types_are_unequal_and_in_no_order() {
    check(json!({"eq": ["$params.n", "x"]}), false);
    check(json!({"ne": ["$params.n", "x"]}), true);
    for operator in ["gt", "lt", "ge", "le"] {
        check(json!({operator: ["$params.n", "x"]}), false);
        check(json!({operator: ["$params.no", 0]}), false);
        check(json!({operator: [true, false]}), false);
    }
    check(json!({"eq": ["$params.missing", null]}), true);
    check(json!({"eq": [{"a": [1]}, {"a": [1.0]}]}), true);
}

#[test]
fn membership_is_of_lists_keys_and_text() {
    check(json!({"in": [2, "$params.list"]}), true);
    check(json!({"in": [4, "$params.list"]}), false);
    check(json!({"in": ["$shared.name", ["Eve", "Ada"]]}), true);
    check(json!({"in": ["Ada", ["$shared.name"]]}), true);
    check(json!({"contains": ["$shared.name", "da"]}), true);
    check(json!({"contains": ["$shared.obj", "k"]}), true);
    check(json!({"contains": ["$params.list", 3]}), true);
    check(json!({"contains": ["$params.missing", 3]}), false);
    check(json!({"contains": ["$shared.name", null]}), false);
}

#[test]
fn logic_joins() {
    let (yes, no) = (json!({"eq": [1, 1]}), json!({"eq": [1, 2]}));
    check(json!({"and": [yes, yes]}), true);
    check(json!({"and": [yes, no]}), false);
    check(json!({"or": [no, yes]}), true);
    check(json!({"or": [no, no]}), false);
    check(json!({"not": no}), true);
    check(json!({"not": [no]}), true);
    check(json!({"exists": "$shared.name"}), true);
    check(json!({"exists": "$params.no"}), false);
}

#[test]
fn every_mistake_is_reported_at_its_place() {
    let value = json!({"and": [{"eqq": [1, 1]}, {"eq": [1]}, {"eq": ["$prams.x", 1]}, 5, {}]});
    let problems = problems_of(&value);
    let found: Vec<_> = problems.iter().map(|problem| problem.path.as_str()).collect();
    let paths =
        ["$.expr.and[0].eqq", "$.expr.and[1].eq", "$.expr.and[2].eq[0]", "$.expr.and[3]", "$.expr.and[4]"];
    assert_eq!(found, paths);
    assert!(problems[0].hint.as_ref().unwrap().starts_with("did you mean `eq`? known: and, or,"));
    assert_eq!(problems[1].reason, "two values are expected, not 1");
    assert!(problems_of(&json!({"exists": "name"}))[0].hint.as_ref().unwrap().contains("$shared.name"));
    assert_eq!(problems_of(&json!({"or": []})).len(), 1);
    assert_eq!(problems_of(&json!({"eq": [1, 1], "ne": [1, 1]})).len(), 1);
}

#[test]
fn deep_and_broad_expressions_are_refused() {
    let mut deep = json!({"exists": "$input"});
    for _ in 0..100 {
        deep = json!({ "not": deep });
    }
    assert!(problems_of(&deep)[0].reason.contains("nests deeper than 32"));
    let broad = json!({"or": vec![json!({"eq": [1, 2]}); 5_000]});
    assert_eq!(problems_of(&broad).len(), 1);
}

#[test]
fn references_are_listed() {
    let value = json!({"or": [{"in": ["$params.a", ["$node.x.output"]]}, {"not": {"exists": "$shared.b"}}]});
    let parsed = JsonExpr::parse(&value, "$", &mut Problems::default()).unwrap();
    assert_eq!(parsed.refs().len(), 3);
    assert_eq!(parsed.refs()[1].node(), Some("x"));
}

proptest! {
    #[test]
    fn any_json_is_read_or_refused(value in any_json(), operator in prop::sample::select(&OPERATORS[..])) {
        let mut problems = Problems::default();
        for value in [json!({ operator: value }), json!({ operator: [value, 1] }), value] {
            if let Some(parsed) = JsonExpr::parse(&value, "$", &mut problems) {
                let _ = parsed.holds(&world(), &Meter::default());
            }
        }
    }

    #[test]
    fn orders_exclude_one_another(a in any_json(), b in any_json()) {
        let holds = |comparison: Comparison| comparison.holds(&a, &b);
        prop_assert_ne!(holds(Comparison::Eq), holds(Comparison::Ne));
        prop_assert!(!(holds(Comparison::Lt) && holds(Comparison::Gt)));
        prop_assert!(!holds(Comparison::Lt) || holds(Comparison::Le));
        prop_assert_eq!(holds(Comparison::Ge) && holds(Comparison::Le), holds(Comparison::Eq) && order(&a, &b).is_some());
    }
}
