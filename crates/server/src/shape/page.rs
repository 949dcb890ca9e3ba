//! Pages of lists, and the query parameters that select them.

use windlass_sdk::contract::{List, ListOrder, WidePageQuery};
use windlass_store::page::{Cursor, LineOrder as StoredOrder, NameRange, PAGE_DEFAULT, PAGE_MAX, Page, Part};

use crate::problem::{ApiError, ApiResult, Code};

/// How many items a page may have.
pub(crate) fn limit(asked: Option<usize>) -> ApiResult<usize> {
    match asked {
        None => Ok(PAGE_DEFAULT),
        Some(limit @ 1..=PAGE_MAX) => Ok(limit),
        Some(_) => Err(ApiError::field(Code::BadQuery, "?limit", format!("give 1 to {PAGE_MAX}"))),
    }
}

/// The names of a page of a list by name: one more than fits shows whether there is another page.
pub(crate) fn name_range(cursor: Option<String>, limit: usize) -> NameRange {
    NameRange::After { name: cursor, limit: limit + 1 }
}

/// The names of a page of a list that old clients expect to be whole, and the size of the page.
pub(crate) fn wide_range(asked: WidePageQuery) -> ApiResult<(NameRange, usize)> {
    let limit = wide_limit(asked.limit)?;
    Ok((name_range(asked.cursor, limit), limit))
}

/// How many items a page of such a list may have.
pub(crate) fn wide_limit(asked: Option<usize>) -> ApiResult<usize> {
    limit(Some(asked.unwrap_or(PAGE_MAX)))
}

/// Cuts a page out of the items of [`name_range`]; the cursor is the last name on the page.
pub(crate) fn named_page<R>(
    mut items: Vec<R>,
    limit: usize,
    name: impl Fn(&R) -> &String,
) -> (Vec<R>, Option<String>) {
    let has_more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| has_more).map(|last| name(last).clone());
    (items, next)
}

/// In which order lines are read, in the words of the store.
pub(crate) fn order(asked: Option<ListOrder>) -> StoredOrder {
    match asked.unwrap_or_default() {
        ListOrder::Newest => StoredOrder::Newest,
        ListOrder::Oldest => StoredOrder::Oldest,
    }
}

/// The part of a list of the store.
pub(crate) fn part(cursor: Option<String>, asked: Option<usize>) -> ApiResult<Part> {
    Ok(Part { cursor: cursor.map(Cursor::from_text), limit: limit(asked)?, ..Part::default() })
}

/// A page of the store in its own words.
pub(crate) fn list<R, T>(page: Page<R>, shape: impl FnMut(R) -> T) -> List<T> {
    let next = page.next.map(|next| next.as_str().to_owned());
    List { items: page.items.into_iter().map(shape).collect(), next }
}

/// A page of an append-only list: the cursor counts the items before it.
pub(crate) fn slice<R, T>(
    all: &[R],
    cursor: Option<&str>,
    asked: Option<usize>,
    shape: impl FnMut(&R) -> T,
) -> ApiResult<List<T>> {
    let from = counted(cursor)?;
    let rest = usize::try_from(from).ok().and_then(|from| all.get(from..)).unwrap_or_default();
    let items = &rest[..rest.len().min(limit(asked)?)];
    let next = (items.len() < rest.len()).then(|| (from + items.len() as u64).to_string());
    Ok(List { items: items.iter().map(shape).collect(), next })
}

/// How many items were seen before this page.
pub(crate) fn counted(cursor: Option<&str>) -> ApiResult<u64> {
    let read = cursor.map_or(Ok(0), str::parse);
    read.map_err(|_| {
        ApiError::new(Code::BadCursor, "the cursor is not one of this list: ask again without it")
    })
}

/// `key` or `key=value`.
pub(crate) fn label(text: Option<String>) -> Option<(String, Option<String>)> {
    text.map(|text| match text.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (text, None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_growing_list_join_without_gaps() {
        let all: Vec<u32> = (0..7).collect();
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let page = slice(&all, cursor.as_deref(), Some(3), |n| *n).unwrap();
            seen.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, all);
        assert!(slice(&all, Some("99"), None, |n| *n).unwrap().items.is_empty());
        assert!(slice(&all, Some("18446744073709551615"), None, |n| *n).unwrap().items.is_empty());
        assert_eq!(slice(&all, Some("x"), None, |n| *n).unwrap_err().code(), Code::BadCursor);
    }

    #[test]
    fn a_page_of_nothing_or_of_too_much_is_refused() {
        assert_eq!(limit(Some(0)).unwrap_err().code(), Code::BadQuery);
        assert_eq!(limit(Some(PAGE_MAX + 1)).unwrap_err().code(), Code::BadQuery);
        assert_eq!(limit(None).unwrap(), PAGE_DEFAULT);
    }

    #[test]
    fn a_label_has_a_value_or_none() {
        assert_eq!(label(Some("a=b=c".to_owned())), Some(("a".to_owned(), Some("b=c".to_owned()))));
        assert_eq!(label(Some("a".to_owned())), Some(("a".to_owned(), None)));
        assert_eq!(label(None), None);
    }
}
