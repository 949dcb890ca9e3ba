//! Positions in the text of a definition: line and column of a path such as `$.nodes.a.service`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// Line and column, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourcePosition {
    pub line: u64,
    pub column: u64,
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The positions of all values of a text. Empty if the text cannot be parsed, which the compiler reports.
#[derive(Default)]
pub struct SourceMap(Option<Spanned<SpannedTree>>);

enum SpannedTree {
    Map(Vec<(String, Spanned<SpannedTree>)>),
    List(Vec<Spanned<SpannedTree>>),
    Leaf,
}

impl SourceMap {
    /// Reads a text, JSON or YAML: the one is a part of the other.
    pub fn of(text: &str) -> Self {
        SourceMap(serde_saphyr::from_str(text).ok())
    }

    /// The position of a path, or of the deepest part of it that exists.
    pub fn find(&self, path: &str) -> Option<SourcePosition> {
        if let Some(place) = parse_position(path) {
            return Some(place);
        }
        let mut at = self.0.as_ref()?;
        for step in steps(path) {
            let inner = match &at.value {
                SpannedTree::Map(fields) => {
                    fields.iter().find(|(name, _)| *name == step).map(|(_, inner)| inner)
                }
                SpannedTree::List(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
                SpannedTree::Leaf => None,
            };
            match inner {
                Some(inner) => at = inner,
                None => break,
            }
        }
        let (line, column) = (at.referenced.line(), at.referenced.column());
        (line > 0).then_some(SourcePosition { line, column })
    }
}

/// A path such as `$.nodes[3].service` as a JSON pointer; `None` for a position in a text.
pub fn pointer(path: &str) -> Option<String> {
    if !path.starts_with('$') {
        return None;
    }
    Some(steps(path).map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect())
}

/// The position in a parser error: `line 4 column 2`.
fn parse_position(path: &str) -> Option<SourcePosition> {
    let (line, column) = path.strip_prefix("line ")?.split_once(" column ")?;
    Some(SourcePosition { line: line.parse().ok()?, column: column.parse().ok()? })
}

/// The names and numbers of a path, without dots and brackets.
fn steps(path: &str) -> impl Iterator<Item = &str> {
    let path = path.strip_prefix('$').unwrap_or(path);
    path.split(['.', '[', ']']).filter(|step| !step.is_empty())
}

impl<'de> Deserialize<'de> for SpannedTree {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(SpannedTreeVisitor)
    }
}

struct SpannedTreeVisitor;

impl<'de> Visitor<'de> for SpannedTreeVisitor {
    type Value = SpannedTree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SpannedTree, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(SpannedTree::Map(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<SpannedTree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(SpannedTree::List(items))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<SpannedTree, D::Error> {
        IgnoredAny::deserialize(from).map(|_| SpannedTree::Leaf)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<SpannedTree, D::Error> {
        IgnoredAny::deserialize(from).map(|_| SpannedTree::Leaf)
    }

    fn visit_bool<E>(self, _: bool) -> Result<SpannedTree, E> {
        Ok(SpannedTree::Leaf)
    }

    fn visit_i64<E>(self, _: i64) -> Result<SpannedTree, E> {
        Ok(SpannedTree::Leaf)
    }

    fn visit_u64<E>(self, _: u64) -> Result<SpannedTree, E> {
        Ok(SpannedTree::Leaf)
    }

    fn visit_f64<E>(self, _: f64) -> Result<SpannedTree, E> {
        Ok(SpannedTree::Leaf)
    }

    fn visit_str<E>(self, _: &str) -> Result<SpannedTree, E> {
        Ok(SpannedTree::Leaf)
    }

    fn visit_unit<E>(self) -> Result<SpannedTree, E> {
        Ok(SpannedTree::Leaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, path: &str) -> Option<(u64, u64)> {
        SourceMap::of(text).find(path).map(|place| (place.line, place.column))
    }

    #[test]
    fn places_are_found_in_json_and_in_yaml() {
        let json = "{\n  \"start\": \"a\",\n  \"nodes\": {\"a\": {\"service\": \"x\"}},\n  \"edges\": [{}, {\"to\": \"b\"}]\n}";
        assert_eq!(find(json, "$.nodes.a.service"), Some((3, 30)));
        assert_eq!(find(json, "$.edges[1].to"), Some((4, 24)));
        let yaml = "steps:\n  - id: a\n    operator: upper\n  - id: b\n";
        assert_eq!(find(yaml, "$.steps[1].id"), Some((4, 9)));
    }

    #[test]
    fn a_path_is_a_pointer_too() {
        assert_eq!(pointer("$.nodes[3].a/b").as_deref(), Some("/nodes/3/a~1b"));
        assert_eq!(pointer("$").as_deref(), Some(""));
        assert_eq!(pointer("line 4 column 2"), None);
    }

    #[test]
    fn a_missing_field_has_the_position_of_its_parent() {
        let yaml = "start: a\nnodes:\n  a: {kind: timer}\n";
        assert_eq!(find(yaml, "$.nodes.a.params.delay_ms"), Some((3, 6)));
        assert_eq!(find("{", "$.nodes"), None);
        assert_eq!(find("{", "line 4 column 2"), Some((4, 2)));
    }
}
