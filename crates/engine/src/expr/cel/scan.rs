//! From text to tokens. References are whole tokens, so that nothing inside quotes is mistaken for one.

use serde_json::Value;

use crate::reference::{Ref, parse_dollar};
use crate::text::excerpt;

/// One token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'a> {
    Literal(Value),
    /// By its place in the list of references.
    Ref(usize),
    Word(&'a str),
    Symbol(&'static str),
    /// The end of the text.
    End,
}

/// The tokens of a text, each with the byte at which it starts, and the references among them, each once.
#[derive(Debug)]
pub(super) struct Scanned<'a> {
    pub(super) tokens: Vec<(Token<'a>, usize)>,
    pub(super) refs: Vec<Ref>,
}

/// Longest first, so that `==` is not read as two `=`. The second element is the token.
const SYMBOLS: [(&str, &str); 26] = [
    ("===", "=="),
    ("!==", "!="),
    ("==", "=="),
    ("!=", "!="),
    ("<=", "<="),
    (">=", ">="),
    ("&&", "&&"),
    ("||", "||"),
    ("<", "<"),
    (">", ">"),
    ("!", "!"),
    ("+", "+"),
    ("-", "-"),
    ("*", "*"),
    ("/", "/"),
    ("%", "%"),
    ("?", "?"),
    (":", ":"),
    (".", "."),
    (",", ","),
    ("(", "("),
    (")", ")"),
    ("[", "["),
    ("]", "]"),
    ("{", "{"),
    ("}", "}"),
];

/// Says where in `text` something is wrong.
pub(super) fn fault(text: &str, at: usize, reason: &str) -> String {
    let place = text[..at].chars().count() + 1;
    format!("{reason} at character {place} of `{}`", excerpt(text))
}

/// Splits a text into tokens.
pub(super) fn scan(text: &str) -> Result<Scanned<'_>, String> {
    let mut scanned = Scanned { tokens: Vec::new(), refs: Vec::new() };
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        let (token, length) =
            token(first, rest, &mut scanned.refs).map_err(|reason| fault(text, at, &reason))?;
        scanned.tokens.push((token, at));
        at += length;
    }
    scanned.tokens.push((Token::End, at));
    Ok(scanned)
}

/// The token at the start of `rest`, and its length.
fn token<'a>(first: char, rest: &'a str, refs: &mut Vec<Ref>) -> Result<(Token<'a>, usize), String> {
    match first {
        '$' => return reference(rest, refs),
        '"' | '\'' => return string(rest, false),
        '0'..='9' => return number(rest),
        'a'..='z' | 'A'..='Z' | '_' => {}
        _ => {
            return match SYMBOLS.into_iter().find(|(spelled, _)| rest.starts_with(spelled)) {
                Some((spelled, meant)) => Ok((Token::Symbol(meant), spelled.len())),
                None => Err(match first {
                    '=' => "`=` compares nothing: write `==`".to_owned(),
                    '&' | '|' => format!("write `{first}{first}`"),
                    other => format!("unexpected character `{other}`"),
                }),
            };
        }
    }
    let length = word_length(rest, |c| c.is_ascii_alphanumeric());
    let word = &rest[..length];
    match rest[length..].starts_with(['"', '\'']) {
        true if matches!(word, "r" | "R") => {
            string(&rest[1..], true).map(|(token, length)| (token, length + 1))
        }
        true => Err(format!("`{}` cannot stand before a quote", excerpt(word))),
        false => Ok((Token::Word(word), length)),
    }
}

fn reference<'a>(rest: &'a str, refs: &mut Vec<Ref>) -> Result<(Token<'a>, usize), String> {
    let length = reference_length(rest);
    let Some(reference) = parse_dollar(&rest[..length]) else {
        return Err("a reference is expected".to_owned());
    };
    let reference = reference?;
    let index = refs.iter().position(|known| *known == reference).unwrap_or_else(|| {
        refs.push(reference);
        refs.len() - 1
    });
    Ok((Token::Ref(index), length))
}

/// How far a reference reaches: over keys and constant indexes, but not over the name of a method.
fn reference_length(text: &str) -> usize {
    let mut at = 1 + word_length(&text[1..], char::is_alphanumeric);
    // Ids of nodes may have hyphens in them; there is nothing one could subtract from a node.
    let mut is_node = &text[..at] == "$node";
    loop {
        let rest = &text[at..];
        let length = match rest.chars().next() {
            Some('.') => {
                let hyphens = is_node;
                match word_length(&rest[1..], |c| c.is_alphanumeric() || (hyphens && c == '-')) {
                    0 => return at,
                    n if rest[1 + n..].trim_start().starts_with('(') => return at,
                    n => 1 + n,
                }
            }
            Some('[') => match constant_index_length(rest) {
                Some(n) => n,
                None => return at,
            },
            Some(_) | None => return at,
        };
        is_node = false;
        at += length;
    }
}

fn word_length(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c: char| c != '_' && !belongs(c)).unwrap_or(text.len())
}

fn constant_index_length(text: &str) -> Option<usize> {
    let inside = &text[1..];
    let inner = match inside.chars().next()? {
        quote @ ('"' | '\'') => {
            let end = inside[1..].find(quote)?;
            // With an escape in it, it is an expression.
            (!inside[1..1 + end].contains('\\')).then_some(end + 2)?
        }
        _ => inside.find(|c: char| !c.is_ascii_digit()).filter(|n| *n > 0)?,
    };
    inside[inner..].starts_with(']').then_some(inner + 2)
}

fn number(rest: &str) -> Result<(Token<'_>, usize), String> {
    let bytes = rest.as_bytes();
    let mut length = 0;
    while let Some(byte) = bytes.get(length) {
        let digit_follows = bytes.get(length + 1).is_some_and(u8::is_ascii_digit);
        let goes_on = match byte {
            b'.' => digit_follows,
            b'-' | b'+' => {
                digit_follows && !rest.starts_with("0x") && matches!(bytes[length - 1], b'e' | b'E')
            }
            other => other.is_ascii_alphanumeric(),
        };
        if !goes_on {
            break;
        }
        length += 1;
    }
    let spelled = &rest[..length];
    let whole = spelled.strip_suffix(['u', 'U']).unwrap_or(spelled);
    let value = match whole.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(Value::from),
        None if whole.bytes().all(|b| b.is_ascii_digit()) => whole.parse::<u64>().ok().map(Value::from),
        None => spelled.parse::<f64>().ok().filter(|f| f.is_finite()).map(Value::from),
    };
    match value {
        Some(value) => Ok((Token::Literal(value), length)),
        None => Err(format!("`{}` is no number", excerpt(spelled))),
    }
}

/// Reads text in quotes: `'…'`, `"…"`, or three of either, in which there may be line breaks.
fn string(rest: &str, raw: bool) -> Result<(Token<'_>, usize), String> {
    let quote = match rest.starts_with("\"\"\"") || rest.starts_with("'''") {
        true => &rest[..3],
        false => &rest[..1],
    };
    let mut text = String::new();
    let mut at = quote.len();
    loop {
        let here = &rest[at..];
        if here.starts_with(quote) {
            return Ok((Token::Literal(Value::String(text)), at + quote.len()));
        }
        match here.chars().next() {
            None => return Err("the text in quotes does not end".to_owned()),
            Some('\n' | '\r') if quote.len() == 1 => {
                return Err("the text in quotes does not end on its line".to_owned());
            }
            Some('\\') if !raw => {
                let (c, length) = escape(&here[1..])?;
                text.push(c);
                at += 1 + length;
            }
            Some(c) => {
                text.push(c);
                at += c.len_utf8();
            }
        }
    }
}

/// The character that `\…` stands for, and the length of the text after the backslash.
fn escape(rest: &str) -> Result<(char, usize), String> {
    let Some(kind) = rest.chars().next() else { return Err("the text in quotes does not end".to_owned()) };
    let coded = |skip: usize, digits: usize, radix: u32| {
        let code = rest.get(skip..skip + digits).filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = code.and_then(|code| u32::from_str_radix(code, radix).ok()).and_then(char::from_u32);
        code.map(|c| (c, skip + digits)).ok_or_else(|| format!("`\\{}` is no character", excerpt(rest)))
    };
    let plain = match kind {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '\\' | '"' | '\'' | '`' | '?' => kind,
        'x' | 'X' => return coded(1, 2, 16),
        'u' => return coded(1, 4, 16),
        'U' => return coded(1, 8, 16),
        '0'..='3' => return coded(0, 3, 8),
        other => return Err(format!("`\\{other}` is no escape: write `\\\\` for a backslash")),
    };
    Ok((plain, 1))
}
