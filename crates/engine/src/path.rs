//! Where a node is: the keys from the root down, joined by `/`. Branches of a fan and turns of a loop add their
//! index: `sf/b`, `fe/3`, `loop/2/3-1`. The empty path is the root scope.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodePath(Arc<str>);

impl NodePath {
    /// The root scope.
    pub fn root() -> Self {
        Self(Arc::from(""))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The place `segment` inside this one.
    #[must_use]
    pub fn child(&self, segment: &str) -> Self {
        if self.is_root() {
            Self(Arc::from(segment))
        } else {
            Self(Arc::from(format!("{}/{segment}", self.0)))
        }
    }

    /// The branch or turn `index` of this node.
    #[must_use]
    pub fn at(&self, index: usize) -> Self {
        self.child(&index.to_string())
    }

    /// The enclosing place and the last segment; `None` for the root.
    pub fn split_last(&self) -> Option<(NodePath, &str)> {
        if self.is_root() {
            return None;
        }
        match self.0.rfind('/') {
            Some(at) => Some((Self(Arc::from(&self.0[..at])), &self.0[at + 1..])),
            None => Some((Self::root(), &self.0)),
        }
    }

    /// The keys from the root down. A slash too many is an empty key, which no node has: were it left out, one node
    /// would have many paths, and a value stored under one of them would not be found under another.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        let text = (!self.is_root()).then_some(&*self.0);
        text.into_iter().flat_map(|text| text.split('/'))
    }

    /// Whether `other` is this place or inside it.
    pub fn holds(&self, other: &NodePath) -> bool {
        self.is_root()
            || other.0.strip_prefix(&*self.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl From<&str> for NodePath {
    fn from(text: &str) -> Self {
        Self(Arc::from(text))
    }
}

impl fmt::Display for NodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_nest_and_split() {
        let path = NodePath::root().child("loop").at(2).child("3-1");
        assert_eq!(path.as_str(), "loop/2/3-1");
        assert_eq!(path.split_last(), Some((NodePath::from("loop/2"), "3-1")));
        assert_eq!(NodePath::from("a").split_last(), Some((NodePath::root(), "a")));
        assert_eq!(NodePath::root().split_last(), None);
        assert_eq!(path.segments().collect::<Vec<_>>(), ["loop", "2", "3-1"]);
    }

    #[test]
    fn a_slash_too_many_is_another_path() {
        assert_eq!(NodePath::root().segments().count(), 0);
        for text in ["/w", "w/", "/w/"] {
            assert!(NodePath::from(text).segments().any(str::is_empty), "{text}");
        }
        assert_eq!(NodePath::from("fe//3").segments().collect::<Vec<_>>(), ["fe", "", "3"]);
    }

    #[test]
    fn a_place_holds_itself_and_what_is_inside() {
        let fan = NodePath::from("fe");
        assert!(fan.holds(&fan));
        assert!(fan.holds(&NodePath::from("fe/3")));
        assert!(!fan.holds(&NodePath::from("fetch")));
        assert!(NodePath::root().holds(&fan));
    }
}
