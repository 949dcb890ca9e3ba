//! Compression of events: each frequent phrase of the JSON becomes one control character. The engine's JSON has no control
//! characters, so expanding them gives exactly the text that was compressed. The view `entries` does the same in SQL. The
//! list is part of the file format and must not change.

/// The phrases of the control characters from 1 on.
const PHRASES: [&str; 31] = [
    r#"{"e":"entered","node":""#,
    r#"{"e":"granted","node":""#,
    r#"{"e":"done","node":""#,
    r#"{"e":"started","params":"#,
    r#"{"e":"ended","status":"completed""#,
    r#"{"e":"ended","status":""#,
    r#"{"e":"failed","node":""#,
    r#"{"e":"deferred","node":""#,
    r#"{"e":"suspended","node":""#,
    r#"{"e":"waiting","node":""#,
    r#"{"e":"opened","node":""#,
    r#"{"e":"turned","node":""#,
    r#"{"e":"judged","node":""#,
    r#"{"e":"skipped","node":""#,
    r#"{"e":"logged","level":""#,
    r#"{"e":"signaled""#,
    r#","attempt":1,"visit":"#,
    r#","attempt":"#,
    r#","visit":"#,
    r#","deadline":"#,
    r#","input":"#,
    r#","output":"#,
    r#","action":""#,
    r#","worker":""#,
    r#","by":"#,
    r#","until":"#,
    r#","call_timeout_ms":"#,
    r#","fault":{"kind":""#,
    r#","message":""#,
    r#"","fence":"#,
    r#"","visit":"#,
];

/// The common beginning of the first sixteen phrases, and the phrases that begin with a comma or a quote.
const HEAD: &[u8] = br#"{"e":""#;
const HEADS: std::ops::Range<usize> = 0..16;
const COMMAS: std::ops::Range<usize> = 16..29;
const QUOTES: std::ops::Range<usize> = 29..31;

/// Compresses a text without control characters.
pub(super) fn shorten(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut short = Vec::with_capacity(bytes.len());
    let (mut at, mut copied) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        let found = match byte {
            b'{' if bytes[at..].starts_with(HEAD) => phrase_at(&bytes[at..], HEADS, HEAD.len()),
            b',' => phrase_at(&bytes[at..], COMMAS, 2),
            b'"' if bytes.get(at + 1) == Some(&b',') => phrase_at(&bytes[at..], QUOTES, 3),
            _ => None,
        };
        match found {
            Some((code, length)) => {
                short.extend_from_slice(&bytes[copied..at]);
                short.push(code);
                at += length;
                copied = at;
            }
            None => at += 1,
        }
    }
    short.extend_from_slice(&bytes[copied..]);
    String::from_utf8(short).expect("whole ASCII phrases became ASCII characters")
}

/// The phrase at the beginning of the bytes. The byte at `telling` tells most phrases of the range apart.
fn phrase_at(bytes: &[u8], among: std::ops::Range<usize>, telling: usize) -> Option<(u8, usize)> {
    let letter = bytes.get(telling)?;
    let phrases = PHRASES[among.clone()].iter().zip(among);
    let mut phrases = phrases.filter(|(phrase, _)| phrase.as_bytes()[telling] == *letter);
    let (phrase, index) = phrases.find(|(phrase, _)| bytes.starts_with(phrase.as_bytes()))?;
    Some((u8::try_from(index + 1).ok()?, phrase.len()))
}

/// Appends the expanded text to another.
pub(super) fn expand(short: &str, to: &mut String) {
    let mut rest = short;
    while let Some(at) = rest.bytes().position(|byte| (1..=31).contains(&byte)) {
        to.push_str(&rest[..at]);
        to.push_str(PHRASES[usize::from(rest.as_bytes()[at]) - 1]);
        rest = &rest[at + 1..];
    }
    to.push_str(rest);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn back(text: &str) -> String {
        let mut long = String::new();
        expand(&shorten(text), &mut long);
        long
    }

    #[test]
    fn every_phrase_becomes_one_byte() {
        for (phrase, code) in PHRASES.iter().zip(1u8..) {
            assert_eq!(shorten(phrase).as_bytes(), [code], "{phrase}");
            assert_eq!(back(phrase), *phrase);
        }
    }

    #[test]
    fn an_entry_becomes_a_third() {
        let text = concat!(
            r#"[{"e":"done","node":"a","fence":1,"output":"hello","worker":"worker-1"},"#,
            r#"{"e":"entered","node":"b","visit":2,"input":"hello"},"#,
            r#"{"e":"granted","node":"b","fence":2,"attempt":1,"visit":2,"deadline":1790000060001}]"#
        );
        assert!(shorten(text).len() * 5 < text.len() * 2, "{:?}", shorten(text));
        assert_eq!(back(text), text);
    }

    #[test]
    fn phrases_in_what_people_wrote_come_back_as_they_were() {
        let text = serde_json::to_string(&PHRASES.join("\u{1}\t\u{1f}\n")).unwrap();
        assert_eq!(back(&text), text);
        for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            assert_eq!(back(&text[..cut]), text[..cut]);
        }
    }

    proptest! {
        #[test]
        fn any_text_comes_back(words in prop::collection::vec(prop_oneof![
            prop::sample::select(PHRASES.to_vec()).prop_map(str::to_owned),
            prop::sample::select(PHRASES.to_vec()).prop_map(|phrase| phrase[..phrase.len() / 2].to_owned()),
            "[^\u{1}-\u{1f}]{0,6}",
        ], 0..12)) {
            let text = words.concat();
            prop_assert_eq!(back(&text), text);
        }
    }
}
