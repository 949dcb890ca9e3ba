//! Regular expressions that a definition or a run brings along: limited in length and in what they compile to.

use regex::{Regex, RegexBuilder};

use crate::text::excerpt;

/// Bytes of a pattern.
const PATTERN_BYTES: usize = 1_000;
/// Bytes a pattern may compile to. The usual ones need a few thousand; compiling up to this takes a millisecond or so.
const COMPILED_BYTES: usize = 256 << 10;
/// Groups inside groups.
const NESTING: u32 = 32;

/// Compiles a pattern, or says why not.
pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > PATTERN_BYTES {
        return Err(format!(
            "the pattern `{}` is longer than {PATTERN_BYTES} bytes: make it shorter",
            excerpt(pattern)
        ));
    }
    RegexBuilder::new(pattern)
        .size_limit(COMPILED_BYTES)
        .dfa_size_limit(4 * COMPILED_BYTES)
        .nest_limit(NESTING)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                format!("the pattern `{}` is too large: use smaller repeat counts", excerpt(pattern))
            }
            other => {
                format!("`{}` is no regular expression: {}", excerpt(pattern), last_line(&other.to_string()))
            }
        })
}

/// The last line of a syntax error says what is wrong; those before it draw a picture.
fn last_line(message: &str) -> String {
    let line = message.lines().last().unwrap_or_default();
    line.trim().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_patterns_are_refused() {
        assert!(compile(r"^\w+@\w+\.\w{2,}$").unwrap().is_match("a@b.org"));
        assert!(compile("(((a{1000}){1000}){1000})").unwrap_err().contains("too large"));
        assert!(compile(&"(".repeat(900)).is_err());
        assert!(compile(&"(a)".repeat(900)).unwrap_err().contains("longer"));
        assert_eq!(compile("a(").unwrap_err(), "`a(` is no regular expression: unclosed group");
    }
}
