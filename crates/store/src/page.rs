//! Lists come in pages, and a page ends with a cursor that only the store can read.

use std::fmt::Display;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use windlass_engine::time::Timestamp;

use crate::error::Refusal;

/// Items of a page unless the query says otherwise.
pub const PAGE_DEFAULT: usize = 50;
/// Items of a page at most: clients read longer lists page by page.
pub const PAGE_MAX: usize = 1_000;

/// Rows that a page examines at most if no index answers the whole query: the page ends there with a cursor.
pub const EXAMINED_MAX: usize = 5_000;

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Where the next page begins; `None` = this was the last one. A page that ends at [`EXAMINED_MAX`] may have no items.
    pub next: Option<Cursor>,
    /// How many there are in all, when the query asked for it.
    pub total: Option<u64>,
}

/// Which part of a list is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    pub order: Order,
    pub cursor: Option<Cursor>,
    /// Items to skip, for surfaces that number their pages. Costs the skipped items.
    pub skip: usize,
    /// 0 = [`PAGE_DEFAULT`]; never more than [`PAGE_MAX`].
    pub limit: usize,
    /// Whether all matches are to be counted.
    pub count: bool,
}

impl Part {
    /// How many items the page may have.
    pub fn size(&self) -> usize {
        if self.limit == 0 { PAGE_DEFAULT } else { self.limit.min(PAGE_MAX) }
    }
}

/// Which part of a list by name is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NameRange {
    #[default]
    All,
    One(String),
    /// The first names after this one.
    After {
        name: Option<String>,
        limit: usize,
    },
}

impl NameRange {
    /// Whether a name lies in the range, its limit aside.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            NameRange::All => true,
            NameRange::One(one) => one == name,
            NameRange::After { name: after, .. } => after.as_deref().is_none_or(|after| name > after),
        }
    }

    /// How many names it has at most.
    pub fn limit(&self) -> usize {
        match self {
            NameRange::All => usize::MAX,
            NameRange::One(_) => 1,
            NameRange::After { limit, .. } => *limit,
        }
    }

    /// Whether it is one name.
    pub fn is_one(&self) -> bool {
        matches!(self, NameRange::One(_))
    }

    /// The one name, or the name before the first one.
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    pub(crate) fn bound_name(&self) -> &str {
        match self {
            NameRange::All | NameRange::After { name: None, .. } => "",
            NameRange::One(name) | NameRange::After { name: Some(name), .. } => name,
        }
    }
}

/// How numbered lines are read: a ledger, or the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineOrder {
    #[default]
    Oldest,
    Newest,
}

/// How a list is ordered; ties by id, in the same direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Newest creation first.
    #[default]
    Newest,
    /// Oldest creation first.
    Oldest,
    /// Latest change first. A row that changes while a client pages through moves to the front and is not seen again.
    LatestChange,
}

impl Order {
    fn letter(self) -> char {
        match self {
            Order::Newest => 'n',
            Order::Oldest => 'o',
            Order::LatestChange => 'c',
        }
    }

    /// Whether later moments come first.
    pub fn is_descending(self) -> bool {
        match self {
            Order::Newest | Order::LatestChange => true,
            Order::Oldest => false,
        }
    }
}

/// Where a page begins. Opaque: it may be kept and sent back, and means nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(String);

impl Cursor {
    /// Takes a cursor that a client sent back; it is checked when it is used.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text for the client.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The place just after this item.
    pub fn after(order: Order, at: Timestamp, id: impl Display) -> Self {
        Self(format!("{}{}.{id}", order.letter(), at.0))
    }

    /// The item that the cursor stands just after.
    pub fn read<I: FromStr>(&self, order: Order) -> Result<(Timestamp, I), Refusal> {
        let read = || {
            let (at, id) = self.0.strip_prefix(order.letter())?.split_once('.')?;
            Some((Timestamp(at.parse().ok()?), id.parse().ok()?))
        };
        read().ok_or(Refusal::BadCursor)
    }
}

/// Cuts one page out of everything that matches. For stores that have it all at hand.
pub(crate) fn cut<T, I: FromStr + Display + Ord + Copy>(
    part: &Part,
    matches: Vec<T>,
    key: impl Fn(&T) -> (Timestamp, I),
) -> Result<Page<T>, Refusal> {
    let total = part.count.then_some(matches.len() as u64);
    let from = part.cursor.as_ref().map(|cursor| cursor.read::<I>(part.order)).transpose()?;
    let descending = part.order.is_descending();
    let mut keyed: Vec<((Timestamp, I), T)> = matches.into_iter().map(|item| (key(&item), item)).collect();
    keyed.retain(|(key, _)| from.is_none_or(|from| if descending { *key < from } else { *key > from }));
    keyed.sort_by_key(|(key, _)| *key);
    if descending {
        keyed.reverse();
    }
    let n_after = keyed.len().saturating_sub(part.skip);
    let taken: Vec<_> = keyed.into_iter().skip(part.skip).take(part.size()).collect();
    let next = taken
        .last()
        .filter(|_| n_after > taken.len())
        .map(|((at, id), _)| Cursor::after(part.order, *at, id));
    Ok(Page { items: taken.into_iter().map(|(_, item)| item).collect(), next, total })
}

#[cfg(test)]
mod tests {
    use windlass_engine::id::RunId;

    use super::*;

    #[test]
    fn a_cursor_reads_back_only_in_its_own_order() {
        let id: RunId = format!("run_{:032x}", 9).parse().unwrap();
        let cursor = Cursor::after(Order::Newest, Timestamp(-5), id);
        assert_eq!(cursor.read(Order::Newest), Ok((Timestamp(-5), id)));
        assert_eq!(cursor.read::<RunId>(Order::Oldest), Err(Refusal::BadCursor));
    }

    #[test]
    fn malformed_cursors_are_refused() {
        for text in ["", "n", "n5", "n5.", "nx.run_1", "n99999999999999999999.run_1", "é"] {
            let read = Cursor::from_text(text).read::<RunId>(Order::Newest);
            assert_eq!(read, Err(Refusal::BadCursor), "{text}");
        }
    }
}
