//! JSON text of clients and workers, checked before a tree of values is built from it. The check refuses text whose
//! tree would take many times its bytes, and text that two readers could understand differently: an object with a key
//! twice, and integers that no 64 bits hold. Malformed text passes: its parser names the place.

use std::borrow::Cow;
use std::fmt;

use crate::limits::{TREE_BYTES, TREE_TIMES};

/// Containers inside containers; serde_json stops at the same depth.
const NESTING: usize = 127;
/// Bytes of a value in an array that has grown to its length by doubling.
pub(crate) const VALUE_BYTES: usize = 64;
/// Bytes of the smallest allocation of a text, a key or an array.
pub(crate) const BLOCK_BYTES: usize = 16;
/// Bytes of a field in a tree whose nodes are half full.
pub(crate) const FIELD_BYTES: usize = 112;
/// Bytes of an object that has fields.
pub(crate) const OBJECT_BYTES: usize = 560;
/// Digits of an integer that fit into 64 bits in any case.
const DIGITS_SAFE: usize = 18;
/// Characters of a key in a path.
const KEY_CHARS: usize = 60;

/// A reason to refuse JSON text, with its place: `results[3].id`; empty for the text as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonFlaw {
    pub path: String,
    pub kind: JsonFlawKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonFlawKind {
    #[error("it is nested deeper than {NESTING} levels: flatten it")]
    Deep,
    #[error("its values would take more than {0} bytes of memory: send fewer and larger values, or a text")]
    Heavy(usize),
    #[error("the object has this key twice: give it once")]
    KeyTwice,
    #[error("the integer does not fit into 64 bits and would change: send it as a text")]
    LargeInteger,
}

impl fmt::Display for JsonFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => self.kind.fmt(f),
            path => write!(f, "{path}: {}{}", self.kind, self.remedy()),
        }
    }
}

impl JsonFlaw {
    /// The advice for steps whose branches stand inside one another; empty for any other text.
    pub fn remedy(&self) -> &'static str {
        match self.kind {
            JsonFlawKind::Deep if self.path.contains(".branches[") => {
                ", or move the inner branches to a flow of their own and call it with `@subflow/call`"
            }
            JsonFlawKind::Deep
            | JsonFlawKind::Heavy(_)
            | JsonFlawKind::KeyTwice
            | JsonFlawKind::LargeInteger => "",
        }
    }
}

/// The bytes that the tree of a text of this length may take.
pub fn tree_bytes_max(text_bytes: usize) -> usize {
    text_bytes.saturating_mul(TREE_TIMES).max(TREE_BYTES)
}

/// The bytes that the tree of this text would take, as an upper estimate; or the reason to refuse the text.
pub fn check_json(text: &[u8]) -> Result<usize, JsonFlaw> {
    scan(text, tree_bytes_max(text.len()))
}

/// Checks text of a person's own machine, which may take any memory there: its values must not change, and no key may be
/// given twice.
pub fn check_meaning(text: &[u8]) -> Result<(), JsonFlaw> {
    scan(text, usize::MAX).map(drop)
}

fn scan(text: &[u8], most: usize) -> Result<usize, JsonFlaw> {
    if u32::try_from(text.len()).is_err() {
        return Err(JsonFlaw { path: String::new(), kind: JsonFlawKind::Heavy(most) });
    }
    let mut scan = Scan { text, at: 0, bytes: 0, most, open: Vec::new(), keys: Vec::new() };
    scan.run()?;
    Ok(scan.bytes)
}

/// A key in the text, without its quotes.
#[derive(Clone, Copy)]
struct KeySpan {
    hash: u64,
    from: u32,
    to: u32,
}

impl KeySpan {
    fn new(text: &[u8], from: usize, to: usize) -> Self {
        // `check_json` has refused longer texts.
        let short = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let span = KeySpan { hash: 0, from: short(from), to: short(to) };
        let hash = span.read(text).iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        KeySpan { hash, ..span }
    }

    /// The key without escapes: `\u0061` is the same key as `a`.
    fn read(self, text: &[u8]) -> Cow<'_, [u8]> {
        let (from, to) = (self.from as usize, self.to as usize);
        let raw = &text[from..to];
        if !raw.contains(&b'\\') {
            return Cow::Borrowed(raw);
        }
        let read = serde_json::from_slice::<String>(&text[from - 1..=to]);
        read.map_or(Cow::Borrowed(raw), |key| Cow::Owned(key.into_bytes()))
    }
}

/// A container whose end has not come yet.
enum Open {
    Array {
        index: usize,
    },
    Object {
        /// Where its keys begin in the list of all keys.
        keys_from: usize,
        is_key_next: bool,
        /// The key that was read last.
        key: Option<KeySpan>,
    },
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    bytes: usize,
    most: usize,
    open: Vec<Open>,
    /// The keys of all open objects.
    keys: Vec<KeySpan>,
}

impl Scan<'_> {
    /// Reads to the end, or to the first byte that no parser would pass.
    fn run(&mut self) -> Result<(), JsonFlaw> {
        while let Some(byte) = self.text.get(self.at) {
            let goes_on = match byte {
                b' ' | b'\n' | b'\r' | b'\t' | b':' => {
                    self.at += 1;
                    true
                }
                b'{' => {
                    self.begin(Open::Object { keys_from: self.keys.len(), is_key_next: true, key: None })?
                }
                b'[' => self.begin(Open::Array { index: 0 })?,
                b'}' | b']' => self.end(*byte)?,
                b',' => self.pass_comma(),
                b'"' => self.pass_text()?,
                b'-' | b'0'..=b'9' => self.pass_number()?,
                b'a'..=b'z' => {
                    self.skip(|byte| byte.is_ascii_lowercase());
                    self.add(VALUE_BYTES)?;
                    true
                }
                _ => false,
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    fn add(&mut self, bytes: usize) -> Result<(), JsonFlaw> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.most {
            return Err(JsonFlaw { path: String::new(), kind: JsonFlawKind::Heavy(self.most) });
        }
        Ok(())
    }

    fn skip(&mut self, is_passed: impl Fn(u8) -> bool) -> &[u8] {
        let from = self.at;
        let n = self.text[from..].iter().take_while(|byte| is_passed(**byte)).count();
        self.at += n;
        &self.text[from..self.at]
    }

    fn begin(&mut self, container: Open) -> Result<bool, JsonFlaw> {
        if self.open.len() == NESTING {
            return Err(JsonFlaw { path: shortened(&self.path()), kind: JsonFlawKind::Deep });
        }
        self.at += 1;
        self.open.push(container);
        self.add(VALUE_BYTES + BLOCK_BYTES)?;
        Ok(true)
    }

    fn end(&mut self, byte: u8) -> Result<bool, JsonFlaw> {
        self.at += 1;
        match self.open.last() {
            Some(Open::Array { .. }) if byte == b']' => {}
            Some(Open::Object { keys_from, .. }) if byte == b'}' => {
                let keys_from = *keys_from;
                self.check_keys(keys_from)?;
                self.keys.truncate(keys_from);
            }
            Some(_) | None => return Ok(false),
        }
        self.open.pop();
        Ok(true)
    }

    fn pass_comma(&mut self) -> bool {
        self.at += 1;
        match self.open.last_mut() {
            Some(Open::Array { index }) => *index += 1,
            Some(Open::Object { is_key_next, .. }) => *is_key_next = true,
            None => return false,
        }
        true
    }

    fn pass_text(&mut self) -> Result<bool, JsonFlaw> {
        let from = self.at + 1;
        let mut at = from;
        loop {
            match self.text.get(at) {
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
                None => return Ok(false),
            }
        }
        self.at = at + 1;
        let text_bytes = (at - from).saturating_add(BLOCK_BYTES);
        if let Some(Open::Object { keys_from, is_key_next, key }) = self.open.last_mut()
            && std::mem::take(is_key_next)
        {
            let object_bytes = if self.keys.len() == *keys_from { OBJECT_BYTES } else { 0 };
            let span = KeySpan::new(self.text, from, at);
            *key = Some(span);
            self.keys.push(span);
            self.add(object_bytes + FIELD_BYTES - VALUE_BYTES + text_bytes)?;
        } else {
            self.add(VALUE_BYTES + text_bytes)?;
        }
        Ok(true)
    }

    fn pass_number(&mut self) -> Result<bool, JsonFlaw> {
        let token = self.skip(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
        if is_large_integer(token) {
            return Err(JsonFlaw { path: self.path(), kind: JsonFlawKind::LargeInteger });
        }
        self.add(VALUE_BYTES)?;
        Ok(true)
    }

    /// Refuses the object that ends here if it has a key twice.
    fn check_keys(&mut self, keys_from: usize) -> Result<(), JsonFlaw> {
        let text = self.text;
        let keys = &mut self.keys[keys_from..];
        keys.sort_unstable_by(|one, other| {
            one.hash.cmp(&other.hash).then_with(|| one.read(text).cmp(&other.read(text)))
        });
        let is_twice =
            |pair: &&[KeySpan]| pair[0].hash == pair[1].hash && pair[0].read(text) == pair[1].read(text);
        let Some(pair) = keys.windows(2).find(is_twice) else { return Ok(()) };
        let twice = pair[0];
        if let Some(Open::Object { key, .. }) = self.open.last_mut() {
            *key = Some(twice);
        }
        Err(JsonFlaw { path: self.path(), kind: JsonFlawKind::KeyTwice })
    }

    /// The place of the value that is read now.
    fn path(&self) -> String {
        let mut path = String::new();
        for container in &self.open {
            match container {
                Open::Array { index } => path.push_str(&format!("[{index}]")),
                Open::Object { key: None, .. } => {}
                Open::Object { key: Some(key), .. } => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.extend(String::from_utf8_lossy(&key.read(self.text)).chars().take(KEY_CHARS));
                }
            }
        }
        path
    }
}

/// A long path without its middle.
fn shortened(path: &str) -> String {
    let chars: Vec<char> = path.chars().collect();
    if chars.len() <= 2 * KEY_CHARS {
        return path.to_owned();
    }
    let (first, last) = (&chars[..KEY_CHARS], &chars[chars.len() - KEY_CHARS..]);
    format!("{} … {}", String::from_iter(first), String::from_iter(last))
}

fn is_large_integer(token: &[u8]) -> bool {
    let digits = token.strip_prefix(b"-").unwrap_or(token);
    if digits.len() <= DIGITS_SAFE || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let Ok(text) = std::str::from_utf8(token) else { return false };
    text.parse::<i64>().is_err() && text.parse::<u64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, path: &str, kind: JsonFlawKind) {
        assert_eq!(check_json(text.as_bytes()), Err(JsonFlaw { path: path.to_owned(), kind }), "{text}");
    }

    #[test]
    fn an_object_with_a_key_twice_is_refused_with_its_place() {
        refused(r#"{"a":1,"b":{},"a":2}"#, "a", JsonFlawKind::KeyTwice);
        refused(r#"{"r":[{"a":1},{"x":[],"id":{"k":0,"k":0}}]}"#, "r[1].id.k", JsonFlawKind::KeyTwice);
        refused(r#"[[],{"\u0061":1,"a":2}]"#, "[1].a", JsonFlawKind::KeyTwice);
        for fine in [r#"{"a":{"a":"a"},"b":["a","a"],"A":"b"}"#, "{}", "[]", r#"[{"a":1},{"a":1}]"#] {
            assert!(check_json(fine.as_bytes()).is_ok(), "{fine}");
        }
    }

    #[test]
    fn an_integer_beyond_64_bits_is_refused_with_its_place() {
        for fine in ["18446744073709551615", "-9223372036854775808", "1e400", "123456789012345678901.5", "0"]
        {
            assert!(check_json(format!("{{\"n\":[{fine}]}}").as_bytes()).is_ok(), "{fine}");
        }
        for large in ["18446744073709551616", "-9223372036854775809", "123456789012345678901234567890"] {
            refused(&format!("{{\"m\":0,\"n\":[1,{large}]}}"), "n[1]", JsonFlawKind::LargeInteger);
        }
        assert!(check_json(br#"{"n":"123456789012345678901234567890"}"#).is_ok());
    }

    #[test]
    fn nesting_ends_where_the_parser_ends() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(check_json(deep(NESTING).as_bytes()).is_ok());
        assert!(serde_json::from_str::<serde_json::Value>(&deep(NESTING)).is_ok());
        refused(&deep(NESTING + 1), &format!("{0} … {0}", "[0]".repeat(KEY_CHARS / 3)), JsonFlawKind::Deep);
        let flaw = check_json("{\"a\":[".repeat(100_000).as_bytes()).unwrap_err();
        assert_eq!((flaw.kind, flaw.remedy()), (JsonFlawKind::Deep, ""));
        assert!(flaw.path.starts_with("a[0].a[0]") && flaw.path.len() < 200, "{}", flaw.path);
        let flaw = check_json("{\"steps\":[{\"branches\":[".repeat(100).as_bytes()).unwrap_err();
        assert!(flaw.to_string().contains("`@subflow/call`"), "{flaw}");
    }

    #[test]
    fn values_that_take_many_times_their_text_are_refused() {
        let list = |item: &str, bytes: usize| {
            format!("[{item}0]", item = format!("{item},").repeat(bytes / item.len()))
        };
        for item in ["0", "{}", "[]", "\"\"", r#"{"a":0}"#, r#"{"a":{"b":1}}"#] {
            let text = list(item, 8 << 20);
            let most = tree_bytes_max(text.len());
            refused(&text, "", JsonFlawKind::Heavy(most));
        }
        let text = list(&format!("\"{}\"", "x".repeat(100)), 8 << 20);
        assert!(check_json(text.as_bytes()).unwrap() < text.len() * 2);
        assert!(check_json(list("0", 200_000).as_bytes()).is_ok(), "small texts may be dense");
    }

    #[test]
    fn malformed_text_is_left_to_its_parser() {
        for text in [
            "",
            "{",
            "}",
            "{\"a",
            "\"\\",
            "[1,",
            "nul",
            "{\"a\":}",
            "]]",
            "\u{feff}{}",
            "{} {}",
            "{,}",
            "1,2",
        ] {
            assert!(check_json(text.as_bytes()).is_ok(), "{text}");
        }
        assert!(check_json(b"\xff\xfe").is_ok());
    }
}
