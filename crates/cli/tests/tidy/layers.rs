//! Layers: which crate may use which, and which words of a layer stay inside it. Every sentence marked **Invariant** in
//! ARCHITECTURE.md that a compiler or another test does not check is checked here.

use std::collections::BTreeSet;

use crate::tree::{crates, none, shipped, sources, text};

/// Crates of this project that a crate's library or program may use.
const ARROWS: [(&str, &[&str]); 11] = [
    ("engine", &[]),
    ("store", &["engine", "tls"]),
    ("queue", &["engine", "store", "tls"]),
    ("runtime", &["engine", "store", "queue", "tls"]),
    ("tls", &[]),
    ("sdk", &["tls"]),
    ("server", &["engine", "store", "queue", "runtime", "sdk", "tls"]),
    ("bench", &["engine", "store", "queue", "runtime", "sdk", "server", "tls"]),
    ("cli", &["engine", "store", "queue", "runtime", "sdk", "server", "bench", "tls"]),
    ("sim", &["engine", "store"]),
    ("conformance", &["engine", "store"]),
];
/// Files of the program that open a store: servers, copies and benchmarks.
const STORE_OPENERS: [&str; 2] = ["crates/cli/src/serve/", "crates/bench/src/"];
/// Parts of a run that applying an event goes through: `apply` itself, and the owners of the state that it changes.
const APPLIED: [&str; 8] = ["agenda", "apply", "cost", "parked", "state", "tree", "view", "waits"];
/// Code outside the engine that looks into events: the projection of events to rows, the reports of calls, and the lines
/// for people.
const EVENT_READERS: [&str; 3] =
    ["crates/store/src/projection", "crates/runtime/src/runs/report.rs", "crates/server/src/native/log.rs"];

/// The names in a table of a manifest, such as `[dependencies]`.
fn dependencies(name: &str, table: &str) -> BTreeSet<String> {
    let manifest = text(&format!("crates/{name}/Cargo.toml")).unwrap();
    let lines = manifest.lines().skip_while(|line| *line != format!("[{table}]")).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    let names =
        lines.filter(|line| !line.starts_with('#')).filter_map(|line| line.split([' ', '.', '=']).next());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The names in all tables of a manifest that a build without tests reads, for every target.
fn shipped_dependencies(name: &str) -> BTreeSet<String> {
    let manifest = text(&format!("crates/{name}/Cargo.toml")).unwrap();
    let heads = manifest.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
    let tables = heads.filter(|head| head.ends_with("dependencies") && !head.ends_with("dev-dependencies"));
    tables.flat_map(|table| dependencies(name, table)).collect()
}

#[test]
fn crates_use_only_the_crates_below_them() {
    let mut found = Vec::new();
    for name in crates() {
        let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
            found.push(format!("crates/{name}: say in `ARROWS` which crates it may use"));
            continue;
        };
        for dependency in shipped_dependencies(&name) {
            if let Some(used) = dependency.strip_prefix("windlass-")
                && !allowed.contains(&used)
            {
                found.push(format!("crates/{name} uses {used}: there is no such arrow"));
            }
        }
    }
    none(&found);
}

#[test]
fn dependencies_are_named_with_their_reason() {
    let map = text("ARCHITECTURE.md").unwrap();
    let (_, section) = map.split_once("\n## Dependencies\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let named: BTreeSet<&str> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split('|').next())
        .flat_map(|cell| cell.split([',', ';', ' ']))
        .filter(|name| !name.is_empty())
        .collect();
    let mut found = Vec::new();
    for name in crates() {
        for table in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let others = dependencies(&name, table).into_iter().filter(|used| !used.starts_with("windlass"));
            found.extend(others.filter(|used| !named.contains(used.as_str())).map(|used| {
                format!("crates/{name} uses {used}: name it in ARCHITECTURE.md with its reason")
            }));
        }
    }
    none(&found);
}

fn lines_with(
    files: &[(String, String)],
    is_allowed: impl Fn(&str) -> bool,
    is_wrong: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for (file, text) in files.iter().filter(|(file, _)| !is_allowed(file)) {
        // Unit tests stand at the end of a file.
        let shipped = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for (i, line) in shipped.lines().enumerate() {
            if !line.trim_start().starts_with("//") && is_wrong(line) {
                found.push(format!("{file}:{}: {}", i + 1, line.trim()));
            }
        }
    }
    found
}

#[test]
fn sql_stands_only_in_the_store() {
    let words = ["SELECT ", "INSERT INTO ", "DELETE FROM ", "CREATE TABLE "];
    let above = ["engine", "queue", "runtime", "sdk", "server", "bench", "cli", "sim"].map(shipped).concat();
    none(&lines_with(&above, |_| false, |line| words.iter().any(|word| line.contains(word))));
}

#[test]
fn routes_stand_only_in_the_server_and_in_push_workers() {
    let others = ["engine", "store", "queue", "runtime", "bench", "cli", "sim", "sdk"].map(shipped).concat();
    let is_push_worker = |file: &str| file == "crates/sdk/src/worker/push.rs";
    none(&lines_with(&others, is_push_worker, |line| line.contains("axum::")));
}

#[test]
fn the_engine_is_synchronous() {
    let wrong = |line: &str| line.contains("async ") || line.contains(".await") || line.contains("tokio");
    none(&lines_with(&shipped("engine"), |_| false, wrong));
}

#[test]
fn applying_an_event_cannot_fail() {
    let engine = shipped("engine");
    let mut apply = Vec::new();
    for name in APPLIED {
        let is_part = |file: &str| {
            let rest = file.strip_prefix("crates/engine/src/run/").and_then(|file| file.strip_prefix(name));
            rest.is_some_and(|rest| rest.starts_with(['.', '/']))
        };
        let n_before = apply.len();
        apply.extend(engine.iter().filter(|(file, _)| is_part(file)).cloned());
        assert!(apply.len() > n_before, "the files of `run/{name}` have moved");
    }
    let panics = ["unreachable!", "panic!", ".expect(", ".unwrap(", "todo!"];
    none(&lines_with(&apply, |_| false, |line| panics.iter().any(|word| line.contains(word))));
}

/// Whether a character may stand in a name.
fn is_inside(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Code without comments, unit tests and white space that separates nothing: a path reads the same however it is broken.
fn dense(text: &str) -> String {
    let shipped = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code = shipped.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut dense = String::new();
    for word in code.flat_map(str::split_whitespace) {
        if dense.ends_with(is_inside) && word.starts_with(is_inside) {
            dense.push(' ');
        }
        dense.push_str(word);
    }
    dense
}

/// The items of a group of imports, up to the brace that closes it.
fn imported(group: &str) -> Vec<&str> {
    let mut depth = 1_usize;
    let end = group.find(|c| {
        depth = match c {
            '{' => depth + 1,
            '}' => depth - 1,
            _ => depth,
        };
        depth == 0
    });
    group[..end.unwrap_or(group.len())].split([',', '{', '}']).collect()
}

/// Whether code names the type `Event` of a module `event`, in any spelling: as a path, in a group of imports, by a glob
/// or by another name of the module.
fn names_events(code: &str) -> bool {
    let is_event = |item: &str| {
        let is_type = item.strip_prefix("Event").is_some_and(|rest| !rest.starts_with(is_inside));
        is_type || item.starts_with('*') || item.starts_with("self as")
    };
    code.match_indices("event").any(|(at, word)| {
        let (before, rest) = (&code[..at], &code[at + word.len()..]);
        let is_named = match rest.strip_prefix("::") {
            Some(path) => match path.strip_prefix('{') {
                Some(group) => imported(group).into_iter().any(is_event),
                None => is_event(path),
            },
            // Another name of the module, in an import.
            None => rest.starts_with(" as ") && before.ends_with(['{', ',', ':']),
        };
        is_named && !before.ends_with(is_inside)
    })
}

#[test]
fn only_the_projection_looks_into_events() {
    let shipped = ["store", "queue", "runtime", "server", "bench", "cli"].map(shipped).concat();
    let is_allowed = |file: &str| EVENT_READERS.iter().any(|prefix| file.starts_with(prefix));
    let readers = shipped.iter().filter(|(_, text)| names_events(&dense(text))).map(|(file, _)| file);
    let (allowed, wrong): (Vec<&String>, Vec<&String>) = readers.partition(|file| is_allowed(file));
    let found: Vec<String> =
        wrong.iter().map(|file| format!("{file} names `event::Event`: ask the projection")).collect();
    none(&found);
    for prefix in EVENT_READERS {
        assert!(
            allowed.iter().any(|file| file.starts_with(prefix)),
            "{prefix} looks into no events any more"
        );
    }
}

#[test]
fn the_check_of_events_finds_every_spelling() {
    for wrong in [
        "use windlass_engine::event::Event;",
        "use windlass_engine::event::{Ending, Event};",
        "use windlass_engine::event::{\n    Ending,\n    Event as Fact,\n};",
        "use windlass_engine::{\n    event::{self, Event},\n    id::RunId,\n};",
        "use windlass_engine::event::*;",
        "use windlass_engine::event as facts;",
        "use windlass_engine::{id::RunId, event as facts};",
        "use windlass_engine::event::{self as facts};",
        "match event { event::Event::Started(_) => 1 }",
        "let f = windlass_engine::event::Event::Ended;",
    ] {
        assert!(names_events(&dense(wrong)), "{wrong}");
    }
    for right in [
        "use windlass_engine::event::{Ending, Start};",
        "use windlass_engine::event::{Ending}; use axum::sse::Event;",
        "use windlass_engine::event; let x = event::Start::default();",
        "use crate::stream_event::Event;",
        "use windlass_engine::event::EventKind;",
        "// use windlass_engine::event::Event;",
        "fn f() { g(event as u8) }",
    ] {
        assert!(!names_events(&dense(right)), "{right}");
    }
}

#[test]
fn only_servers_copies_and_benchmarks_open_a_store() {
    let is_allowed = |file: &str| STORE_OPENERS.iter().any(|prefix| file.starts_with(prefix));
    let wrong = |line: &str| line.contains("Sqlite::open(") || line.contains("Postgres::open(");
    none(&lines_with(&["cli", "server", "runtime", "queue", "sdk"].map(shipped).concat(), is_allowed, wrong));
}

#[test]
fn fields_of_owners_are_private() {
    let owners = [
        "RunsState",
        "CallsState",
        "JobsState",
        "WorkersState",
        "SchedulesState",
        "MoneyState",
        "ClusterState",
        "AccessState",
        "Stats",
    ];
    let mut found = Vec::new();
    for owner in owners {
        let head = format!("struct {owner} {{");
        let defined = shipped("runtime").into_iter().find(|(_, text)| text.contains(&head));
        let Some((file, text)) = defined else {
            found.push(format!("the runtime has no owner `{owner}`"));
            continue;
        };
        let fields = text.split(&head).nth(1).and_then(|rest| rest.split("\n}").next()).unwrap_or_default();
        found.extend(
            fields
                .lines()
                .filter(|line| {
                    line.trim_start().starts_with("pub ") || line.trim_start().starts_with("pub(crate)")
                })
                .map(|line| format!("{file}: {owner}: {}: other owners ask by a method", line.trim())),
        );
    }
    none(&found);
}

#[test]
fn shipped_crates_do_not_use_the_conformance_suite() {
    let mut users = Vec::new();
    let mut found = Vec::new();
    for name in crates() {
        if shipped_dependencies(&name).contains("windlass-conformance") {
            found.push(format!(
                "crates/{name}: `windlass-conformance` is for tests: move it to [dev-dependencies]"
            ));
        }
        if dependencies(&name, "dev-dependencies").contains("windlass-conformance") {
            users.push(name);
        }
    }
    none(&found);
    assert_eq!(users, ["cli", "queue", "runtime", "server", "store"], "the manifests are read wrongly");
}

#[test]
fn there_is_one_crypto_provider() {
    let lock = text("Cargo.lock").unwrap();
    let is_locked = |name: &str| lock.contains(&format!("\nname = \"{name}\"\n"));
    assert!(is_locked("ring") && is_locked("rustls"), "the lock file is read wrongly");
    let others = ["aws-lc-rs", "aws-lc-sys", "boring-sys", "native-tls", "openssl-sys"];
    let found = others.into_iter().filter(|name| is_locked(name));
    none(&found.map(|name| format!("Cargo.lock has {name}: use the feature with ring")).collect::<Vec<_>>());
}

#[test]
fn no_test_is_ignored() {
    let found = lines_with(
        &sources(),
        |file| file.contains("/tidy/"),
        |line| line.trim_start().starts_with("#[ignore"),
    );
    none(&found);
}
