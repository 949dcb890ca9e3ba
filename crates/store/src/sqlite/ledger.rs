//! The ledger of an account, as it is read: its movements are on sheets with those of others.

use rusqlite::{Connection, OptionalExtension};
use windlass_engine::id::RunId;
use windlass_engine::money::{Kind, Movement};
use windlass_engine::time::Timestamp;

use super::filing::{self, Filing, Name};
use super::sheet::{self, Line};
use super::slip::Place;
use crate::account::{LedgerQuery, LedgerRow, Posting};
use crate::error::StoreError;
use crate::page::{LineOrder, Part as Page};

const NUMBER: &str = "SELECT no FROM accounts WHERE id = ?1";

/// The ledger of one account.
pub(super) struct Ledger<'l> {
    db: &'l Connection,
    account: &'l str,
    no: i64,
}

impl<'l> Ledger<'l> {
    /// Of the account with this number.
    pub(super) fn of(db: &'l Connection, account: &'l str, no: i64) -> Self {
        Ledger { db, account, no }
    }

    /// Movements after this one, so many at most.
    pub(super) fn after(&self, after: u64, limit: usize) -> Result<Vec<LedgerRow>, StoreError> {
        let mut rows: Vec<LedgerRow> = Vec::new();
        sheet::each_after(self.db, self.no, after, |no| {
            rows.extend(self.on_sheet(no)?.into_iter().filter(|row| row.seq > after));
            Ok(rows.len() >= limit)
        })?;
        if rows.len() < limit {
            rows.extend(self.on_last_sheets()?.into_iter().filter(|row| row.seq > after));
        }
        rows.truncate(limit);
        Ok(rows)
    }

    /// Movements before this one, from the last on, so many at most.
    fn before(&self, before: u64, limit: usize) -> Result<Vec<LedgerRow>, StoreError> {
        let mut rows = self.on_last_sheets()?;
        rows.reverse();
        rows.retain(|row| row.seq < before);
        if rows.len() < limit {
            sheet::each_before(self.db, self.no, before, |no| {
                rows.extend(self.on_sheet(no)?.into_iter().rev().filter(|row| row.seq < before));
                Ok(rows.len() >= limit)
            })?;
        }
        rows.truncate(limit);
        Ok(rows)
    }

    /// Movements with these numbers, in their order; neighbours are often on one sheet. The last sheets are looked
    /// through only for what the index does not know.
    pub(super) fn at(&self, seqs: &[u64]) -> Result<Vec<LedgerRow>, StoreError> {
        let (mut at_hand, mut last): (Vec<LedgerRow>, Option<Vec<LedgerRow>>) = (Vec::new(), None);
        let mut found = Vec::with_capacity(seqs.len());
        for seq in seqs {
            let known = row_of(&at_hand, *seq).or_else(|| row_of(last.as_deref()?, *seq));
            let row = match known {
                Some(row) => row.clone(),
                None => {
                    let sheet = sheet::sheet_of(self.db, self.no, *seq)?;
                    at_hand = sheet.map(|no| self.on_sheet(no)).transpose()?.unwrap_or_default();
                    match row_of(&at_hand, *seq) {
                        Some(row) => row.clone(),
                        None => self.last_row(&mut last, *seq)?,
                    }
                }
            };
            found.push(row);
        }
        Ok(found)
    }

    /// A movement that the index does not know, among the last ones, which are read if nobody has.
    fn last_row(&self, last: &mut Option<Vec<LedgerRow>>, seq: u64) -> Result<LedgerRow, StoreError> {
        let rows = match last {
            Some(rows) => rows,
            None => last.insert(self.on_last_sheets()?),
        };
        let row = row_of(rows, seq).cloned();
        row.ok_or_else(|| StoreError::Corrupt(format!("number {seq} of a ledger is not there")))
    }

    /// What was made under a key.
    fn of_key(&self, key: &str) -> Result<Option<LedgerRow>, StoreError> {
        let name = Name { place: Place::of(key), no: self.no };
        let rows = match filing::filed(self.db, &name)? {
            Some(Filing { seq, closed_by }) => {
                self.at(&Vec::from_iter([seq].into_iter().chain(closed_by)))?
            }
            None => self.on_last_sheets()?,
        };
        Ok(rows.into_iter().find(|row| row.posting.movement.key == key))
    }

    /// What was charged to a run, and what closed it, past `after` and in this order.
    ///
    /// What is filed is not in the order of the ledger, so that all that the run was charged has to be looked at: that
    /// is so seldom asked that no movement should pay for an order of them.
    fn of_run(
        &self,
        run: RunId,
        (order, after): (LineOrder, u64),
        limit: usize,
    ) -> Result<Vec<LedgerRow>, StoreError> {
        let filed = filing::filed_of_run(self.db, self.no, run)?.into_iter();
        let mut seqs: Vec<u64> =
            filed.flat_map(|Filing { seq, closed_by }| [seq].into_iter().chain(closed_by)).collect();
        let last = self.on_last_sheets()?;
        seqs.extend(last.iter().filter(|row| row.posting.run() == Some(run)).map(|row| row.seq));
        match order {
            LineOrder::Oldest => seqs.retain(|seq| *seq > after),
            LineOrder::Newest => seqs.retain(|seq| *seq < after),
        }
        seqs.sort_unstable();
        // What closes a charge that is filed is on a sheet that may not be in the index.
        seqs.dedup();
        if order == LineOrder::Newest {
            seqs.reverse();
        }
        seqs.truncate(limit);
        self.at(&seqs)
    }

    fn on_sheet(&self, no: u64) -> Result<Vec<LedgerRow>, StoreError> {
        self.rows(&sheet::sheet(self.db, no)?)
    }

    /// Those that the index does not know yet.
    fn on_last_sheets(&self) -> Result<Vec<LedgerRow>, StoreError> {
        let mut rows = Vec::new();
        for (_, text) in sheet::unindexed(self.db)? {
            rows.extend(self.rows(&text)?);
        }
        Ok(rows)
    }

    /// Those of this account on a sheet.
    fn rows(&self, text: &str) -> Result<Vec<LedgerRow>, StoreError> {
        let row = |line: Line<'_>| {
            let Line(_, seq, key, amount, held, borne_by_platform, balance_after, at) = line;
            let unreadable =
                || StoreError::Corrupt(format!("ledger of `{}` at {seq}: `{key}` is no key", self.account));
            let kind = Kind::of_key(&key).ok_or_else(unreadable)?;
            let movement = Movement { kind, amount, key: key.into_owned(), held, borne_by_platform };
            let posting = Posting { account: self.account.to_owned(), movement };
            Ok(LedgerRow { seq, posting, balance_after, at: Timestamp(at) })
        };
        sheet::lines(text)?.into_iter().filter(|Line(no, ..)| *no == self.no).map(row).collect()
    }
}

/// The movement with this number among others, which are in order.
fn row_of(rows: &[LedgerRow], seq: u64) -> Option<&LedgerRow> {
    rows.binary_search_by_key(&seq, |row| row.seq).ok().map(|nth| &rows[nth])
}

/// The number by which the ledger knows an account.
pub(super) fn number(db: &Connection, account: &str) -> Result<Option<i64>, StoreError> {
    Ok(db.prepare_cached(NUMBER)?.query_row([account], |row| row.get(0)).optional()?)
}

/// What happened to an account, or to a run of it, or under one key.
pub(super) fn ledger(db: &Connection, query: &LedgerQuery) -> Result<Vec<LedgerRow>, StoreError> {
    let Some(no) = number(db, &query.account)? else { return Ok(Vec::new()) };
    let ledger = Ledger::of(db, &query.account, no);
    if let Some(key) = &query.key {
        let row = ledger.of_key(key)?;
        let is_asked = |row: &LedgerRow| query.run.is_none_or(|run| row.posting.run() == Some(run));
        return Ok(row.filter(is_asked).into_iter().collect());
    }
    let limit = Page { limit: query.limit, ..Page::default() }.size();
    let past = match query.order {
        LineOrder::Newest if query.after == 0 => u64::MAX,
        LineOrder::Oldest | LineOrder::Newest => query.after,
    };
    match (query.run, query.order) {
        (Some(run), order) => ledger.of_run(run, (order, past), limit),
        (None, LineOrder::Oldest) => ledger.after(past, limit),
        (None, LineOrder::Newest) => ledger.before(past, limit),
    }
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[NUMBER];

#[cfg(test)]
mod tests;
