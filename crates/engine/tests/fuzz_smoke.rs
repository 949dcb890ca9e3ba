//! Every reader of users' and disks' bytes, fed with noise and with mutations of good examples: it may
//! refuse, it may not panic. A fixed seed, so that it fails on every machine or on none.

#![allow(clippy::unwrap_used, unreachable_pub, dead_code, reason = "a test stops at once and has no users")]

#[path = "support/dice.rs"]
mod dice;
#[path = "support/game.rs"]
mod game;
#[path = "support/moves.rs"]
mod moves;
#[path = "support/random.rs"]
mod random;
#[path = "support/world.rs"]
mod world;

use std::borrow::Cow;

use dice::Dice;
use serde_json::{Value, json};
use windlass_engine::definition::{Strictness, compile, expand};
use windlass_engine::expr::{cel, json as operators, steps};
use windlass_engine::journal::Entry;
use windlass_engine::meter::Meter;
use windlass_engine::problem::Problems;
use windlass_engine::reference::{Facts, Root, Template, parse_dollar, parse_path};
use windlass_engine::schedule::cron::Cron;
use windlass_engine::time::Timestamp;

struct FuzzFacts(Value);

impl Facts for FuzzFacts {
    fn root(&self, _: &Root) -> Option<Cow<'_, Value>> {
        Some(Cow::Borrowed(&self.0))
    }

    fn field(&self, _: &Root, key: &str) -> Option<Cow<'_, Value>> {
        self.0.get(key).map(Cow::Borrowed)
    }
}

fn world() -> FuzzFacts {
    FuzzFacts(
        json!({"n": 7, "s": "text", "l": [1, [2], {"k": null}], "o": {"a": {"b": -1.5e300}}, "b": true}),
    )
}

/// Changes a good example in a few places: bytes, pieces, repetitions.
fn mutated(seed: u64, examples: &[&str]) -> Vec<u8> {
    let noise = dice::noise(seed, 24);
    let mut dice = Dice::new(&noise);
    let mut bytes = dice.pick(examples).as_bytes().to_vec();
    for _ in 0..=dice.below(4) {
        let at = (dice.below(256) * 256 + dice.below(256)) % bytes.len().max(1);
        match dice.below(5) {
            0 => bytes.insert(at.min(bytes.len()), noise[at % 24]),
            1 if !bytes.is_empty() => bytes[at] = dice.pick(b"\"{}[]()$.,:-0e9 \\\n&|!<>=*/#\xff\x00"),
            2 => bytes.truncate(at),
            3 => {
                let end = (at + dice.below(12)).min(bytes.len());
                let piece = bytes[at.min(end)..end].to_vec();
                bytes.extend(piece.repeat(1 + dice.below(40)));
            }
            _ => {
                drop(bytes.drain(
                    at.min(bytes.len())..(at + dice.below(8)).min(bytes.len()).max(at.min(bytes.len())),
                ))
            }
        }
    }
    bytes
}

/// Together about ten seconds.
const ROUNDS: u64 = 6;

fn texts(n: u64, examples: &[&str], mut read: impl FnMut(&str)) {
    for seed in 0..n * ROUNDS {
        read(&String::from_utf8_lossy(&mutated(seed, examples)));
        read(&String::from_utf8_lossy(&dice::noise(seed, 32)));
    }
}

#[test]
fn no_definition_is_too_strange() {
    let json: Vec<String> =
        (0..40).map(|seed| random::definition(&mut Dice::new(&dice::noise(seed, 120))).to_string()).collect();
    let examples: Vec<&str> = json.iter().map(String::as_str).collect();
    texts(4_000, &examples, |text| {
        let compiled = compile(text, Strictness::Lenient);
        expand(&compiled.definition, Strictness::Lenient);
    });
    let yaml = [
        "steps:\n  - id: a\n    operator: work\n    parameters: {x: '{{__a.b}}'}\n",
        "start: a\nnodes:\n  a: {service: s, prep: {input_key: $params.x}}\n  b: &x {service: t}\n  c: *x\nedges: []\n",
        "nodes:\n- {id: n, type: start}\n- id: m\n  type: |\n    render\nedges: [{source: n, target: m}]\n",
    ];
    texts(6_000, &yaml, |text| drop(compile(text, Strictness::Strict)));
}

#[test]
fn no_condition_is_too_strange() {
    let cel = [
        "$var.n > 5 && $var.s == 'text' || !(2 in $var.l)",
        "size($var.s) + 1 < -3 ? true : false",
        "$node.a.output.x.startsWith('a')",
    ];
    texts(30_000, &cel, |text| {
        if let Ok(expr) = cel::CelExpr::parse(text) {
            let _ = expr.holds(&world(), &Meter::default());
        }
    });
    let written = [
        r#"{"and": [{"gt": ["$shared.n", 5]}, {"not": {"in": ["$shared.s", [1, "text"]]}}]}"#,
        r#"{"or": [{"exists": "$params.o.a"}, {"regex": ["$shared.s", "^t.*$"]}, {"contains": ["$shared.l", 1]}]}"#,
        r#"[[{"operator": "@internal/cmp/number-gt", "parameters": {"a": "{{__x.n}}", "b": "3"}}]]"#,
    ];
    texts(20_000, &written, |text| {
        let Ok(value) = serde_json::from_str::<Value>(text) else { return };
        let mut problems = Problems::default();
        if let Some(expr) = operators::JsonExpr::parse(&value, "$", &mut problems) {
            let _ = expr.holds(&world(), &Meter::default());
        }
        if let Some(test) = steps::Test::parse(&value, "$", &mut problems) {
            let _ = test.holds(&world(), &Meter::default());
        }
    });
}

#[test]
fn no_reference_or_template_is_too_strange() {
    let examples = [
        "$node.a.output.urls[0]",
        "$params[\"a b\"].c",
        "{{__0.a[1].b}} and {{$var.n}}",
        "$shared",
        "a.b[3].c",
    ];
    texts(40_000, &examples, |text| {
        if let Some(Ok(reference)) = parse_dollar(text) {
            reference.resolve(&world());
        }
        let _ = parse_path(text);
        for read in [Template::from_steps, Template::from_dag, Template::from_input_map] {
            if let Ok(template) = read(&json!({ "x": [text] })) {
                template.resolve(&world());
            }
        }
    });
}

#[test]
fn no_cron_line_is_too_strange() {
    let examples = ["*/5 9-17 * * MON-FRI", "0 0 31 2 *", "@daily", "30 2 L * ?", "0 0 12 1/5 * ? *"];
    texts(3_000, &examples, |text| {
        if let Ok(cron) = Cron::parse(text, "Europe/Berlin") {
            let _ = cron.next_after(Timestamp(1_700_000_000_000));
        }
    });
}

#[test]
fn no_stored_entry_is_too_strange() {
    let examples: Vec<String> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/journals"))
        .unwrap()
        .filter_map(|file| {
            serde_json::from_slice::<Value>(&std::fs::read(file.unwrap().path()).unwrap()).ok()
        })
        .flat_map(|fixture| fixture["entries"].as_array().cloned().unwrap_or_default())
        .map(|entry| entry.to_string())
        .collect();
    let examples: Vec<&str> = examples.iter().map(String::as_str).collect();
    let mut n_read = 0;
    texts(20_000, &examples, |text| {
        if let Ok(entry) = Entry::decode(text.as_bytes()) {
            n_read += 1;
            assert_eq!(Entry::decode(&entry.encode()).unwrap(), entry);
        }
    });
    assert!(
        n_read > 100,
        "only {n_read} mutations could be read: the mutations are too wild to prove anything"
    );
}
