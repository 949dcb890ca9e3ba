//! Fingerprints of failures: the message without the parts that differ from one job to the next.
//!
//! Numbers, ids, moments, addresses and quoted words become one sign each; the rest is hashed. The signs and the
//! hash are stored: another rule would put the same failure into another group.

use super::Fault;
use crate::id::mix;

/// Stands for a number, an id, a moment, an address.
const NUMBER: char = '#';
/// Stands for something quoted.
const QUOTED: char = '"';
/// The quotes that are looked for.
const QUOTES: [char; 3] = ['"', '\'', '`'];
/// A word of letters and then digits with at least so many characters is an id, not a numbered thing.
const ID_CHARS: usize = 16;
/// A word of letters `a` to `f` with at least so many characters is an id, not a word.
const HEX_CHARS: usize = 8;
/// With a digit among them, fewer are enough.
const HEX_CHARS_WITH_DIGIT: usize = 4;

impl Fault {
    /// Sixteen digits that are the same for failures of one kind whose messages differ only in numbers, ids, quoted
    /// words and spaces.
    pub fn fingerprint(&self) -> String {
        let start = 0xcbf2_9ce4_8422_2325_u64;
        let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let plain = plain(&self.message);
        let bytes = self.kind.word().bytes().chain([0]).chain(plain.bytes());
        // The last bytes of FNV-1a reach only its low bits; the scrambling spreads them.
        format!("{:016x}", mix(bytes.fold(start, fold)))
    }
}

/// The message without its variable parts.
fn plain(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    let mut quotes = QUOTES.map(|quote| Closing { quote, at: 0 });
    let mut rest = message;
    while let Some(first) = rest.chars().next() {
        let at = message.len() - rest.len();
        let is_after_word = message[..at].chars().next_back().is_some_and(is_part_of_word);
        let quote = quotes.iter_mut().find(|quote| quote.quote == first && !is_after_word);
        let taken = if is_part_of_word(first) {
            let end = rest.find(|c| !is_part_of_word(c)).unwrap_or(rest.len());
            words(&mut out, &rest[..end]);
            end
        } else if let Some(end) = quote.and_then(|quote| quote.after(message, at + 1)) {
            out.push(QUOTED);
            end + 1 - at
        } else {
            if !first.is_whitespace() {
                out.push(first);
            } else if !out.is_empty() && !out.ends_with(' ') {
                out.push(' ');
            }
            first.len_utf8()
        };
        rest = &rest[taken..];
    }
    out.truncate(out.trim_end().len());
    out
}

/// Where quotes of a kind close. Looked for from left to right and remembered, so that a message full of quotes that
/// never close is read once and not once for each of them.
struct Closing {
    quote: char,
    at: usize,
}

impl Closing {
    /// The first quote at or after `from` that can close one: no word follows it.
    fn after(&mut self, message: &str, from: usize) -> Option<usize> {
        if self.at < from {
            let closes = |at: &usize| {
                let next = message[at + self.quote.len_utf8()..].chars().next();
                !next.is_some_and(char::is_alphanumeric)
            };
            let found = message[from..].match_indices(self.quote).map(|(at, _)| from + at).find(closes);
            self.at = found.unwrap_or(usize::MAX);
        }
        Some(self.at).filter(|at| *at != usize::MAX)
    }
}

fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// Words joined by `_` and `-`.
fn words(out: &mut String, joined: &str) {
    if is_uuid(joined) {
        return number(out);
    }
    for part in joined.split_inclusive(['_', '-']) {
        let word = part.trim_end_matches(['_', '-']);
        word_of(out, word);
        out.push_str(&part[word.len()..]);
    }
}

fn word_of(out: &mut String, word: &str) {
    let n_chars = word.chars().count();
    let has_digit = word.contains(char::is_numeric);
    let hex_chars = if has_digit { HEX_CHARS_WITH_DIGIT } else { HEX_CHARS };
    let is_hex = n_chars >= hex_chars && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !has_digit && !is_hex {
        out.extend(word.chars().map(|c| c.to_ascii_lowercase()));
        return;
    }
    let name = word.trim_end_matches(char::is_numeric);
    if !is_hex && n_chars < ID_CHARS && !name.contains(char::is_numeric) {
        out.extend(name.chars().map(|c| c.to_ascii_lowercase()));
    }
    number(out);
}

/// Adds the sign for a number; characters that join such signs (`1.5`, `10:30`, an address) belong to the sign before.
fn number(out: &mut String) {
    let before = out.strip_suffix(['.', ',', ':', '-', '+']).unwrap_or(out);
    if before.ends_with(NUMBER) {
        out.truncate(before.len());
    } else {
        out.push(NUMBER);
    }
}

fn is_uuid(text: &str) -> bool {
    let parts = text.split('-').map(|part| (part.len(), part.bytes().all(|byte| byte.is_ascii_hexdigit())));
    parts.eq([8, 4, 4, 4, 12].map(|n| (n, true)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::retry::FaultKind;

    fn of(message: &str) -> String {
        Fault::new(FaultKind::Error, message).fingerprint()
    }

    #[test]
    fn every_difference_becomes_a_sign() {
        for (message, expected) in [
            ("Timed out after 30 s", "timed out after # s"),
            ("job 0190a1b2-c3d4-7000-8000-beefbeefbeef failed", "job # failed"),
            ("run_0190a1b2c3d470008000000000000001 failed", "run_# failed"),
            ("commit deadbeef is bad, facade is a word", "commit # is bad, facade is a word"),
            ("cannot open '/var/spool/a b.txt'", "cannot open \""),
            ("no user \"it's me\" in `users`", "no user \" in \""),
            ("can't read users' files", "can't read users' files"),
            ("connect to 10.0.0.1:8080 failed", "connect to # failed"),
            ("at 2026-02-03T04:05:06.789Z: late", "at #: late"),
            ("3.14 and 1,234.5 and 7", "# and # and #"),
            ("/var/lib/job-17/part12.csv is gone", "/var/lib/job-#/part#.csv is gone"),
            ("HTTP2 says 404", "http# says #"),
            ("token q8Zx01Lm0 refused", "token # refused"),
            ("  spaces\n\t and more  ", "spaces and more"),
            ("größe 5 zu groß", "größe # zu groß"),
            ("", ""),
            ("'never closed", "'never closed"),
        ] {
            assert_eq!(plain(message), expected, "{message}");
        }
    }

    #[test]
    fn the_same_failure_of_other_jobs_has_the_same_fingerprint() {
        assert_eq!(of("user 17 not found in `a`"), of("user 99812 not found in `b`"));
        assert_ne!(of("user 17 not found"), of("order 17 not found"));
        assert_ne!(of("x"), Fault::new(FaultKind::Timeout, "x").fingerprint());
        assert_eq!(of("x"), Fault::new(FaultKind::Error, "x").permanent().fingerprint());
    }

    #[test]
    fn a_fingerprint_never_changes_because_it_is_stored() {
        assert_eq!(of("user 17 not found"), "17e2448328274b04");
    }

    #[test]
    fn quotes_that_never_close_are_read_once() {
        // Once for each of them would take minutes.
        let message = " 'a".repeat(1_000_000);
        assert_eq!(plain(&message).len(), message.len() - 1);
    }

    proptest! {
        #[test]
        fn any_message_has_sixteen_digits(message in any::<String>()) {
            let fingerprint = of(&message);
            prop_assert_eq!(fingerprint.len(), 16);
            prop_assert!(fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }

        #[test]
        fn other_numbers_make_no_other_group(a in any::<u64>(), b in any::<u64>()) {
            prop_assert_eq!(of(&format!("row {a} of {b}")), of("row 1 of 2"));
        }
    }
}
