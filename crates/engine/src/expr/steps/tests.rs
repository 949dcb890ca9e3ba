use super::*;
use crate::expr::fixture::any_json;
use crate::reference::fixture::TestFacts;
use proptest::prelude::*;
use serde_json::json;

fn world() -> TestFacts {
    TestFacts(json!({
        "shared": {"name": "Ada", "n": "12", "when": "2026-11-15T09:00:00+08:00", "pattern": "^A.a$", "bad": "("},
        "node": {"ok": {"output": {"action": "approved", "comment": ""}}, "no": {"output": false}},
    }))
}

fn read(value: &Value) -> (Option<Test>, Vec<crate::problem::Problem>) {
    let mut problems = Problems::default();
    let test = Test::parse(value, "$.conditions", &mut problems);
    (test, problems.into_list())
}

fn outcome(operator: &str, a: Value, b: Value) -> Result<bool, String> {
    let value = json!([[{"operator": operator, "parameters": {"a": a, "b": b}}]]);
    let (test, problems) = read(&value);
    test.unwrap_or_else(|| panic!("{problems:?}")).holds(&world(), &Meter::default())
}

#[track_caller]
fn check(operator: &str, a: impl Into<Value>, b: impl Into<Value>, expected: bool) {
    let name = format!("@internal/cmp/{operator}");
    assert_eq!(outcome(&name, a.into(), b.into()), Ok(expected), "{operator}");
}

#[test]
fn strings_compare_as_text() {
    check("string-eq", "{{$var.name}}", "Ada", true);
    check("string-eq", "{{$var.n}}", 12, true);
    check("string-eq", "{{$var.missing}}", "", true);
    check("string-neq", "{{$var.name}}", "ada", true);
    check("string-contains", "x{{$var.name}}x", "Ada", true);
    check("string-not-contains", "{{$var.name}}", "da", false);
    check("string-start-with", "{{$var.name}}", "A", true);
    check("string-end-with", "{{$var.name}}", "A", false);
    check("string-empty", "{{$var.missing}}", Value::Null, true);
    check("string-not-empty", "{{$var.name}}", Value::Null, true);
}

#[test]
fn patterns_may_be_literal_or_computed() {
    check("string-match", "{{$var.name}}", "^[A-Z]da$", true);
    check("string-match", "{{$var.name}}", "{{$var.pattern}}", true);
    let computed = outcome("@internal/cmp/string-match", json!("x"), json!("{{$var.bad}}"));
    assert!(computed.unwrap_err().contains("no regular expression"));
    let (test, problems) =
        read(&json!([[{"operator": "@internal/cmp/string-match", "parameters": {"a": "x", "b": "("}}]]));
    assert!(test.is_none());
    assert_eq!(problems[0].path, "$.conditions[0][0].parameters.b");
}

#[test]
fn numbers_accept_numeric_text_and_nothing_else() {
    check("number-eq", "{{$var.n}}", 12.0, true);
    check("number-neq", "{{$var.n}}", "12", false);
    check("number-gt", "{{$var.n}}", 11, true);
    check("number-gte", "{{$var.n}}", 12, true);
    check("number-lt", "{{$var.n}}", 12, false);
    check("number-lte", "9007199254740993", 9_007_199_254_740_992_u64, false);
    let reason = outcome("@internal/cmp/number-gt", json!("{{$var.name}}"), json!(1)).unwrap_err();
    assert_eq!(reason, "a number is expected, not the text `Ada`");
    assert!(
        outcome("@internal/cmp/number-eq", json!("{{$var.missing}}"), json!(0))
            .unwrap_err()
            .ends_with("null")
    );
}

#[test]
fn dates_are_moments_however_they_are_written() {
    check("date-eq", "{{$var.when}}", "2026-11-15T01:00:00Z", true);
    check("date-eq", "{{$var.when}}", 1_794_704_400, true);
    check("date-eq", "{{$var.when}}", 1_794_704_400_000_i64, true);
    check("date-eq", "{{$var.when}}", "1794704400", true);
    check("date-neq", "2026-11-15", "2026-11-15T00:00:00Z", false);
    check("date-earlier-than", "2026-11-14", "{{$var.when}}", true);
    check("date-later-than", "{{$var.when}}", "2026-11-14", true);
    assert!(outcome("@internal/cmp/date-eq", json!("soon"), json!(1)).unwrap_err().contains("`soon`"));
    assert!(outcome("@internal/cmp/date-eq", json!(f64::MAX), json!(1)).is_err());
}

#[test]
fn decisions_have_two_spellings() {
    let decided = |a: &str, b: Value| outcome("@workflow/cmp/approval-eq", json!(a), b);
    assert_eq!(decided("{{__ok}}", json!("approved")), Ok(true));
    assert_eq!(decided("{{__ok}}", json!(true)), Ok(true));
    assert_eq!(decided("{{__ok.action}}", json!("rejected")), Ok(false));
    assert_eq!(decided("{{__no}}", json!("rejected")), Ok(true));
    assert_eq!(outcome("@workflow/cmp/approval-neq", json!("{{__no}}"), json!("approved")), Ok(true));
}

#[test]
fn outer_lists_join_with_or_and_inner_ones_with_and() {
    let cond = |a: i64| json!({"operator": "@internal/cmp/number-eq", "parameters": {"a": a, "b": 1}});
    let broken = json!({"operator": "@internal/cmp/number-eq", "parameters": {"a": "x", "b": 1}});
    let holds = |value: Value| read(&value).0.unwrap().holds(&world(), &Meter::default());
    assert_eq!(holds(json!([[cond(1), cond(2)], [cond(1)]])), Ok(true));
    assert_eq!(holds(json!([[cond(1), cond(2)], [cond(3)]])), Ok(false));
    assert_eq!(holds(json!([])), Ok(true));
    assert_eq!(holds(json!([[]])), Ok(true));
    assert_eq!(holds(json!(null)), Ok(true));
    assert_eq!(
        holds(json!([[broken], [cond(1)]])),
        Ok(true),
        "a list that holds makes good for a broken one"
    );
    assert!(holds(json!([[broken], [cond(2)]])).is_err());
    assert_eq!(holds(json!([[cond(2), broken]])), Ok(false), "what is false needs no more");
}

#[test]
fn every_mistake_is_reported_at_its_place() {
    let (test, problems) = read(&json!([
        [{"operator": "@internal/cmp/string-equals", "parameters": {"a": 1, "b": "{{"}}, 5],
        {"operator": "x"},
        [{"operator": "@internal/cmp/number-gt", "parameters": {"a": 1}}],
    ]));
    assert!(test.is_none());
    let found: Vec<_> =
        problems.iter().map(|problem| problem.path.trim_start_matches("$.conditions")).collect();
    assert_eq!(found, ["[0][0].operator", "[0][0].parameters.b", "[0][1]", "[1]", "[2][0].parameters"]);
    assert_eq!(problems[0].hint.as_deref(), Some("did you mean `@internal/cmp/string-eq`?"));
    assert_eq!(problems[4].reason, "the parameter `b` is missing");
}

proptest! {
    #[test]
    fn any_json_is_read_or_refused(a in any_json(), b in any_json(), pick in 0..OPERATORS.len()) {
        let cond = json!({"operator": OPERATORS[pick].0, "parameters": {"a": a, "b": b}});
        for value in [json!([[cond]]), json!([a]), json!([[a]]), b] {
            if let (Some(test), _) = read(&value) {
                let _ = test.holds(&world(), &Meter::default());
            }
        }
    }
}
