//! The layout of flows: nothing overlaps in random definitions of all forms, drawings of examples stay as they are, and
//! a thousand nodes take little time.

#![allow(clippy::unwrap_used, unreachable_pub, dead_code, reason = "a test stops at once and has no users")]
#![allow(clippy::disallowed_methods, reason = "a test measures time")]

#[path = "support/dice.rs"]
mod dice;
#[path = "support/random.rs"]
mod random;
#[path = "support/shapes.rs"]
mod shapes;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use dice::Dice;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use shapes::plan_of;
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::layout::{
    Area, Direction, EdgeState, Layout, LayoutKind, NodeOverlay, Overlay, ascii, layout, svg,
};
use windlass_engine::plan::Plan;

const DIRECTIONS: [Direction; 2] = [Direction::LeftRight, Direction::TopDown];

fn overlap(a: Area, b: Area) -> bool {
    a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h
}

fn contains(outer: Area, inner: Area) -> bool {
    outer.x <= inner.x
        && outer.y <= inner.y
        && inner.x + inner.w <= outer.x + outer.w
        && inner.y + inner.h <= outer.y + outer.h
}

/// Whether a line runs through the inside of an area.
fn runs_through(area: Area, a: (i32, i32), b: (i32, i32)) -> bool {
    let (left, right) = (a.0.min(b.0), a.0.max(b.0));
    let (top, bottom) = (a.1.min(b.1), a.1.max(b.1));
    left < area.x + area.w
        && area.x < right.max(left + 1)
        && top < area.y + area.h
        && area.y < bottom.max(top + 1)
        && !(a.0 == b.0 && (a.0 == area.x || a.0 == area.x + area.w))
        && !(a.1 == b.1 && (a.1 == area.y || a.1 == area.y + area.h))
}

fn is_on_border(area: Area, (x, y): (i32, i32)) -> bool {
    let inside = area.x <= x && x <= area.x + area.w && area.y <= y && y <= area.y + area.h;
    inside && (x == area.x || x == area.x + area.w || y == area.y || y == area.y + area.h)
}

fn is_around(layout: &Layout, outer: usize, mut inner: usize) -> bool {
    while let Some(parent) = layout.nodes[inner].parent {
        if parent == outer {
            return true;
        }
        inner = parent;
    }
    false
}

/// Says which promise a layout breaks.
fn check(layout: &Layout) -> Result<(), String> {
    let whole = Area { x: 0, y: 0, w: layout.width, h: layout.height };
    let ids: BTreeSet<&str> = layout.nodes.iter().map(|node| node.id.as_str()).collect();
    let edge_ids: BTreeSet<&str> = layout.edges.iter().map(|edge| edge.id.as_str()).collect();
    if ids.len() != layout.nodes.len() || edge_ids.len() != layout.edges.len() {
        return Err("two nodes or edges have one id".to_owned());
    }
    for (ix, node) in layout.nodes.iter().enumerate() {
        let around = node.parent.map_or(whole, |parent| layout.nodes[parent].area);
        if !contains(around, node.area) || node.parent.is_some_and(|parent| parent >= ix) {
            return Err(format!("`{}` is not inside its box", node.id));
        }
        for other in &layout.nodes[ix + 1..] {
            if other.parent == node.parent && overlap(node.area, other.area) {
                return Err(format!("`{}` and `{}` overlap", node.id, other.id));
            }
        }
    }
    for edge in &layout.edges {
        let (Some(first), Some(last)) = (edge.points.first(), edge.points.last()) else {
            return Err(format!("`{}` has no points", edge.id));
        };
        if !is_on_border(layout.nodes[edge.from].area, *first)
            || !is_on_border(layout.nodes[edge.to].area, *last)
        {
            return Err(format!("`{}` does not begin and end at its nodes: {:?}", edge.id, edge.points));
        }
        for pair in edge.points.windows(2) {
            if (pair[0].0 == pair[1].0) == (pair[0].1 == pair[1].1) {
                return Err(format!("`{}` is neither level nor upright: {:?}", edge.id, edge.points));
            }
            for (ix, node) in layout.nodes.iter().enumerate() {
                if runs_through(node.area, pair[0], pair[1]) && !is_around(layout, ix, edge.from) {
                    return Err(format!("`{}` runs through `{}`", edge.id, node.id));
                }
            }
        }
        check_label(layout, edge.label_area, &edge.id)?;
    }
    Ok(())
}

fn check_label(layout: &Layout, area: Option<Area>, id: &str) -> Result<(), String> {
    let Some(area) = area else { return Ok(()) };
    let over_leaf = layout.nodes.iter().find(|node| !node.is_box && overlap(area, node.area));
    // Labels of a box's own edges stand inside it.
    let over_box = layout
        .nodes
        .iter()
        .find(|node| node.is_box && overlap(area, node.area) && !contains(node.area, area));
    if let Some(node) = over_leaf.or(over_box) {
        return Err(format!("the label of `{id}` is over `{}`", node.id));
    }
    let other = layout
        .edges
        .iter()
        .find(|other| other.id != id && other.label_area.is_some_and(|o| overlap(area, o)));
    other.map_or(Ok(()), |other| Err(format!("the labels of `{id}` and `{}` overlap", other.id)))
}

/// A graph with edges in every direction, to nowhere and to their own node, and with labels of every length.
fn wild_graph(dice: &mut Dice<'_>) -> Value {
    const LABELS: [&str; 6] =
        ["default", "ok", "rejected by the editor in chief", "超时并且没有重试", "x", "<b onload=alert(1)>"];
    let n = 1 + dice.below(24);
    let mut nodes = Map::new();
    for i in 0..n {
        let mut node = json!({"service": "work"});
        if dice.once_in(4) {
            node = json!({"kind": "subflow", "subflow": {"start": "s", "nodes": {"s": {"service": "work"}, "t": {"kind": "timer", "params": {"delay_ms": 1}}},
                "edges": [{"from": "s", "action": dice.pick(&LABELS), "to": "t"}, {"from": "t", "action": "again", "to": "s"}]}});
        }
        node["title"] = json!(dice.pick(&[
            "",
            "a node with a title that is far too long to be shown whole",
            "一个节点的标题"
        ]));
        nodes.insert(format!("n{i}"), node);
    }
    let mut edges = Vec::new();
    let mut taken = BTreeSet::new();
    for _ in 0..dice.below(3 * n) {
        let (from, action) = (dice.below(n), dice.pick(&LABELS));
        if taken.insert((from, action)) {
            let to = if dice.once_in(9) { String::new() } else { format!("n{}", dice.below(n)) };
            edges.push(json!({"from": format!("n{from}"), "action": action, "to": to}));
        }
    }
    json!({"start": "n0", "nodes": nodes, "edges": edges})
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_overlaps_in_any_layout(bytes in prop::collection::vec(any::<u8>(), 0..320), is_wild: bool) {
        let mut dice = Dice::new(&bytes);
        let definition = if is_wild { wild_graph(&mut dice) } else { random::definition(&mut dice) };
        let plan = plan_of(&definition);
        for direction in DIRECTIONS {
            let found = layout(&plan, direction);
            if let Err(broken) = check(&found) {
                prop_assert!(false, "{:?}: {}: {}", direction, broken, definition);
            }
            prop_assert_eq!(&found, &layout(&plan, direction));
            prop_assert!(ascii(&plan, direction).is_some());
        }
    }
}

fn example(name: &str) -> std::sync::Arc<Plan> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let text = std::fs::read_to_string(&file).unwrap();
    compile(&text, Strictness::Lenient).plan.unwrap_or_else(|| panic!("{name} does not compile"))
}

/// Compares a drawing with the one that is kept. `WINDLASS_KEEP_DRAWINGS=1` keeps the new one.
#[track_caller]
fn assert_kept(name: &str, drawn: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/layout").join(name);
    if std::env::var("WINDLASS_KEEP_DRAWINGS").is_ok_and(|word| word == "1") {
        std::fs::write(&file, drawn).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == drawn,
        "{name} is drawn in another way: look at it, and keep it with WINDLASS_KEEP_DRAWINGS=1\n{drawn}"
    );
}

#[test]
fn examples_are_drawn_as_before() {
    for (name, example_file) in [
        ("cycle", "graph/cycle.yaml"),
        ("branching", "graph/branching.json"),
        ("parallel", "graph/parallel.json"),
        ("foreach-subflow", "graph/foreach-subflow.json"),
        ("digital-human", "dag/digital-human.yaml"),
        ("nested-steps", "steps/nested.json"),
        ("loop", "steps/loop.yaml"),
    ] {
        let plan = example(example_file);
        for (direction, word) in [(Direction::LeftRight, "lr"), (Direction::TopDown, "tb")] {
            assert_kept(&format!("{name}.{word}.txt"), &ascii(&plan, direction).unwrap());
        }
        let drawn = layout(&plan, Direction::LeftRight);
        check(&drawn).unwrap();
        assert_kept(&format!("{name}.svg"), &svg(&drawn, name, None));
    }
}

#[test]
fn all_examples_can_be_drawn() {
    let mut n_drawn = 0;
    for form in ["graph", "dag", "steps"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(form);
        for file in std::fs::read_dir(folder).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            if name.contains(".run.") {
                continue;
            }
            let plan = example(&format!("{form}/{name}"));
            for direction in DIRECTIONS {
                check(&layout(&plan, direction)).unwrap_or_else(|broken| panic!("{name}: {broken}"));
                assert!(ascii(&plan, direction).is_some(), "{name}");
            }
            n_drawn += 1;
        }
    }
    assert!(n_drawn > 30, "{n_drawn}");
}

#[test]
fn places_are_those_of_problems() {
    let plan = plan_of(&json!({"nodes": [
        {"id": "one", "type": "work"},
        {"id": "two", "type": "parallel", "config": {"parallel_execs": [
            {"service": "a"}, {"subflow": {"start": "x y", "nodes": {"x y": {"service": "b"}}, "edges": []}}]}}],
        "edges": [{"source": "one", "target": "two"}]}));
    let drawn = layout(&plan, Direction::LeftRight);
    let place =
        |id: &str| drawn.nodes.iter().find(|node| node.id == id).and_then(|node| node.place.clone()).unwrap();
    assert_eq!(place("two"), "$.nodes[1]");
    assert_eq!(place("two/0"), "$.nodes[1].config.parallel_execs[0]");
    assert_eq!(place("two/1/x y"), "$.nodes[1].config.parallel_execs[1].subflow.nodes[\"x y\"]");

    let steps = plan_of(&json!({"form": "steps", "steps": [
        {"id": "p", "operator": "@control/flow/parallel", "branches": [
            {"steps": [{"id": "q", "operator": "@control/flow/parallel", "branches": [{"steps": [{"id": "a", "operator": "work"}]}, {"steps": [{"id": "b", "operator": "work"}]}]}]},
            {"steps": [{"id": "c", "operator": "work"}, {"id": "l", "operator": "@control/flow/loop", "parameters": {"limit": 2}, "steps": [{"id": "d", "operator": "work"}]}]}]},
        {"id": "e", "operator": "work"}]}));
    let drawn = layout(&steps, Direction::LeftRight);
    let node = |id: &str| drawn.nodes.iter().find(|node| node.id == id).unwrap_or_else(|| panic!("{id}"));
    assert_eq!(node("q").place.as_deref(), Some("$.steps[0].branches[0].steps[0]"));
    assert_eq!(node("b").place.as_deref(), Some("$.steps[0].branches[0].steps[0].branches[1].steps[0]"));
    assert_eq!(node("l/*/d").place.as_deref(), Some("$.steps[0].branches[1].steps[1].steps[0]"));
    let parent = |id: &str| node(id).parent.map(|parent| drawn.nodes[parent].id.as_str());
    assert_eq!(
        [parent("p"), parent("q"), parent("a"), parent("c"), parent("l/*/d"), parent("e")],
        [None, Some("p"), Some("q"), Some("p"), Some("l"), None]
    );
    let ends: Vec<(&str, &str)> =
        drawn.edges.iter().map(|edge| (&*drawn.nodes[edge.from].id, &*drawn.nodes[edge.to].id)).collect();
    assert_eq!(ends, [("c", "l"), ("p", "e")]);
}

#[test]
fn states_of_a_run_are_shown_on_its_graph() {
    let plan = plan_of(&json!({"start": "check", "nodes": {
        "check": {"kind": "choice", "choice_cases": [{"action": "ok", "expr": {"exists": "$params.x"}}], "default_action": "bad"},
        "each": {"kind": "foreach", "subflow": {"start": "in", "nodes": {"in": {"service": "work"}}, "edges": []}},
        "late": {"service": "work"},
        "stop": {"service": "work", "title": "<script>alert('</title>')</script>"}},
        "edges": [{"from": "stop", "to": "late"}, {"from": "check", "action": "ok", "to": "each"}, {"from": "check", "action": "bad", "to": "stop"}]}));
    let drawn = layout(&plan, Direction::LeftRight);
    let state = |status, action| NodeOverlay { status, action, attempts: 1 };
    let states = [
        ("check", state("completed", Some("ok"))),
        ("each", state("running", None)),
        ("each/0/in", state("completed", None)),
        ("each/1/in", state("retrying", None)),
        ("each/2/in", state("running", None)),
        ("stop", state("skipped", None)),
        ("late", state("completed", None)),
        ("of/another/flow", state("failed", None)),
    ];
    let overlay = Overlay::new(&drawn, states);
    let states: Vec<(&str, EdgeState)> =
        drawn.edges.iter().map(|edge| &*edge.id).zip(overlay.edges.iter().copied()).collect();
    // A node that was skipped leads nowhere, also where another edge led to the same place.
    assert_eq!(
        states,
        [
            ("check>each", EdgeState::Taken),
            ("check>stop", EdgeState::NotTaken),
            ("stop>late", EdgeState::NotTaken)
        ]
    );
    let text = svg(&drawn, "flow", Some(&overlay));
    for part in [
        r#"class="node ok start""#,
        r#"class="box run""#,
        r#"class="node retry""#,
        ">1/3</text>",
        r#"class="edge taken""#,
        "&lt;script&gt;",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("<script"), "{text}");
}

#[test]
fn hostile_definitions_have_small_layouts() {
    // Edges over every distance: links with a vertex in every layer would be millions.
    let n = 3_000;
    let nodes: Map<String, Value> = (0..n).map(|i| (format!("n{i}"), json!({"service": "w"}))).collect();
    let edge = |from: usize, action: &str, to: usize| json!({"from": format!("n{from}"), "action": action, "to": format!("n{to}")});
    let edges: Vec<Value> = (1..n)
        .flat_map(|i| [edge(i - 1, "default", i), edge(0, &format!("a{i}"), i), edge(i, "back", i / 2)])
        .collect();
    let plan = plan_of(&json!({"start": "n0", "nodes": nodes, "edges": edges}));
    let drawn = layout(&plan, Direction::LeftRight);
    assert_eq!((drawn.nodes.len(), drawn.edges.len()), (n, 3 * (n - 1)));
    assert!(drawn.edges.iter().map(|edge| edge.points.len()).sum::<usize>() < 400_000);

    // A fan of many branches, and names that repeat in every level.
    let branches: Vec<Value> = (0..5_000).map(|i| json!({"service": format!("s{i}")})).collect();
    let plan = plan_of(
        &json!({"start": "f", "nodes": {"f": {"kind": "parallel", "parallel_execs": branches}}, "edges": []}),
    );
    let drawn = layout(&plan, Direction::LeftRight);
    assert_eq!((drawn.nodes.len(), drawn.nodes[0].n_hidden, drawn.has_hidden()), (101, 4_900, true));

    let name = "k".repeat(250);
    let mut inner = json!({"start": "x", "edges": [], "nodes": {}});
    for i in 0..3_000 {
        inner["nodes"][format!("{}{i}", &name[5..])] = json!({"service": "w"});
    }
    inner["nodes"]["x"] = json!({"service": "w"});
    for _ in 0..25 {
        inner = json!({"start": name.clone(), "edges": [], "nodes": {name.clone(): {"kind": "subflow", "subflow": inner}}});
    }
    let drawn = layout(&plan_of(&inner), Direction::LeftRight);
    assert!(drawn.has_hidden());
    assert!(drawn.nodes.iter().map(|node| node.id.len()).sum::<usize>() < 5_000_000);
    assert!(drawn.nodes.iter().any(|node| node.kind == LayoutKind::Subflow && node.is_box));
}

/// The best of some attempts: others are disturbed by work beside them.
fn best_time(plan: &Plan) -> Duration {
    let once = |_| {
        let begun = Instant::now();
        let drawn = layout(plan, Direction::LeftRight);
        assert!(drawn.nodes.len() >= 1_000);
        begun.elapsed()
    };
    (0..5).map(once).min().unwrap()
}

/// 20 ms is the goal of an optimised build; a build for tests takes a few times as long.
#[test]
fn a_thousand_nodes_are_laid_out_in_milliseconds() {
    let mut dice_bytes = dice::noise(7, 4_000).into_iter();
    let mut skip = || usize::from(dice_bytes.next().unwrap_or(3));
    let nodes: Vec<Value> = (0..1_000).map(|i| json!({"id": format!("n{i}"), "type": "work"})).collect();
    let mut pairs: BTreeSet<(usize, usize)> =
        (1..1_000).map(|i| (i - 1 - (skip() % 12).min(i - 1), i)).collect();
    pairs.extend((12..1_000).map(|i| (i - 1 - skip() % 12, i)));
    let edges: Vec<Value> =
        pairs.iter().map(|(a, b)| json!({"source": format!("n{a}"), "target": format!("n{b}")})).collect();
    let tangled = plan_of(&json!({"nodes": nodes, "edges": edges}));
    for (name, plan) in [
        ("layers", plan_of(&shapes::dag_layers(1_000, 10))),
        ("wide", plan_of(&shapes::dag_wide(1_000))),
        ("chain", plan_of(&shapes::graph_chain(1_000))),
        ("tangled", tangled),
    ] {
        let took = best_time(&plan);
        println!("{name}: {took:?}");
        let most = Duration::from_millis(if cfg!(debug_assertions) { 200 } else { 20 });
        assert!(took <= most, "{name} took {took:?}");
    }
}
