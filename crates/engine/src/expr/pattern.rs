//! Regular expressions that a definition or a run brings along, so limited that no text makes them run for long.
//!
//! Matching takes at worst as many steps as the pattern has states times the text has characters: minutes, for a
//! large pattern and a megabyte of text. So the larger a pattern, the shorter the text it may be applied to.

use regex::{Regex, RegexBuilder};

use crate::text::excerpt;

/// Bytes of a pattern.
const PATTERN_BYTES: usize = 1_000;
/// Groups inside groups.
const NESTING: u32 = 32;
/// Bytes a pattern compiles to at most, and bytes of text it may then be applied to. In every row the worst case is
/// about a tenth of a second; ordinary patterns take microseconds in all of them.
const TIERS: [(usize, usize); 4] =
    [(4 << 10, 512 << 10), (32 << 10, 64 << 10), (256 << 10, 8 << 10), (1 << 20, 2 << 10)];

/// Steps that compiling a pattern counts.
pub(super) const PATTERN_STEPS: usize = 10_000;
/// Steps that a pattern counts on the longest text it may be applied to: a condition of the dag form may do so twice.
const LOOK_STEPS: usize = 50_000;

/// A compiled pattern and how much text it may be applied to.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    regex: Regex,
    text_bytes_max: usize,
}

impl Pattern {
    /// Compiles a pattern, or says why not.
    pub(super) fn compile(pattern: &str) -> Result<Pattern, String> {
        let shown = excerpt(pattern);
        if pattern.len() > PATTERN_BYTES {
            return Err(format!(
                "the pattern `{shown}` is longer than {PATTERN_BYTES} bytes: make it shorter"
            ));
        }
        for (compiled_bytes, text_bytes_max) in TIERS {
            let built = RegexBuilder::new(pattern).size_limit(compiled_bytes).nest_limit(NESTING).build();
            match built {
                Ok(regex) => return Ok(Pattern { regex, text_bytes_max }),
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(error) => {
                    return Err(format!(
                        "`{shown}` is no regular expression: {}",
                        last_line(&error.to_string())
                    ));
                }
            }
        }
        Err(format!("the pattern `{shown}` is too large: use smaller repeat counts"))
    }

    /// Whether it is found in the text; `Err` if the text is too long to look.
    pub(super) fn is_match(&self, text: &str) -> Result<bool, String> {
        match text.len() > self.text_bytes_max {
            true => Err(format!(
                "a text of {} bytes is too long for the pattern `{}`, which may be applied to {}",
                text.len(),
                excerpt(self.regex.as_str()),
                self.text_bytes_max
            )),
            false => Ok(self.regex.is_match(text)),
        }
    }

    /// Steps of a look through the text: [`LOOK_STEPS`] for the longest text allowed.
    pub(super) fn steps(&self, text: &str) -> usize {
        LOOK_STEPS.saturating_mul(text.len().min(self.text_bytes_max)) / self.text_bytes_max
    }
}

/// The last line of a syntax error has the message; the lines before it draw a picture.
fn last_line(message: &str) -> String {
    let line = message.lines().last().unwrap_or_default();
    line.trim().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_patterns_match() {
        let mail = Pattern::compile(r"^\w+@\w+\.\w{2,10}$").unwrap();
        assert_eq!(mail.is_match("a@b.org"), Ok(true));
        assert_eq!(mail.is_match("a@b"), Ok(false));
        assert_eq!(Pattern::compile("error").unwrap().is_match(&" ".repeat(500_000)), Ok(false));
    }

    #[test]
    fn hostile_patterns_are_refused() {
        let refused = |pattern: &str| Pattern::compile(pattern).unwrap_err();
        assert!(refused("(((a{1000}){1000}){1000})").contains("too large"));
        assert!(refused(&"(".repeat(900)).contains("no regular expression"));
        assert!(refused(&"(a)".repeat(900)).contains("longer"));
        assert_eq!(refused("a("), "`a(` is no regular expression: unclosed group");
    }

    #[test]
    fn large_patterns_are_not_applied_to_long_texts() {
        let slow = Pattern::compile("(?:[ab]{0,999}a){6}c").unwrap();
        assert_eq!(slow.is_match("ab"), Ok(false));
        assert!(slow.is_match(&"ab".repeat(5_000)).unwrap_err().contains("too long for the pattern"));
        assert!(slow.steps(&"a".repeat(2_000)) > LOOK_STEPS * 9 / 10);
    }
}
