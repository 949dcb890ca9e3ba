use super::*;
use crate::expr::fixture::any_json;
use crate::reference::fixture::TestFacts;
use proptest::prelude::*;
use serde_json::json;

mod agreement;

fn world() -> TestFacts {
    TestFacts(json!({
        "params": {"tier": "gold", "limit": 10},
        "input": {"x": 3},
        "shared": {
            "n": 7, "half": 7.5, "big": u64::MAX, "list": [1, 2, 3], "s": "text", "yes": true, "nothing": null,
            "rows": [{"id": 1, "ok": true}, {"id": 2, "ok": true, "tags": ["a"]}], "obj": {"a b": 1, "in": 2},
        },
        "node": {
            "video-1": {"output": {"urls": ["u0"], "score": 0.5}, "status": "completed"},
            "tts": {"error": "broken pipe"},
        },
    }))
}

fn outcome(text: &str) -> Result<bool, String> {
    CelExpr::parse(text).unwrap_or_else(|reason| panic!("{reason}")).holds(&world(), &Meter::default())
}

#[track_caller]
fn check(text: &str, expected: bool) {
    assert_eq!(outcome(text), Ok(expected), "{text}");
}

#[track_caller]
fn refused(text: &str, part: &str) {
    match CelExpr::parse(text) {
        Err(reason) => assert!(reason.contains(part), "{text}: {reason}"),
        Ok(parsed) => panic!("{text}: {parsed:?}"),
    }
}

#[track_caller]
fn fails(text: &str, part: &str) {
    let reason = outcome(text).unwrap_err();
    assert!(reason.contains(part), "{text}: {reason}");
}

#[test]
fn references_are_read_as_spelled() {
    check("$var.n == 7", true);
    check("$node.video-1.output.score > 0.4", true);
    check("$node.video-1.output.resources[0].url == 'u0'", true);
    check("$node.video-1.status == 'completed'", true);
    check("$node.tts.error == null", false);
    check("$node.tts.error.contains('pipe')", true);
    check("$node.none.error == null", true);
    check("$params.tier == \"gold\" && $input.x == 3 && $shared.yes", true);
    check("$var.list[1] == 2", true);
    check("$var.list[$var.n - 5] == 3", true);
    check("$var.obj['a b'] == 1 && $var.obj.in == 2", true);
    check("$var.n-1 == 6", true);
}

#[test]
fn quotes_hide_what_looks_like_a_reference() {
    check("'$var.n' == \"$var.n\"", true);
    check("'a === b' == 'a ' + '=== b'", true);
    check(r"'it\'s $var.x' == r'it' + '\x27s \u0024var.x'", true);
    check("'''a 'b' \n c''' == \"a 'b' \\n c\"", true);
    assert!(CelExpr::parse("'$var.n' == 'x'").unwrap().refs().is_empty());
}

#[test]
fn other_spellings_of_equality_work() {
    check("$var.s === 'text'", true);
    check("$var.s !== 'text'", false);
    check("!($var.n === 7 || $var.n !== 7)", false);
}

#[test]
fn numbers_of_different_kinds_compare() {
    for text in [
        "$var.n > 5",
        "$var.half > 5",
        "$var.big > 5",
        "$var.n < $var.half",
        "$var.n == 7.0",
        "7.0 == $var.n",
    ] {
        check(text, true);
    }
    check("$var.big == 18446744073709551615", true);
    check("$var.big == 18446744073709551614u", false);
    check("$var.half * 2 == 15 && $var.n + 0.5 == $var.half", true);
    check("7 / 2 == 3 && 7 % 4 == 3 && -7 / 2 == -3 && 0x10 == 16 && 1.5e1 == 15", true);
    check("$var.n in [6, 7.0]", true);
}

#[test]
fn missing_values_are_null_at_any_depth() {
    check("$var.none == null", true);
    check("$var.none.a.b[3] == null", true);
    check("$var.rows[1].tags[0].x == null && $var.rows[9].tags == null", true);
    check("$var.rows.all(r, r.none == null)", true);
    check("has($var.n) && !has($var.none) && !has($var.nothing)", true);
    check("1 in $var.none", false);
    check("null == null && 0 != null && '' != null", true);
}

#[test]
fn precedence_is_that_of_cel() {
    check("1 + 2 * 3 == 7 && (1 + 2) * 3 == 9", true);
    check("true || false && false", true);
    check("10 - 4 - 3 == 3", true);
    check("!false == true", true);
    check("--1 == 1 && !!true", true);
    check("false ? false : true ? true : false", true);
    check("1 < 2 == true", true);
}

#[test]
fn functions_work_both_ways() {
    check(
        "size($var.list) == 3 && $var.list.size() == 3 && 'größe'.size() == 5 && {'a': 1}.size() == 1",
        true,
    );
    check("$var.s.startsWith('te') && $var.s.endsWith('xt') && $var.s.contains('ex')", true);
    check("$var.list.contains(2)", true);
    check("$var.s.matches('^t.*t$') && matches($var.s, $var.s)", true);
    check("int('12') == 12 && int(7.9) == 7 && double(1) == 1.0 && string(12) == '12' && bool('true')", true);
    check(
        "type($var.n) == int && type($var.half) == double && type($var.s) == string && type(null) == null_type",
        true,
    );
}

#[test]
fn loops_look_at_every_item() {
    check("$var.list.all(x, x > 0)", true);
    check("$var.list.exists(x, x > 2) && !$var.list.exists(x, x > 3)", true);
    check("$var.list.exists_one(x, x > 2)", true);
    check("$var.list.filter(x, x > 1) == [2, 3]", true);
    check("$var.rows.map(r, r.id) == [1, 2]", true);
    check("$var.rows.all(r, r.ok && $var.list.exists(x, x == r.id))", true);
    check("$var.obj.exists(key, key == 'in')", true);
    check("$var.list.map(x, $var.list.map(y, x * y))[2] == [3, 6, 9]", true);
}

#[test]
fn a_side_that_decides_wins_over_one_that_fails() {
    check("$var.s > 5 || true", true);
    check("true || $var.s > 5", true);
    check("$var.s > 5 && false", false);
    check("$var.list.exists(x, x == 3 || 'a' > x)", true);
    fails("$var.s > 5 || false", "a string and a number have no order");
}

#[test]
fn a_condition_that_is_no_boolean_names_its_type() {
    assert_eq!(outcome("$var.s").unwrap_err(), "`$var.s` is not true or false but a string");
    fails("$var.none", "is not true or false but null");
    fails("1 + 1", "but a number");
    fails("!$var.s", "true or false is expected, not a string");
    fails("$var.none > 5", "null and a number have no order");
    fails("1 / 0 == 1", "divided by zero");
    fails("9223372036854775807 * 4 == 1", "too large");
    fails("-18446744073709551615 == 1", "too large");
    fails("1e308 * 1e308 > 1", "too large");
    fails("'a' + 1 == 'a1'", "cannot be calculated with");
    fails("$var.s.all(x, true)", "a loop needs a list");
    fails("$var.s in 'x'", "`in` needs a list");
    fails("size(null) == 0", "cannot be made of null");
}

#[test]
fn mistakes_are_found_when_the_expression_is_read() {
    refused("", "empty");
    refused("$var.n = 7", "write `==`");
    refused("$var.n & 7", "write `&&`");
    refused("n == 7", "a variable is written `$var.n`");
    refused("$vra.n == 7", "did you mean `var`?");
    refused("$node.x.ouput == 1", "did you mean `output`?");
    refused("siez($var.list) == 1", "did you mean `size`?");
    refused("size() == 1", "`size` needs one value, not 0");
    refused("$var.s.matches('(')", "no regular expression");
    refused("'abc", "does not end at character 1");
    refused("($var.n == 7", "`)` is expected, but the expression ends");
    refused("$var.n ==", "a value is expected, but the expression ends");
    refused("$var.n 7", "an operator or the end is expected, not a value at character 8");
    refused("$var.list.all(x > 1)", "`,` is expected");
    refused("all($var.list, x, true)", "is written `list.all(x, condition on x)`");
    refused("b'bytes' == 'x'", "cannot stand before a quote");
    refused(r"'\q' == 'q'", "is no escape");
    refused(r"'\ud800' == 'q'", "is no character");
    refused("99999999999999999999 > 1", "is no number");
    refused("é == 1", "unexpected character `é`");
    refused("$var.list.all(x, [1].all(y, [2].all(z, true)))", "inside 2 other loops");
}

#[test]
fn references_are_listed_once() {
    let parsed = CelExpr::parse("$var.a == 1 || $var.a == $node.b-c.output.d || $shared.a").unwrap();
    let nodes: Vec<_> = parsed.refs().iter().map(|reference| reference.node()).collect();
    assert_eq!(nodes, [None, Some("b-c")]);
}

/// Runs on a quarter of a thread's default stack, so that a caller may have used the rest.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(512 << 10).spawn(work).unwrap().join().unwrap();
}

#[test]
fn hostile_texts_neither_overflow_the_stack_nor_take_long() {
    let nested = |open: &str, close: &str, n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
    let row = |item: &str, between: &str, n: usize| vec![item; n].join(between);
    let mut texts =
        vec!["!".repeat(4_000), "-".repeat(4_096), "[".repeat(4_096), "$".repeat(4_000), "'".repeat(4_001)];
    texts.extend([
        row("1", "+", 2_000),
        row("1", "==", 1_300),
        row("true", "&&", 600),
        row("true", "||", 600),
    ]);
    texts.extend([row("true", "?true:", 300), row("$var.a", ".size().b", 200), row("1", "?", 2_000)]);
    texts.extend([format!("$var{}", ".b".repeat(2_000)), format!("($var.a){}", ".b".repeat(2_000))]);
    texts.push(format!("($var.a){}", "[0]".repeat(1_300)));
    for n in [20, 30, 31, 32, 40, 500] {
        for (open, close) in
            [("(", ")"), ("[", "]"), ("{'a':", "}"), ("size(", ")"), ("-(", ")"), ("$var.a[", "]")]
        {
            texts.push(nested(open, close, n));
        }
        texts.push(nested("1+1+1+(", "+1+1)", n));
        texts.push(nested("true?(", "):1", n));
        texts.push(nested("true?true:", "", n));
        texts.push(nested("[1].exists(x,", ")", n));
        texts.push(nested("!!!(", ")", n));
    }
    on_a_small_stack(move || {
        for text in texts {
            if let Ok(parsed) = CelExpr::parse(&text) {
                let _ = parsed.holds(&world(), &Meter::default());
                assert!(!format!("{parsed:?}").is_empty());
            }
        }
    });
}

#[test]
fn texts_at_the_limits_are_still_read() {
    check(&format!("{}true{}", "(".repeat(31), ")".repeat(31)), true);
    refused(&format!("{}true{}", "(".repeat(32), ")".repeat(32)), "nests deeper than 32");
    check(&vec!["$var.n == 7"; 270].join(" && "), true);
    refused(&format!("{} == 1", "1".repeat(4_100)), "more than 4096 characters");
    check(&format!("{} == 50", vec!["1"; 50].join("+")), true);
}

#[test]
fn evaluation_ends_soon_for_any_data() {
    let list: Vec<u64> = (0..50_000).collect();
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner, inner.as_array().map_or(0, Vec::len)]));
    let world = TestFacts(json!({"shared": {"list": list, "text": "a".repeat(5_000_000), "deep": deep}}));
    let texts = [
        "$var.list.all(x, $var.list.all(y, x != y || x == y))",
        "$var.list.map(x, $var.list) == $var.list.map(x, $var.list)",
        "$var.list.map(x, $var.text).size() == 1",
        "[$var.text + $var.text].map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).size() == 1",
        "$var.list.exists(x, 'a'.matches('(a|aa)+$' + string(x)))",
        "$var.list == $var.list && $var.list + $var.list == $var.list + $var.list",
        "$var.text.matches('^(a?){50}(a{50}){3}$')",
        "[1].map(x, [x, x]).map(x, [x, x]).map(x, [x, x]).map(x, [x, x]).map(x, [x, x]).map(x, [x, x]) == 1",
    ];
    let (done, ended) = std::sync::mpsc::channel();
    let work = move || {
        let outcomes: Vec<_> =
            texts.iter().map(|text| CelExpr::parse(text).unwrap().holds(&world, &Meter::default())).collect();
        done.send(outcomes).unwrap();
    };
    std::thread::Builder::new().spawn(work).unwrap();
    // They take some milliseconds each; without the budget the first would take minutes.
    let outcomes = ended.recv_timeout(std::time::Duration::from_secs(10)).unwrap();
    for outcome in &outcomes[..5] {
        assert!(outcome.as_ref().unwrap_err().contains("takes more than 100000 steps"), "{outcome:?}");
    }
}

/// Tokens of an expression, in any order.
const SOUP: [&str; 60] = [
    "$var.n",
    "$var.list",
    "$var.s",
    "$node.video-1.output",
    "$node",
    "$x",
    "$",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ".",
    "?",
    ":",
    "!",
    "-",
    "+",
    "*",
    "/",
    "%",
    "==",
    "===",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "&&",
    "||",
    " in ",
    "true",
    "false",
    "null",
    "1",
    "0",
    "9223372036854775807",
    "1.5",
    "1e308",
    "0x",
    "1u",
    "'a'",
    "\"b\"",
    "r'\\'",
    "'''",
    "'\\x41'",
    "x",
    "size(",
    ".all(x,",
    ".map(x,",
    ".matches(",
    "int(",
    "has(",
    "type(",
    "//",
    "\n",
    "é",
    ".exists(y,",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn any_soup_of_tokens_is_read_or_refused(parts in prop::collection::vec(prop::sample::select(&SOUP[..]), 0..30)) {
        if let Ok(parsed) = CelExpr::parse(&parts.concat()) {
            let _ = parsed.holds(&world(), &Meter::default());
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
        let _ = CelExpr::parse(&text);
        let _ = CelExpr::parse(&format!("'{text}"));
        let _ = CelExpr::parse(&format!("$var.{text}"));
    }

    #[test]
    fn any_two_values_can_be_met(a in any_json(), b in any_json(), op in prop::sample::select(vec![
        "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%", "&&", "||",
    ])) {
        let world = TestFacts(json!({"shared": {"a": a, "b": b}}));
        let parsed = CelExpr::parse(&format!("$var.a {op} $var.b")).unwrap();
        prop_assert_eq!(parsed.holds(&world, &Meter::default()), parsed.holds(&world, &Meter::default()));
        for call in ["size(", "int(", "double(", "string(", "bool(", "type(", "has(", "-(", "!("] {
            let _ = CelExpr::parse(&format!("{call}$var.a)")).unwrap().holds(&world, &Meter::default());
        }
        for call in ["$var.a[$var.b]", "$var.a.all(x, x == $var.b)", "$var.a.matches($var.b)", "$var.a.contains($var.b)"] {
            let _ = CelExpr::parse(call).unwrap().holds(&world, &Meter::default());
        }
    }
}
