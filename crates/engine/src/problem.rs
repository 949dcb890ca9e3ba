//! Problems of a definition: all at once, each with its place, its reason and a hint.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The definition cannot be published.
    Error,
    /// It works, but the author should look.
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Where: `$.nodes.fetch.service`, `$.edges[3].to`, `line 4 column 2`.
    pub path: String,
    /// The message: lowercase, no full stop.
    pub reason: String,
    /// The remedy, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    pub severity: Severity,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{}: {severity}: {}", self.path, self.reason)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// Collects problems while a definition is read; bounded, so that a hostile one cannot fill memory.
#[derive(Debug, Default)]
pub struct Problems {
    list: Vec<Problem>,
    n_errors: usize,
}

impl Problems {
    pub fn error(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        self.push(path.into(), reason.into(), None, Severity::Error);
    }

    pub fn error_hint(&mut self, path: impl Into<String>, reason: impl Into<String>, hint: Option<String>) {
        self.push(path.into(), reason.into(), hint, Severity::Error);
    }

    pub fn warning(&mut self, path: impl Into<String>, reason: impl Into<String>, hint: Option<String>) {
        self.push(path.into(), reason.into(), hint, Severity::Warning);
    }

    fn push(&mut self, path: String, reason: String, hint: Option<String>, severity: Severity) {
        self.n_errors += usize::from(severity == Severity::Error);
        if self.list.len() < crate::limits::PROBLEMS {
            self.list.push(Problem { path, reason, hint, severity });
        }
    }

    pub fn has_errors(&self) -> bool {
        self.n_errors > 0
    }

    /// All problems, in the order of their places; those of one place in the order in which they were found.
    pub fn into_list(mut self) -> Vec<Problem> {
        self.list.sort_by(|a, b| by_place(&a.path, &b.path));
        self.list
    }
}

/// Compares two places: numbers in them by value, so that `nodes[2]` comes before `nodes[10]`.
fn by_place(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        let (n, m) = (digits(a), digits(b));
        if n > 0 && m > 0 {
            let (left, right) = (significant(&a[..n]), significant(&b[..m]));
            let order = left.len().cmp(&right.len()).then_with(|| left.cmp(right));
            if order.is_ne() {
                return order;
            }
            (a, b) = (&a[n..], &b[m..]);
            continue;
        }
        match (a.split_first(), b.split_first()) {
            (Some((x, rest)), Some((y, other))) if x == y => (a, b) = (rest, other),
            (Some((x, _)), Some((y, _))) => return x.cmp(y),
            (left, right) => return left.is_some().cmp(&right.is_some()),
        }
    }
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn significant(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    &digits[zeros..]
}

/// The nearest of `known` to `word`, phrased as a hint, if one is close enough to be a likely slip.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    if word.is_empty() || word.len() > 64 {
        return None;
    }
    let n_chars = word.chars().count();
    let slack = (n_chars / 3).max(1);
    known
        .into_iter()
        .filter(|k| k.len() <= 64)
        .map(|k| (distance(word, k), k))
        // A word of which nothing is left is another word, not a slip.
        .filter(|(d, k)| *d <= slack && *d < n_chars.max(k.chars().count()))
        .min()
        .map(|(_, k)| format!("did you mean `{k}`?"))
}

/// Edit distance with adjacent swaps counted once.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_sorted_by_place() {
        let mut problems = Problems::default();
        let places =
            ["$.nodes[10].type", "$.nodes[2].type", "$.edges[0]", "$", "$.nodes[2]", "$.nodes[02].a"];
        for place in places.into_iter().chain(["$.nodes[2]"]) {
            problems.error(place, format!("n{}", problems.list.len()));
        }
        let sorted: Vec<String> =
            problems.into_list().into_iter().map(|problem| problem.path + " " + &problem.reason).collect();
        let expected = [
            "$ n3",
            "$.edges[0] n2",
            "$.nodes[2] n4",
            "$.nodes[2] n6",
            "$.nodes[02].a n5",
            "$.nodes[2].type n1",
            "$.nodes[10].type n0",
        ];
        assert_eq!(sorted, expected);
    }

    #[test]
    fn a_slip_of_the_finger_gets_a_suggestion() {
        let known = ["transform", "sum", "route"];
        assert_eq!(did_you_mean("tranform", known), Some("did you mean `transform`?".to_owned()));
        assert_eq!(did_you_mean("rotue", known), Some("did you mean `route`?".to_owned()));
        assert_eq!(did_you_mean("payment", known), None);
        assert_eq!(did_you_mean("", known), None);
        assert_eq!(did_you_mean("b", ["a"]), None);
        assert_eq!(did_you_mean("b", ["bb"]), Some("did you mean `bb`?".to_owned()));
    }
}
