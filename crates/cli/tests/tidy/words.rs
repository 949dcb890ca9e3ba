//! Plain words: sentences of comments and documents have a concrete subject.

use crate::tree::{ending_with, files, none, sources, text};

/// Words that begin no sentence: they hide its subject.
const OPENINGS: [&str; 6] = ["What", "Whoever", "Whatever", "Who", "Whom", "Of"];
/// Words that name no one: say worker, client, server or caller.
const ANONYMOUS: [&str; 5] = ["whoever", "somebody", "nobody", "anybody", "everybody"];
/// Comment lines with one of the words below, of 1,000.
const VAGUE_PER_MILLE: usize = 20;
const VAGUE: [&str; 5] = ["what", "whatever", "whoever", "somebody", "nobody"];
/// Shows sentences as they were before.
const QUOTES: [&str; 2] = ["docs/adr/0014-plain-words.md", "STYLE.md"];
/// Headings there are the questions of its readers.
const QUESTIONS: &str = "docs/troubleshooting.md";

/// The quotes around the documentation of a Python module or function.
const QUOTE: &str = "\"\"\"";

/// The marks that begin a line of comment, with the longest first.
fn marks(file: &str, text: &str) -> Option<&'static [&'static str]> {
    let name = file.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("rs") => file.starts_with("crates/").then_some(&["///", "//!", "//"]),
        Some("sql" | "lua") => Some(&["--"]),
        Some("py" | "sh" | "case") => Some(&["#"]),
        // The first line of a script without an ending names its interpreter.
        _ if text.starts_with("#!") => Some(&["#"]),
        _ => None,
    }
}

fn is_python(file: &str, text: &str) -> bool {
    file.ends_with(".py") || text.lines().next().is_some_and(|line| line.ends_with("python3"))
}

/// The comment on a line, without its marks.
fn comment<'t>(line: &'t str, marks: &[&str]) -> Option<&'t str> {
    let line = line.trim_start();
    marks.iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim)
}

/// The comment of each line of a file that may have comments; `None` on lines without one.
fn comments<'t>(file: &str, text: &'t str) -> Vec<Option<&'t str>> {
    let Some(marks) = marks(file, text) else { return Vec::new() };
    if !is_python(file, text) {
        return text.lines().map(|line| comment(line, marks)).collect();
    }
    let mut is_quoted = false;
    let of_line = |line: &'t str| {
        let begins = line.trim_start().starts_with(QUOTE);
        let is_documentation = is_quoted || begins;
        if (is_quoted || begins) && line.matches(QUOTE).count() % 2 == 1 {
            is_quoted = !is_quoted;
        }
        if is_documentation { Some(line.trim().trim_matches('"').trim()) } else { comment(line, marks) }
    };
    text.lines().map(of_line).collect()
}

/// All files that may have comments, with their texts.
fn commented() -> Vec<(String, String)> {
    let texts = files().into_iter().filter_map(|file| text(&file).map(|text| (file, text)));
    texts.filter(|(file, text)| marks(file, text).is_some()).collect()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// The first words of the sentences of a paragraph that goes over several lines.
fn openings<'t>(lines: &[(usize, &'t str)]) -> Vec<(usize, &'t str)> {
    let mut found = Vec::new();
    let mut begins = true;
    for (number, line) in lines {
        for word in line.split_whitespace() {
            if begins && let Some(first) = words(word).next() {
                found.push((*number, first));
            }
            begins = word.ends_with(['.', '!', '?']) && !word.ends_with("..");
        }
    }
    found
}

fn check_openings(file: &str, paragraph: &[(usize, &str)], found: &mut Vec<String>) {
    for (number, word) in openings(paragraph) {
        if OPENINGS.contains(&word) {
            found.push(format!("{file}:{number}: a sentence begins with `{word}`: name its subject"));
        }
    }
}

#[test]
fn sentences_of_comments_begin_with_their_subject() {
    let mut found = Vec::new();
    for (file, text) in commented() {
        let mut paragraph = Vec::new();
        for (i, comment) in comments(&file, &text).into_iter().enumerate() {
            match comment {
                Some(text) if !text.is_empty() => paragraph.push((i + 1, text)),
                Some(_) | None => check_openings(&file, &std::mem::take(&mut paragraph), &mut found),
            }
        }
        check_openings(&file, &paragraph, &mut found);
    }
    none(&found);
}

#[test]
fn comments_name_workers_clients_and_servers() {
    let mut found = Vec::new();
    for (file, text) in commented() {
        for (i, comment) in comments(&file, &text).into_iter().enumerate() {
            let anonymous = comment.and_then(|text| words(text).find(|word| is_one_of(word, &ANONYMOUS)));
            if let Some(word) = anonymous {
                found.push(format!("{file}:{}: `{word}`: say who", i + 1));
            }
        }
    }
    none(&found);
}

fn is_one_of(word: &str, list: &[&str]) -> bool {
    list.iter().any(|other| word.eq_ignore_ascii_case(other))
}

#[test]
fn few_comments_are_vague() {
    let texts = commented();
    let comments: Vec<&str> = texts
        .iter()
        .flat_map(|(file, text)| comments(file, text))
        .flatten()
        .filter(|text| !text.is_empty())
        .collect();
    let vague = comments.iter().filter(|text| words(text).any(|word| is_one_of(word, &VAGUE))).count();
    assert!(
        vague * 1_000 <= VAGUE_PER_MILLE * comments.len(),
        "{vague} of {} comment lines contain one of {VAGUE:?}; {VAGUE_PER_MILLE} of 1,000 at most",
        comments.len()
    );
}

/// Whether a function's name begins with a word that hides its subject, or names no one.
fn is_vague_name(name: &str) -> bool {
    let mut parts = name.split('_');
    let opening = parts.next().unwrap_or_default();
    let begins = opening != "of" && OPENINGS.iter().any(|word| word.eq_ignore_ascii_case(opening));
    begins || name.split('_').any(|part| ANONYMOUS.contains(&part))
}

#[test]
fn names_of_functions_have_a_subject() {
    let mut found = Vec::new();
    for (file, text) in sources() {
        for (i, line) in text.lines().enumerate() {
            let Some((before, rest)) = line.split_once("fn ") else { continue };
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            if comment(before, &["//"]).is_none() && is_vague_name(name) {
                found.push(format!("{file}:{}: `{name}` does not name its subject", i + 1));
            }
        }
    }
    none(&found);
}

#[test]
fn sentences_of_documents_begin_with_their_subject() {
    let mut found = Vec::new();
    for file in ending_with(".md").into_iter().filter(|file| !QUOTES.contains(&file.as_str())) {
        let text = text(&file).unwrap();
        let mut is_code = false;
        for (i, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            }
            if is_code {
                continue;
            }
            let is_question = file == QUESTIONS && line.starts_with('#') && line.ends_with('?');
            let line = line.trim_start_matches(['#', '-', '*', '|', '>', ' ', '\t']);
            if !is_question {
                check_openings(&file, &[(i + 1, line)], &mut found);
            }
            if let Some(word) = words(line).find(|word| is_one_of(word, &ANONYMOUS)) {
                found.push(format!("{file}:{}: `{word}`: say who", i + 1));
            }
        }
    }
    none(&found);
}

#[test]
fn the_checks_of_words_find_violations() {
    assert!(is_vague_name("what_is_wrong_is_named") && is_vague_name("a_turn_that_nobody_wanted"));
    assert!(
        !is_vague_name("of_run") && !is_vague_name("whole") && !is_vague_name("a_late_answer_is_refused")
    );
    let mut found = Vec::new();
    let paragraph =
        [(1, "The writer waits. What arrives"), (2, "meanwhile waits too. Of these, one"), (3, "is next.")];
    check_openings("f", &paragraph, &mut found);
    assert_eq!(found.len(), 2, "{found:?}");
    let one = |file: &str, line: &str| comments(file, line).first().copied().flatten().map(str::to_owned);
    let rust = "crates/engine/src/lib.rs";
    assert_eq!(one(rust, "    /// Whoever asks").as_deref(), Some("Whoever asks"));
    assert_eq!(one(rust, "let x = 1; // aside"), None);
    for (file, line) in [
        ("a.sql", "    -- Who has it."),
        ("a.lua", "-- Who has it."),
        ("a.py", "    # Who has it."),
        ("a.py", "    \"\"\"Who has it.\"\"\""),
        ("a.sh", "# Who has it."),
        ("a.case", "# Who has it."),
    ] {
        assert_eq!(one(file, line).as_deref(), Some("Who has it."), "{file}: {line}");
    }
    assert_eq!(comments("run", "#!/bin/sh\n# Who")[1], Some("Who"));
    assert_eq!(comments("a.txt", "# Who"), []);
    let documented = "\"\"\"One\nTwo\n\"\"\"\nthree = 3";
    assert_eq!(comments("a.py", documented), [Some("One"), Some("Two"), Some(""), None]);
}
