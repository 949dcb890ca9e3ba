//! Parsers of references. All are linear in the text and recurse nowhere.

use super::{Ref, Root, Seg};
use crate::problem::did_you_mean;
use crate::text::excerpt;

/// The names that may follow a `$`.
pub(crate) const REFERENCE_ROOTS: [&str; 6] = ["params", "shared", "input", "var", "result", "node"];
/// Readable parts of a node.
const NODE_PARTS: [&str; 3] = ["output", "error", "status"];

/// Reads a path: keys with dots between them, `[n]` for places in arrays, `["any key"]` for keys with other
/// characters in them.
pub fn parse_path(text: &str) -> Result<Vec<Seg>, String> {
    if text.is_empty() {
        return Err("the path is empty".to_owned());
    }
    let mut rest = Path { text, at: 0 };
    let mut path = Vec::new();
    if !text.starts_with('[') {
        path.push(Seg::Key(rest.key()?.to_owned()));
    }
    rest.segments(&mut path)?;
    Ok(path)
}

/// Reads a reference of the graph and dag forms; `None` if the text does not start with `$`.
pub fn parse_dollar(text: &str) -> Option<Result<Ref, String>> {
    let rest = text.strip_prefix('$')?;
    Some(match known_root(text) {
        Some(root) => from_root(text, root),
        None => {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let hint = did_you_mean(&rest[..end], REFERENCE_ROOTS)
                .map(|hint| format!("; {hint}"))
                .unwrap_or_default();
            Err(format!(
                "`{}` starts with no known root{hint} (known: $params, $shared, $input, $var, $result, $node)",
                excerpt(text)
            ))
        }
    })
}

/// Reads the text between `{{` and `}}` in the steps form: `__id.path` or a `$` reference.
pub fn parse_variable(text: &str) -> Result<Ref, String> {
    if let Some(reference) = parse_dollar(text) {
        return reference;
    }
    let Some(step) = text.strip_prefix("__") else {
        let shown = excerpt(text);
        return Err(format!(
            "`{shown}` is no variable: write `{{{{__step_id.field}}}}` or `{{{{$var.name}}}}`, \
             or `{{{{{{{shown}}}}}}}` for the text itself"
        ));
    };
    let mut rest = Path { text: step, at: 0 };
    let id = if step.starts_with('[') { rest.quoted()? } else { rest.key()?.to_owned() };
    let mut path = Vec::new();
    rest.segments(&mut path)?;
    refuse_blanks(step)?;
    Ok(Ref { root: Root::Output(id), path })
}

/// The root a `$` text starts with, if it is one of ours and ends there.
pub(super) fn known_root(text: &str) -> Option<&'static str> {
    let rest = text.strip_prefix('$')?;
    REFERENCE_ROOTS.into_iter().find(|root| {
        rest.strip_prefix(root).is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']))
    })
}

fn from_root(text: &str, root: &str) -> Result<Ref, String> {
    refuse_blanks(text)?;
    let mut rest = Path { text, at: 1 + root.len() };
    let root = match root {
        "params" => Root::Params,
        "shared" | "var" => Root::Shared,
        "input" => Root::Input,
        "result" => Root::Result,
        _ => return node(&mut rest),
    };
    let mut path = Vec::new();
    rest.segments(&mut path)?;
    Ok(Ref { root, path })
}

fn node(rest: &mut Path<'_>) -> Result<Ref, String> {
    let mut path = Vec::new();
    rest.segments(&mut path)?;
    let mut segments = path.into_iter();
    let id = match segments.next() {
        Some(Seg::Key(id)) => id,
        Some(Seg::Index(index)) => index.to_string(),
        None => return Err("`$node` needs a node: write `$node.<id>.output`".to_owned()),
    };
    let part = match segments.next() {
        Some(Seg::Key(part)) => part,
        Some(Seg::Index(_)) | None => {
            return Err(format!(
                "`{}` needs a part: write `$node.{id}.output`, `.error` or `.status`",
                excerpt(rest.text)
            ));
        }
    };
    let path: Vec<Seg> = segments.collect();
    let root = match part.as_str() {
        "output" => return Ok(Ref { root: Root::Output(id), path }),
        "error" => Root::Error(id),
        "status" => Root::Status(id),
        other => {
            let hint = did_you_mean(other, NODE_PARTS).map(|hint| format!("; {hint}")).unwrap_or_default();
            return Err(format!(
                "a node has no `{}`{hint} (known: output, error, status; fields of its result are under output)",
                excerpt(other)
            ));
        }
    };
    match path.is_empty() {
        true => Ok(Ref { root, path }),
        false => Err(format!("`{}` goes too far: the {part} of a node is text", excerpt(rest.text))),
    }
}

/// Blanks outside quotes mean that the text is a sentence, not a reference.
fn refuse_blanks(text: &str) -> Result<(), String> {
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if open == c => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c.is_whitespace() => {
                return Err(format!(
                    "`{}` has a blank in it: a reference stands alone, and a key with blanks is written [\"so\"]",
                    excerpt(text)
                ));
            }
            None => {}
        }
    }
    Ok(())
}

/// A path that is being read.
struct Path<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Path<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn segments(&mut self, path: &mut Vec<Seg>) -> Result<(), String> {
        while let Some(first) = self.rest().chars().next() {
            match first {
                '.' => {
                    self.at += 1;
                    path.push(Seg::Key(self.key()?.to_owned()));
                }
                '[' => path.push(self.bracket()?),
                _ => return Err(self.fault("`.` or `[` is expected")),
            }
        }
        Ok(())
    }

    fn key(&mut self) -> Result<&'a str, String> {
        let rest = self.rest();
        let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.fault("a key is missing"));
        }
        self.at += end;
        Ok(&rest[..end])
    }

    fn bracket(&mut self) -> Result<Seg, String> {
        let inside = &self.rest()[1..];
        if inside.starts_with(['"', '\'']) {
            return self.quoted().map(Seg::Key);
        }
        let Some(end) = inside.find(']') else { return Err(self.fault("a `]` is missing")) };
        let digits = &inside[..end];
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        match digits.parse() {
            Ok(index) if is_number => {
                self.at += end + 2;
                Ok(Seg::Index(index))
            }
            Ok(_) | Err(_) => Err(self.fault("a whole number from 0, or a quoted key, is expected in `[…]`")),
        }
    }

    /// `["key"]` with either quote. There are no escapes: a key with both quotes in it cannot be written.
    fn quoted(&mut self) -> Result<String, String> {
        let inside = &self.rest()[1..];
        let Some(quote) = inside.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            return Err(self.fault("a quoted key is expected"));
        };
        let Some(end) = inside[1..].find(quote) else {
            return Err(self.fault("the quoted key does not end"));
        };
        let key = &inside[1..1 + end];
        if !inside[1 + end + 1..].starts_with(']') {
            return Err(self.fault("a `]` is missing"));
        }
        self.at += end + 4;
        Ok(key.to_owned())
    }

    fn fault(&self, reason: &str) -> String {
        let place = self.text[..self.at].chars().count() + 1;
        format!("{reason} at character {place} of `{}`", excerpt(self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(text: &str) -> Seg {
        Seg::Key(text.to_owned())
    }

    #[test]
    fn paths_have_dots_indexes_and_quoted_keys() {
        assert_eq!(parse_path("a.b[0].c"), Ok(vec![key("a"), key("b"), Seg::Index(0), key("c")]));
        assert_eq!(parse_path("[3]"), Ok(vec![Seg::Index(3)]));
        assert_eq!(parse_path(r#"a["x.y [z]"]['"']"#), Ok(vec![key("a"), key("x.y [z]"), key("\"")]));
        assert_eq!(parse_path("größe.名前"), Ok(vec![key("größe"), key("名前")]));
    }

    #[test]
    fn broken_paths_say_where() {
        for (text, place) in [
            ("a..b", "character 3"),
            (".a", "character 1"),
            ("a.", "character 3"),
            ("a[", "character 2"),
            ("a[]", "character 2"),
            ("a[-1]", "character 2"),
            ("a[+1]", "character 2"),
            ("a[1", "character 2"),
            ("a[\"b]", "character 2"),
            ("a[\"b\"", "character 2"),
            ("a]b", "character 2"),
            ("é[0]b", "character 5"),
            ("a[99999999999999999999999]", "character 2"),
        ] {
            let reason = parse_path(text).unwrap_err();
            assert!(reason.contains(place), "{text}: {reason}");
        }
        assert_eq!(parse_path(""), Err("the path is empty".to_owned()));
    }

    #[test]
    fn nodes_may_have_any_id() {
        let output = |id: &str, path| Some(Ok(Ref { root: Root::Output(id.to_owned()), path }));
        assert_eq!(parse_dollar("$node.3-1_b.output"), output("3-1_b", vec![]));
        assert_eq!(
            parse_dollar("$node.视频.output.urls[0]"),
            output("视频", vec![key("urls"), Seg::Index(0)])
        );
        assert_eq!(
            parse_dollar(r#"$node["weird id. [1]"].output.x"#),
            output("weird id. [1]", vec![key("x")])
        );
        assert_eq!(parse_dollar("$node[7].output"), output("7", vec![]));
    }

    #[test]
    fn wrong_references_are_explained() {
        let reason = |text: &str| parse_dollar(text).unwrap().unwrap_err();
        assert!(reason("$prams.x").contains("did you mean `params`?"), "{}", reason("$prams.x"));
        assert!(reason("$5.00").contains("known: $params, $shared, $input, $var, $result, $node"));
        assert!(reason("$node").contains("$node.<id>.output"));
        assert!(reason("$node.a").contains("`$node.a.output`"));
        assert!(reason("$node.a.ouput.x").contains("did you mean `output`?"));
        assert!(reason("$node.a.error.x").contains("goes too far"));
        assert!(reason("$var.x is nice").contains("blank"));
        assert!(reason("$").contains("no known root"));
        assert_eq!(parse_dollar("plain"), None);
    }

    #[test]
    fn steps_are_named_with_two_underscores() {
        let output = |id: &str, path| Ok(Ref { root: Root::Output(id.to_owned()), path });
        assert_eq!(parse_variable("__3-1.new_docid"), output("3-1", vec![key("new_docid")]));
        assert_eq!(parse_variable("__0"), output("0", vec![]));
        assert_eq!(
            parse_variable("__loop.outputs.k[0]"),
            output("loop", vec![key("outputs"), key("k"), Seg::Index(0)])
        );
        assert_eq!(parse_variable("__[\"a b\"].c"), output("a b", vec![key("c")]));
        assert_eq!(parse_variable("$var.x").unwrap().root, Root::Shared);
        assert!(parse_variable("name").unwrap_err().contains("{{{name}}}"));
        assert!(parse_variable("__").is_err());
        assert!(parse_variable("__a b").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in r#"[$_a-z0-9.\[\]"' é-]{0,24}"#) {
            let _ = parse_path(&text);
            let _ = parse_dollar(&format!("$node{text}"));
            let _ = parse_dollar(&format!("${text}"));
            let _ = parse_variable(&text);
            let _ = parse_variable(&format!("__{text}"));
        }

        #[test]
        fn a_written_path_is_read_back(path in prop::collection::vec(
            prop_oneof![r#"[a-z .\[\]é]{1,6}"#.prop_map(Seg::Key), (0..1000usize).prop_map(Seg::Index)], 1..8,
        )) {
            let text: String = path.iter().map(|seg| match seg {
                Seg::Key(key) => format!("[\"{key}\"]"),
                Seg::Index(index) => format!("[{index}]"),
            }).collect();
            prop_assert_eq!(parse_path(&text), Ok(path));
        }
    }
}
