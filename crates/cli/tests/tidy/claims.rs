//! Claims of documents: every invariant of ARCHITECTURE.md and every rule of STYLE.md names a check that exists.

use crate::tree::{crates, none, root, sources, text};

/// The marker of a sentence that claims an invariant.
const MARKER: &str = "**Invariant:**";
/// Checks without a test of their own.
const WITHOUT_TEST: [&str; 2] = ["the compiler", "the conformance suite"];

/// The place where the names of a check are looked up.
#[derive(Debug, PartialEq, Eq)]
enum CheckScope {
    /// The lints of the workspace.
    Lints,
    /// Tests below this directory, and modules of tests.
    Tests(String),
}

impl CheckScope {
    /// The scope that the words around the names give; names alone are tests of tidiness.
    fn of(words: &str, crates: &[String]) -> CheckScope {
        let of_crate = crates.iter().find(|name| words.contains(&format!("{name} test")));
        match of_crate {
            _ if words.contains("clippy") => CheckScope::Lints,
            _ if words.contains("of the command line") => {
                CheckScope::Tests("crates/cli/tests/it/".to_owned())
            }
            Some(name) => CheckScope::Tests(format!("crates/{name}/")),
            None => CheckScope::Tests("crates/cli/tests/tidy/".to_owned()),
        }
    }
}

/// The texts in which checks are looked up.
struct CheckIndex {
    sources: Vec<(String, String)>,
    manifest: String,
    crates: Vec<String>,
}

impl CheckIndex {
    fn read() -> Self {
        CheckIndex { sources: sources(), manifest: text("Cargo.toml").unwrap(), crates: crates() }
    }

    fn has(&self, scope: &CheckScope, name: &str) -> bool {
        if name.contains('/') {
            return root().join(name).exists() || root().join("crates").join(name).exists();
        }
        match scope {
            CheckScope::Lints => self.manifest.contains(&format!("\n{name} = ")),
            CheckScope::Tests(dir) => self.sources.iter().any(|(file, text)| {
                let is_module = file.contains("/tests/") && file.ends_with(&format!("/{name}.rs"));
                file.starts_with(dir) && (is_module || has_test(text, name))
            }),
        }
    }

    /// Adds the problems of a claim: no check is named, or one that does not exist.
    fn judge(&self, place: &str, claim: &str, found: &mut Vec<String>) {
        let mut n_checks = 0;
        for part in groups(claim).into_iter().flat_map(|group| group.split(';')) {
            let words: String = part.split('`').step_by(2).collect();
            let scope = CheckScope::of(&words, &self.crates);
            n_checks += usize::from(WITHOUT_TEST.iter().any(|check| words.contains(check)));
            for name in part.split('`').skip(1).step_by(2) {
                n_checks += 1;
                if !self.has(&scope, name) {
                    found.push(format!("{place}: there is no check `{name}` in {scope:?}"));
                }
            }
        }
        if n_checks == 0 {
            found.push(format!("{place}: name the check behind it: {}", claim.trim()));
        }
    }
}

/// Whether a text defines a test of this name.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let head = format!("fn {name}(");
    lines.iter().enumerate().any(|(i, line)| {
        let is_defined = line.strip_prefix("async ").unwrap_or(line).starts_with(&head);
        let mut attributes = lines[..i].iter().rev().take_while(|line| line.starts_with("#["));
        is_defined && attributes.any(|line| line.contains("#[test]") || line.contains("::test"))
    })
}

/// The texts in parentheses, without the targets of links.
fn groups(claim: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut depth, mut begin) = (0_usize, 0);
    for (at, c) in claim.char_indices() {
        match c {
            '(' => {
                depth += 1;
                if depth == 1 {
                    begin = at + 1;
                }
            }
            ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && !claim[..begin.saturating_sub(1)].ends_with(']') {
                    found.push(&claim[begin..at]);
                }
            }
            _ => {}
        }
    }
    found
}

/// The first sentence of a text; full stops in parentheses and in names end none.
fn first_sentence(text: &str) -> &str {
    let (mut depth, mut is_code) = (0_usize, false);
    for (at, c) in text.char_indices() {
        match c {
            '`' => is_code = !is_code,
            '(' if !is_code => depth += 1,
            ')' if !is_code => depth = depth.saturating_sub(1),
            '.' if !is_code && depth == 0 && text[at + 1..].chars().next().is_none_or(|c| c == ' ') => {
                return &text[..at];
            }
            _ => {}
        }
    }
    text
}

#[test]
fn invariants_name_a_check_that_exists() {
    let index = CheckIndex::read();
    let map = text("ARCHITECTURE.md").unwrap();
    let (mut found, mut n_claims) = (Vec::new(), 0);
    for (i, line) in map.lines().enumerate() {
        for rest in line.split(MARKER).skip(1) {
            n_claims += 1;
            index.judge(&format!("ARCHITECTURE.md:{}", i + 1), first_sentence(rest), &mut found);
        }
    }
    assert!(n_claims > 10, "the marker of invariants has changed");
    none(&found);
}

#[test]
fn rules_of_style_name_a_check_that_exists() {
    let index = CheckIndex::read();
    let style = text("STYLE.md").unwrap();
    let rules: Vec<(usize, &str)> =
        style.lines().enumerate().filter_map(|(i, line)| Some((i, line.strip_prefix("- ")?))).collect();
    assert!(rules.len() > 10, "the form of the rules has changed");
    let mut found = Vec::new();
    for (i, rule) in rules {
        index.judge(&format!("STYLE.md:{}", i + 1), rule, &mut found);
    }
    none(&found);
}

#[test]
fn the_checks_of_claims_find_violations() {
    let source = "#[test]\nfn here() {}\n\nfn helper() {}\n\n#[tokio::test]\nasync fn there() {}\n";
    let index = CheckIndex {
        sources: vec![
            ("crates/cli/tests/tidy/words.rs".to_owned(), source.to_owned()),
            ("crates/store/tests/rows.rs".to_owned(), String::new()),
        ],
        manifest: "[lints]\nunwrap_used = \"deny\"\n".to_owned(),
        crates: vec!["store".to_owned()],
    };
    let problems = |claim: &str| {
        let mut found = Vec::new();
        index.judge("f", claim, &mut found);
        found.len()
    };
    for good in
        ["a (`here`), b (`there`)", "a (the compiler)", "a (store tests `rows`)", "a (clippy: `unwrap_used`)"]
    {
        assert_eq!(problems(good), 0, "{good}");
    }
    for bad in [
        "a",
        "a [b](`here`)",
        "a (`helper`)",
        "a (`gone`; the compiler)",
        "a (`no/such/path`)",
        "a (store tests)",
        "a (clippy: `here`)",
    ] {
        assert_eq!(problems(bad), 1, "{bad}");
    }
    assert_eq!(first_sentence(" a `b.c d` (e. f) g. More (`x`)."), " a `b.c d` (e. f) g");
    assert_eq!(groups("a (b (c) d) [e](f) (g)"), ["b (c) d", "g"]);
}
