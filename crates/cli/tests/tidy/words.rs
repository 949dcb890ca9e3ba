//! Plain words: sentences of comments and documents have a concrete subject.

use crate::tree::{ending_with, none, sources, text};

/// Words that begin no sentence: they hide its subject.
const OPENINGS: [&str; 6] = ["What", "Whoever", "Whatever", "Who", "Whom", "Of"];
/// Words that name no one: say worker, client, server or caller.
const ANONYMOUS: [&str; 3] = ["whoever", "somebody", "nobody"];
/// Comment lines with one of the words below, of 1,000.
const VAGUE_PER_MILLE: usize = 20;
const VAGUE: [&str; 5] = ["what", "whatever", "whoever", "somebody", "nobody"];
/// Shows sentences as they were before.
const QUOTES: [&str; 2] = ["docs/adr/0014-plain-words.md", "STYLE.md"];
/// Headings there are the questions of its readers.
const QUESTIONS: &str = "docs/troubleshooting.md";

/// The comment on a line, without its marks.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.strip_prefix("///").or(line.strip_prefix("//!")).or(line.strip_prefix("//"))?;
    Some(rest.trim())
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
    for (file, text) in sources() {
        let mut paragraph = Vec::new();
        for (i, line) in text.lines().enumerate() {
            match comment(line) {
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
    for (file, text) in sources() {
        for (i, line) in text.lines().enumerate() {
            let anonymous =
                comment(line).and_then(|text| words(text).find(|word| is_one_of(word, &ANONYMOUS)));
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
    let texts = sources();
    let comments: Vec<&str> = texts
        .iter()
        .flat_map(|(_, text)| text.lines())
        .filter_map(comment)
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
            if comment(before).is_none() && is_vague_name(name) {
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
    assert_eq!(comment("    /// Whoever asks"), Some("Whoever asks"));
    assert_eq!(comment("let x = 1; // aside"), None);
}
