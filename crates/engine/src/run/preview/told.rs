//! Values as far as they can be told before a run has come to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::room::Room;
use crate::limits::{SHARED_BYTES, VALUE_DEPTH};
use crate::plan::Prep;
use crate::reference::{Facts, Piece, Ref, Root, Seg, Template, dig};
use crate::run::facts::View;
use crate::text::plain;

static NULL: Value = Value::Null;

/// A value as far as it can be told. Cheap to clone, and to put together: parts are shared, as flows that hand on what
/// they were given twice would otherwise have twice as much at every depth. For the same reason nothing may walk
/// through all of it.
#[derive(Clone)]
pub(super) enum Told {
    Known(Part),
    /// An object; `open` = it may have fields that are not named here.
    Fields {
        named: Arc<BTreeMap<String, Told>>,
        open: bool,
        levels: usize,
    },
    /// An array that was put together.
    Items {
        items: Arc<Vec<Told>>,
        levels: usize,
    },
    Unknown,
}

/// What stands at a path of a value. It is never copied out of it.
#[derive(Clone)]
pub(super) struct Part {
    whole: Arc<Value>,
    path: Arc<[Seg]>,
}

impl Part {
    fn get(&self) -> &Value {
        dig(&self.whole, &self.path).unwrap_or(&NULL)
    }

    fn at(&self, path: &[Seg]) -> Part {
        Part { whole: self.whole.clone(), path: self.path.iter().chain(path).cloned().collect() }
    }
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
        Told::shared(Arc::new(value))
    }

    pub(super) fn shared(whole: Arc<Value>) -> Told {
        Told::Known(Part { whole, path: Arc::default() })
    }

    pub(super) fn fields(named: impl IntoIterator<Item = (String, Told)>, open: bool) -> Told {
        let named: BTreeMap<String, Told> = named.into_iter().collect();
        match levels_over(named.values()) {
            Some(levels) => Told::Fields { named: Arc::new(named), open, levels },
            None => Told::Unknown,
        }
    }

    fn items(items: Vec<Told>) -> Told {
        match levels_over(items.iter()) {
            Some(levels) => Told::Items { items: Arc::new(items), levels },
            None => Told::Unknown,
        }
    }

    /// A literal of a definition, if there is room for a copy.
    pub(super) fn literal(value: &Value, room: &Room) -> Told {
        if room.holds(value) { Told::known(value.clone()) } else { Told::Unknown }
    }

    /// The literal fields of a definition.
    pub(super) fn literals(fields: &Map<String, Value>, room: &Room) -> Told {
        Told::fields(fields.iter().map(|(key, value)| (key.clone(), Told::literal(value, room))), false)
    }

    /// What a template stands for.
    pub(super) fn of(template: &Template, sight: &dyn Sight, room: &Room) -> Told {
        match template {
            Template::Literal(value) => Told::literal(value, room),
            Template::Ref(reference) => sight.read(reference),
            Template::Text(pieces) => text(pieces, sight, room),
            Template::Array(items) => {
                Told::items(items.iter().map(|item| Told::of(item, sight, room)).collect())
            }
            Template::Object(fields) => all(fields, sight, room),
        }
    }

    /// What goes into a node or a branch that asks for this.
    pub(super) fn prepared(prep: &Prep, scope: &Told, sight: &dyn Sight, room: &Room) -> Told {
        match prep {
            Prep::Scope => scope.clone(),
            Prep::Key(reference) => sight.read(reference),
            Prep::Map(map) => all(map, sight, room),
            Prep::Params(template) => Told::of(template, sight, room),
        }
    }

    /// The value, if it can be told and was not put together from others.
    pub(super) fn value(&self) -> Option<&Value> {
        match self {
            Told::Known(part) => Some(part.get()),
            Told::Fields { .. } | Told::Items { .. } | Told::Unknown => None,
        }
    }

    /// How many items it has, if it is known to be an array.
    pub(super) fn n_items(&self) -> Option<usize> {
        match self {
            Told::Known(part) => part.get().as_array().map(Vec::len),
            Told::Items { items, .. } => Some(items.len()),
            Told::Fields { .. } | Told::Unknown => None,
        }
    }

    /// How many fields are known of it.
    pub(super) fn n_fields(&self) -> usize {
        match self {
            Told::Known(part) => part.get().as_object().map_or(0, Map::len),
            Told::Fields { named, .. } => named.len(),
            Told::Items { .. } | Told::Unknown => 0,
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
            Told::Known(part) => match dig(part.get(), path) {
                Some(_) => Told::Known(part.at(path)),
                None => Told::null(),
            },
            Told::Unknown => Told::Unknown,
            Told::Items { items, .. } => {
                index().and_then(|at| items.get(at)).map_or_else(Told::null, |item| item.at(rest))
            }
            Told::Fields { named, open, .. } => match first {
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
            Told::Known(part) => {
                let field = |key: &String| (key.clone(), Told::Known(part.at(&[Seg::Key(key.clone())])));
                let fields = part.get().as_object().into_iter().flat_map(Map::keys);
                (fields.map(field).collect(), false)
            }
            Told::Fields { named, open, .. } => ((**named).clone(), *open),
            Told::Items { .. } => (BTreeMap::new(), false),
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

/// How many levels something has that holds these; `None` = more than a run would take.
fn levels_over<'t>(parts: impl Iterator<Item = &'t Told>) -> Option<usize> {
    let levels = |told: &Told| match told {
        Told::Fields { levels, .. } | Told::Items { levels, .. } => *levels,
        Told::Known(_) | Told::Unknown => 0,
    };
    let levels = parts.map(levels).max().unwrap_or(0) + 1;
    (levels <= VALUE_DEPTH).then_some(levels)
}

fn all(fields: &BTreeMap<String, Template>, sight: &dyn Sight, room: &Room) -> Told {
    Told::fields(fields.iter().map(|(key, field)| (key.clone(), Told::of(field, sight, room))), false)
}

fn text(pieces: &[Piece], sight: &dyn Sight, room: &Room) -> Told {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(part) => text.push_str(part),
            Piece::Ref(reference) => match sight.read(reference).value() {
                Some(value) => text.push_str(&plain(value)),
                None => return Told::Unknown,
            },
        }
        if text.len() > SHARED_BYTES {
            // It is refused where it would be made; a part of it is no less work.
            room.take(text.len());
            return Told::Unknown;
        }
    }
    if room.take(text.len()) { Told::known(Value::String(text)) } else { Told::Unknown }
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
