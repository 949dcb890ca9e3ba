//! References and templates: how a definition points at values, for all three forms.
//!
//! Each form has its own small parser (in `definition/`); all of them parse to one `Template`, and a run
//! resolves is one `Ref`. A missing value is null, never an error.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

mod parse;
mod template;

pub(crate) use parse::REFERENCE_ROOTS;
pub use parse::{parse_dollar, parse_path, parse_variable};

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seg {
    Key(String),
    Index(usize),
}

/// The root of a reference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    /// The parameters in force at the node (`$params`).
    Params,
    /// The shared state of the scope (`$shared`, `$var`).
    Shared,
    /// The node's prepared input (`$input`).
    Input,
    /// The result of the call (`$result`); only where a result exists.
    Result,
    /// The output of node `key` (`$node.key.output`, `{{__key}}`); looked up in this scope, then outwards.
    Output(String),
    /// The error message of node `key` (`$node.key.error`).
    Error(String),
    /// The status word of node `key` (`$node.key.status`).
    Status(String),
    /// A bare name, looked up in shared, then params, then input (`signal_key: "flag"`).
    Anywhere,
}

/// A place in a run's data.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ref {
    pub root: Root,
    pub path: Vec<Seg>,
}

/// A value with references in it.
#[derive(Debug, Clone, PartialEq)]
pub enum Template {
    Literal(Value),
    /// Keeps the type of the value it points at.
    Ref(Ref),
    /// Text with references inside; concatenated.
    Text(Vec<Piece>),
    Array(Vec<Template>),
    Object(BTreeMap<String, Template>),
}

/// A part of a text template.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    Text(String),
    Ref(Ref),
}

/// Where references find their values.
pub trait Facts {
    /// The value a root stands for here; `None` is null.
    fn root(&self, root: &Root) -> Option<Cow<'_, Value>>;

    /// One top-level field of a root, for roots that are not kept as one value.
    fn field(&self, root: &Root, key: &str) -> Option<Cow<'_, Value>>;
}

/// As a definition of the dag form spells it.
impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.root {
            Root::Params => f.write_str("$params")?,
            Root::Shared => f.write_str("$var")?,
            Root::Input => f.write_str("$input")?,
            Root::Result => f.write_str("$result")?,
            Root::Output(node) => write!(f, "$node.{node}.output")?,
            Root::Error(node) => write!(f, "$node.{node}.error")?,
            Root::Status(node) => write!(f, "$node.{node}.status")?,
            Root::Anywhere => {}
        }
        let mut is_first = self.root == Root::Anywhere;
        for seg in &self.path {
            match seg {
                Seg::Key(key) if is_first => f.write_str(key)?,
                Seg::Key(key) => write!(f, ".{key}")?,
                Seg::Index(index) => write!(f, "[{index}]")?,
            }
            is_first = false;
        }
        Ok(())
    }
}

impl Ref {
    /// Finds the value; a missing one is null. Borrows from the facts wherever they are kept as values.
    pub fn resolve<'a>(&self, facts: &'a dyn Facts) -> Cow<'a, Value> {
        match &self.root {
            Root::Anywhere => [Root::Shared, Root::Params, Root::Input]
                .iter()
                .filter_map(|root| find(facts, root, &self.path))
                .find(|value| !value.is_null()),
            Root::Output(_) => find(facts, &self.root, &self.path)
                .filter(|value| !value.is_null())
                .or_else(|| find_media(facts, &self.root, &self.path)),
            Root::Params | Root::Shared | Root::Input | Root::Result | Root::Error(_) | Root::Status(_) => {
                find(facts, &self.root, &self.path)
            }
        }
        .unwrap_or(Cow::Owned(Value::Null))
    }

    /// The node whose output, error or status is read, if it is one.
    pub fn node(&self) -> Option<&str> {
        match &self.root {
            Root::Output(key) | Root::Error(key) | Root::Status(key) => Some(key),
            Root::Params | Root::Shared | Root::Input | Root::Result | Root::Anywhere => None,
        }
    }
}

fn find<'a>(facts: &'a dyn Facts, root: &Root, path: &[Seg]) -> Option<Cow<'a, Value>> {
    match path.split_first() {
        Some((Seg::Key(key), rest)) => descend(facts.field(root, key)?, rest),
        Some((Seg::Index(_), _)) | None => descend(facts.root(root)?, path),
    }
}

/// Follows a path into a value, as far as `None` where it leads nowhere.
pub fn descend<'a>(value: Cow<'a, Value>, path: &[Seg]) -> Option<Cow<'a, Value>> {
    match value {
        Cow::Borrowed(value) => path.iter().try_fold(value, step).map(Cow::Borrowed),
        Cow::Owned(mut value) => {
            for seg in path {
                value = step_mut(&mut value, seg)?.take();
            }
            Some(Cow::Owned(value))
        }
    }
}

/// Follows a path into a value; `None` where it leads nowhere.
pub fn dig<'a>(value: &'a Value, path: &[Seg]) -> Option<&'a Value> {
    path.iter().try_fold(value, step)
}

fn step<'a>(value: &'a Value, seg: &Seg) -> Option<&'a Value> {
    match (value, seg) {
        (Value::Object(map), Seg::Key(key)) => map.get(key),
        (Value::Array(items), Seg::Index(index)) => items.get(*index),
        // `urls.0` is a common way to write `urls[0]`.
        (Value::Array(items), Seg::Key(key)) => items.get(key.parse::<usize>().ok()?),
        _ => None,
    }
}

fn step_mut<'a>(value: &'a mut Value, seg: &Seg) -> Option<&'a mut Value> {
    match (value, seg) {
        (Value::Object(map), Seg::Key(key)) => map.get_mut(key),
        (Value::Array(items), Seg::Index(index)) => items.get_mut(*index),
        (Value::Array(items), Seg::Key(key)) => items.get_mut(key.parse::<usize>().ok()?),
        _ => None,
    }
}

/// Media results come as `urls` or as `resources` with a `url` each; either may be read as the other.
fn find_media<'a>(facts: &'a dyn Facts, root: &Root, path: &[Seg]) -> Option<Cow<'a, Value>> {
    let (Seg::Key(key), rest) = path.split_first()? else { return None };
    let real = |key| facts.field(root, key).filter(|value| !value.is_null());
    let other = match key.as_str() {
        "urls" => "resources",
        "resources" => "urls",
        _ => return None,
    };
    if real(key).is_some() {
        return None;
    }
    let items = real(other)?;
    let items = items.as_array()?;
    let converted = match other {
        "resources" => items.iter().map(|item| item.get("url").cloned().unwrap_or_default()).collect(),
        _ => items.iter().map(|url| serde_json::json!({ "url": url })).collect(),
    };
    descend(Cow::Owned(Value::Array(converted)), rest)
}

/// Facts for tests: an object with a field per root, nodes under `node`.
#[cfg(test)]
pub(crate) mod fixture {
    use super::*;

    pub(crate) struct TestFacts(pub(crate) Value);

    impl TestFacts {
        fn at(&self, root: &Root) -> Option<&Value> {
            match root {
                Root::Params => self.0.get("params"),
                Root::Shared => self.0.get("shared"),
                Root::Input => self.0.get("input"),
                Root::Result => self.0.get("result"),
                Root::Output(key) => self.0.get("node")?.get(key)?.get("output"),
                Root::Error(key) => self.0.get("node")?.get(key)?.get("error"),
                Root::Status(key) => self.0.get("node")?.get(key)?.get("status"),
                Root::Anywhere => None,
            }
        }
    }

    impl Facts for TestFacts {
        fn root(&self, root: &Root) -> Option<Cow<'_, Value>> {
            self.at(root).map(Cow::Borrowed)
        }

        fn field(&self, root: &Root, key: &str) -> Option<Cow<'_, Value>> {
            self.at(root)?.get(key).map(Cow::Borrowed)
        }
    }

    /// Facts that are made when they are asked for.
    pub(crate) struct Made(pub(crate) TestFacts);

    impl Facts for Made {
        fn root(&self, root: &Root) -> Option<Cow<'_, Value>> {
            self.0.root(root).map(|value| Cow::Owned(value.into_owned()))
        }

        fn field(&self, root: &Root, key: &str) -> Option<Cow<'_, Value>> {
            self.0.field(root, key).map(|value| Cow::Owned(value.into_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::{Made, TestFacts};
    use super::*;
    use serde_json::json;

    fn world() -> TestFacts {
        TestFacts(json!({
            "params": {"a": {"b": [10, {"c": "deep"}]}, "both": "params", "flag": true},
            "shared": {"x": 1, "both": "shared", "flag": null},
            "input": [1, 2, 3],
            "node": {
                "media": {"output": {"urls": ["u0", "u1"]}},
                "files": {"output": {"resources": [{"type": "image", "url": "r0"}, {"type": "video"}]}},
                "both": {"output": {"urls": ["u0"], "resources": [{"url": "r0"}]}},
                "list": {"output": ["first"], "error": "broken", "status": "failed"},
            },
        }))
    }

    #[track_caller]
    fn check(text: &str, expected: Value) {
        let reference = parse_dollar(text).unwrap().unwrap();
        assert_eq!(*reference.resolve(&world()), expected, "{text}");
        assert_eq!(*reference.resolve(&Made(world())), expected, "{text} from facts that are made");
    }

    #[test]
    fn references_find_their_values() {
        check("$params.a.b[1].c", json!("deep"));
        check("$params[\"a\"].b.0", json!(10));
        check("$shared.x", json!(1));
        check("$var.x", json!(1));
        check("$input", json!([1, 2, 3]));
        check("$input[2]", json!(3));
        check("$node.list.output[0]", json!("first"));
        check("$node.list.error", json!("broken"));
        check("$node.list.status", json!("failed"));
    }

    #[test]
    fn missing_values_are_null() {
        for text in
            ["$params.no", "$params.a.b[9]", "$params.a.b.c.d", "$input.x", "$result", "$node.no.output.x"]
        {
            check(text, Value::Null);
        }
    }

    #[test]
    fn media_can_be_read_either_way() {
        check("$node.media.output.resources[1].url", json!("u1"));
        check("$node.media.output.resources", json!([{"url": "u0"}, {"url": "u1"}]));
        check("$node.files.output.urls[0]", json!("r0"));
        check("$node.files.output.urls", json!(["r0", null]));
        check("$node.files.output.urls[7]", Value::Null);
    }

    #[test]
    fn a_real_field_wins_over_a_virtual_one() {
        check("$node.both.output.urls[0]", json!("u0"));
        check("$node.both.output.resources[0].url", json!("r0"));
        check("$node.files.output.resources[1].url", Value::Null);
        check("$shared.urls", Value::Null);
    }

    #[test]
    fn a_bare_name_is_looked_up_everywhere() {
        let find = |name: &str| {
            let reference = Ref { root: Root::Anywhere, path: parse_path(name).unwrap() };
            reference.resolve(&world()).into_owned()
        };
        assert_eq!(find("both"), json!("shared"));
        assert_eq!(find("flag"), json!(true), "null in shared is as good as missing");
        assert_eq!(find("a.b[0]"), json!(10));
        assert_eq!(find("nowhere"), Value::Null);
    }

    #[test]
    fn large_values_are_not_copied() {
        let world = world();
        let reference = parse_dollar("$params.a.b").unwrap().unwrap();
        assert!(matches!(reference.resolve(&world), Cow::Borrowed(_)));
    }
}
