//! What is wrong with a definition: every problem at once, each with the place, the reason and a hint.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The definition cannot be published.
    Error,
    /// It can, but somebody should look.
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Where: `$.nodes.fetch.service`, `$.edges[3].to`, `line 4 column 2`.
    pub path: String,
    /// What is wrong: lowercase, no full stop.
    pub reason: String,
    /// What to do about it, where that is known.
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

    pub fn into_list(self) -> Vec<Problem> {
        self.list
    }
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
