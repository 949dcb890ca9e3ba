//! Values as far as they can be told before a run has come to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::plan::Prep;
use crate::reference::{Facts, Piece, Ref, Root, Seg, Template, dig};
use crate::run::facts::View;
use crate::text::plain;

/// A value as far as it can be told. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Told {
    Known(Arc<Value>),
    /// An object; `open` = it may have fields that are not named here.
    Fields {
        named: Arc<BTreeMap<String, Told>>,
        open: bool,
    },
    /// An array, some of whose items cannot be told.
    Items(Arc<Vec<Told>>),
    Unknown,
}

/// Where references find what can be told.
pub(super) trait Sight {
    fn read(&self, reference: &Ref) -> Told;
}

impl Told {
    pub(super) fn null() -> Told {
        Told::known(Value::Null)
    }

    pub(super) fn known(value: Value) -> Told {
        Told::Known(Arc::new(value))
    }

    pub(super) fn fields(named: impl IntoIterator<Item = (String, Told)>, open: bool) -> Told {
        Told::Fields { named: Arc::new(named.into_iter().collect()), open }
    }

    /// The literal fields of a definition.
    pub(super) fn literal(fields: &Map<String, Value>) -> Told {
        Told::fields(fields.iter().map(|(key, value)| (key.clone(), Told::known(value.clone()))), false)
    }

    /// What a template stands for.
    pub(super) fn of(template: &Template, sight: &dyn Sight) -> Told {
        match template {
            Template::Literal(value) => Told::known(value.clone()),
            Template::Ref(reference) => sight.read(reference),
            Template::Text(pieces) => text(pieces, sight),
            Template::Array(items) => {
                let items: Vec<Told> = items.iter().map(|item| Told::of(item, sight)).collect();
                let known: Option<Vec<Value>> = items.iter().map(|item| item.value().cloned()).collect();
                known.map_or_else(|| Told::Items(Arc::new(items)), |known| Told::known(Value::Array(known)))
            }
            Template::Object(fields) => {
                Told::fields(fields.iter().map(|(key, field)| (key.clone(), Told::of(field, sight))), false)
            }
        }
    }

    /// What goes into a node or a branch that asks for this.
    pub(super) fn prepared(prep: &Prep, scope: &Told, sight: &dyn Sight) -> Told {
        match prep {
            Prep::Scope => scope.clone(),
            Prep::Key(reference) => sight.read(reference),
            Prep::Map(map) => Told::fields(
                map.iter().map(|(key, template)| (key.clone(), Told::of(template, sight))),
                false,
            ),
            Prep::Params(template) => Told::of(template, sight),
        }
    }

    /// The value, if it can be told and is one.
    pub(super) fn value(&self) -> Option<&Value> {
        match self {
            Told::Known(value) => Some(value),
            Told::Fields { .. } | Told::Items(_) | Told::Unknown => None,
        }
    }

    /// How many items it has, if it is known to be an array.
    pub(super) fn n_items(&self) -> Option<usize> {
        match self {
            Told::Known(value) => value.as_array().map(Vec::len),
            Told::Items(items) => Some(items.len()),
            Told::Fields { .. } | Told::Unknown => None,
        }
    }

    /// What stands at the end of a path; what is known to lead nowhere is null.
    pub(super) fn at(&self, path: &[Seg]) -> Told {
        let Some((first, rest)) = path.split_first() else { return self.clone() };
        let index = || match first {
            Seg::Index(at) => Some(*at),
            Seg::Key(key) => key.parse().ok(),
        };
        match self {
            Told::Known(value) => Told::known(dig(value, path).cloned().unwrap_or_default()),
            Told::Unknown => Told::Unknown,
            Told::Items(items) => {
                index().and_then(|at| items.get(at)).map_or_else(Told::null, |item| item.at(rest))
            }
            Told::Fields { named, open } => match first {
                Seg::Key(key) => match named.get(key) {
                    Some(field) => field.at(rest),
                    None if *open => Told::Unknown,
                    None => Told::null(),
                },
                Seg::Index(_) => Told::null(),
            },
        }
    }

    /// Its fields, and whether there may be more; of what is no object, none.
    pub(super) fn split(&self) -> (BTreeMap<String, Told>, bool) {
        match self {
            Told::Known(value) => match &**value {
                Value::Object(fields) => {
                    let fields = fields.iter().map(|(key, value)| (key.clone(), Told::known(value.clone())));
                    (fields.collect(), false)
                }
                _ => (BTreeMap::new(), false),
            },
            Told::Fields { named, open } => ((**named).clone(), *open),
            Told::Items(_) => (BTreeMap::new(), false),
            Told::Unknown => (BTreeMap::new(), true),
        }
    }

    /// These fields over those of `weak`. Where these may have more than are named, nothing can be told of those.
    pub(super) fn over(&self, weak: &Told) -> Told {
        let (strong, is_open) = self.split();
        if is_open {
            return Told::fields(strong, true);
        }
        let (mut all, open) = weak.split();
        all.extend(strong);
        Told::fields(all, open)
    }
}

fn text(pieces: &[Piece], sight: &dyn Sight) -> Told {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(part) => text.push_str(part),
            Piece::Ref(reference) => match sight.read(reference).value() {
                Some(value) => text.push_str(&plain(value)),
                None => return Told::Unknown,
            },
        }
    }
    Told::known(Value::String(text))
}

/// A run that was made sees what it came to: what is not there yet may still come.
impl Sight for View<'_> {
    fn read(&self, reference: &Ref) -> Told {
        let Ref { root, path } = reference;
        let has_field = |root| match path.first() {
            Some(Seg::Key(key)) => self.field(root, key).is_some_and(|value| !value.is_null()),
            Some(Seg::Index(_)) | None => false,
        };
        let is_there = match root {
            Root::Params | Root::Input => true,
            Root::Shared | Root::Anywhere => has_field(root),
            Root::Output(_) => self.root(root).is_some(),
            Root::Result | Root::Error(_) | Root::Status(_) => false,
        };
        if is_there { Told::known(reference.resolve(self).into_owned()) } else { Told::Unknown }
    }
}
