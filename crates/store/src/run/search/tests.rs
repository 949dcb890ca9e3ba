use serde_json::json;

use super::*;

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn one(text: &str) -> SearchTerm {
    let search = RunSearch::parse(text, NOW).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let [term]: [SearchTerm; 1] = search.terms.try_into().unwrap_or_else(|terms| panic!("{text}: {terms:?}"));
    term
}

fn row(text: &str) -> RunCondition {
    match one(text).field {
        SearchField::Row(condition) => condition,
        other => panic!("{text}: {other:?}"),
    }
}

fn error(text: &str) -> (usize, String) {
    let error = RunSearch::parse(text, NOW).expect_err(text);
    (error.position, error.reason)
}

#[test]
fn every_field_is_read() {
    assert_eq!(
        row("status:failed,canceled"),
        RunCondition::Statuses(vec![RunStatus::Failed, RunStatus::Canceled])
    );
    assert_eq!(row("account:acme"), RunCondition::Accounts(vec!["acme".to_owned()]));
    assert_eq!(row("node:fan/3"), RunCondition::Nodes(vec![NodePath::from("fan/3")]));
    assert_eq!(row("error:timeout"), RunCondition::ErrorKinds(vec![FaultKind::Timeout]));
    assert_eq!(row(r#"error~"disk \"full\"""#), RunCondition::ErrorText("disk \"full\"".to_owned()));
    assert_eq!(
        row("label.team=video"),
        RunCondition::Label("team".to_owned(), Some(vec!["video".to_owned()]))
    );
    assert_eq!(row("label.team=*"), RunCondition::Label("team".to_owned(), None));
    assert_eq!(row("trigger:schedule"), RunCondition::Triggers(vec![RunTrigger::Schedule]));
    assert_eq!(row("request:r-1"), RunCondition::Requests(vec!["r-1".to_owned()]));
    assert_eq!(row("duration>10s"), RunCondition::LongerThan(10_000, NOW));
    assert_eq!(row("duration<5m"), RunCondition::ShorterThan(300_000, NOW));
    assert_eq!(row("after:7d"), RunCondition::Since(NOW.before(7 * DAY_MS)));
    assert_eq!(row("before:1970-01-02"), RunCondition::Until(Timestamp(86_400_000)));
    assert_eq!(row("after:1970-01-01T00:00:01Z"), RunCondition::Since(Timestamp(1_000)));
    assert_eq!(row("word"), RunCondition::Text("word".to_owned()));
    assert_eq!(row(r#""two words: here""#), RunCondition::Text("two words: here".to_owned()));
    let zeros = |end: &str| format!("run_0190a{}", end.repeat(27)).parse().unwrap();
    assert_eq!(row("id:run_0190a"), RunCondition::Ids(vec![(zeros("0"), zeros("f"))]));
    assert_eq!(
        one("flow:a@3,b").field,
        SearchField::Flow(vec![("a".to_owned(), Some(3)), ("b".to_owned(), None)])
    );
    assert_eq!(one("version:3").field, SearchField::Version(vec![VersionName::Number(3)]));
    assert_eq!(one("worker:w-1").field, SearchField::Worker(vec!["w-1".to_owned()]));
    let param = ParamTest { path: vec!["a".to_owned(), "b".to_owned()], values: vec![json!(5), json!("5")] };
    assert_eq!(one(r#"params.a.b=5,"5""#).field, SearchField::Param(param));
}

#[test]
fn terms_have_their_position_and_their_sign() {
    let search = RunSearch::parse("  status:failed  -é flow:x", NOW).unwrap();
    let found: Vec<_> = search.terms.iter().map(|term| (term.position, term.is_negated)).collect();
    assert_eq!(found, [(2, false), (17, true), (20, false)]);
    assert_eq!(RunSearch::parse(" \t ", NOW), Ok(RunSearch::default()));
}

#[test]
fn errors_name_the_position_and_the_remedy() {
    for (text, position, reason) in [
        ("stauts:failed", 0, "did you mean `status`?"),
        ("a status:faild", 9, "did you mean `failed`?"),
        ("status:failed,", 14, "a value is missing here"),
        ("status:", 7, "a value is missing here"),
        ("error~\"x", 6, "does not end"),
        ("status=failed", 0, "write `status:…`"),
        ("params.x:5", 0, "write `params.x=5`"),
        ("params..x=5", 0, "an empty part"),
        ("after:soon", 6, "a time is"),
        ("duration:5", 0, "duration>10s"),
        ("duration>x", 9, "a duration is"),
        ("id:xyz", 3, "hexadecimal"),
        ("flow:a@b", 5, "no number"),
        ("parent:run", 7, "run_…"),
        (":x", 0, "no field before"),
        ("-", 0, "nothing after"),
    ] {
        let (at, text_of_error) = error(text);
        assert_eq!(at, position, "{text}: {text_of_error}");
        assert!(text_of_error.contains(reason), "{text}: {text_of_error}");
    }
    assert_eq!(error(&"x".repeat(4_001)).0, CHARS_MAX);
    assert_eq!(error(&"x ".repeat(60)).0, 100);
}

#[test]
fn parameters_are_compared_as_json() {
    let holds = |text: &str, params: Value| match one(text).field {
        SearchField::Param(test) => test.holds(&params),
        other => panic!("{other:?}"),
    };
    assert!(holds("params.x=5", json!({"x": 5})));
    assert!(!holds("params.x=5", json!({"x": "5"})));
    assert!(holds("params.x=five", json!({"x": "five"})));
    assert!(holds("params.x=null", json!({})));
    assert!(holds("params.x=*", json!({"x": 0})));
    assert!(!holds("params.x=*", json!({"x": null})));
    assert!(holds("params.a.0.b=true", json!({"a": [{"b": true}]})));
    assert!(!holds("params.a.b=1", json!({"a": 1})));
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused_at_a_position_in_it(text in ".{0,80}") {
        if let Err(error) = RunSearch::parse(&text, NOW) {
            assert!(error.position <= text.chars().count(), "{error:?}");
        }
    }
}
