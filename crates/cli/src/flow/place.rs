//! Finds where in a text a path such as `$.nodes.a.service` points.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// Line and column, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Where everything in a text is. Empty if it cannot be read, which other problems say.
#[derive(Default)]
pub(super) struct Map(Option<Spanned<Tree>>);

enum Tree {
    Map(Vec<(String, Spanned<Tree>)>),
    List(Vec<Spanned<Tree>>),
    Leaf,
}

impl Map {
    /// Reads a text, JSON or YAML: the one is a part of the other.
    pub(super) fn of(text: &str) -> Self {
        Map(serde_saphyr::from_str(text).ok())
    }

    /// Where a path points, or the deepest part of it that is there.
    pub(super) fn find(&self, path: &str) -> Option<Place> {
        if let Some(place) = told(path) {
            return Some(place);
        }
        let mut at = self.0.as_ref()?;
        for step in steps(path) {
            let inner = match &at.value {
                Tree::Map(fields) => fields.iter().find(|(name, _)| *name == step).map(|(_, inner)| inner),
                Tree::List(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
                Tree::Leaf => None,
            };
            match inner {
                Some(inner) => at = inner,
                None => break,
            }
        }
        let (line, column) = (at.referenced.line(), at.referenced.column());
        (line > 0).then_some(Place { line, column })
    }
}

/// What the reader of the text said itself: `line 4 column 2`.
fn told(path: &str) -> Option<Place> {
    let (line, column) = path.strip_prefix("line ")?.split_once(" column ")?;
    Some(Place { line: line.parse().ok()?, column: column.parse().ok()? })
}

/// The names and numbers of a path, without dots and brackets.
fn steps(path: &str) -> impl Iterator<Item = &str> {
    let path = path.strip_prefix('$').unwrap_or(path);
    path.split(['.', '[', ']']).filter(|step| !step.is_empty())
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Planting)
    }
}

struct Planting;

impl<'de> Visitor<'de> for Planting {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Tree::Map(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Tree, D::Error> {
        IgnoredAny::deserialize(from).map(|_| Tree::Leaf)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Tree, D::Error> {
        IgnoredAny::deserialize(from).map(|_| Tree::Leaf)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_str<E>(self, _: &str) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, path: &str) -> Option<(u64, u64)> {
        Map::of(text).find(path).map(|place| (place.line, place.column))
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
    fn what_is_missing_is_placed_where_it_should_be() {
        let yaml = "start: a\nnodes:\n  a: {kind: timer}\n";
        assert_eq!(find(yaml, "$.nodes.a.params.delay_ms"), Some((3, 6)));
        assert_eq!(find("{", "$.nodes"), None);
        assert_eq!(find("{", "line 4 column 2"), Some((4, 2)));
    }
}
