//! Accounts of the open transaction. The writer reads an account once per transaction, moves it here, and writes the
//! row once before COMMIT, however many commits of the transaction move it.

use std::cell::RefCell;
use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};
use windlass_engine::counter::Revision;
use windlass_engine::money::Account;
use windlass_engine::project::Project;

use super::account;
use super::writer_cache::HashState;
use crate::account::AccountRow;
use crate::column::stored;
use crate::error::{Refusal, StoreError};

const MOVE: &str =
    "UPDATE accounts SET balance = ?2, held = ?3, revision = ?4 WHERE project = ?5 AND id = ?1";

#[derive(Debug)]
struct BatchedAccount {
    row: AccountRow,
    is_moved: bool,
}

#[derive(Debug, Default)]
pub(super) struct AccountBatch {
    projects: RefCell<HashMap<Project, HashMap<String, BatchedAccount, HashState>, HashState>>,
}

impl AccountBatch {
    /// Passes the current row of an account to `look`.
    pub(super) fn read<T>(
        &self,
        db: &Connection,
        project: &Project,
        id: &str,
        look: impl FnOnce(&AccountRow) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Some(account) = self.projects.borrow().get(project).and_then(|accounts| accounts.get(id)) {
            return look(&account.row);
        }
        let row = db
            .prepare_cached(account::ACCOUNT)?
            .query_row([id, project.as_str()], account::read)
            .optional()?;
        let row = row.ok_or_else(|| Refusal::UnknownAccount(id.to_owned()))?;
        let found = look(&row);
        let account = BatchedAccount { row, is_moved: false };
        self.projects.borrow_mut().entry(project.clone()).or_default().insert(id.to_owned(), account);
        found
    }

    /// Moves an account that was read in this transaction.
    pub(super) fn update(&self, project: &Project, id: &str, account: Account, revision: Revision) {
        let mut projects = self.projects.borrow_mut();
        if let Some(batched) = projects.get_mut(project).and_then(|accounts| accounts.get_mut(id)) {
            (batched.row.balance, batched.row.held) = (account.balance, account.held);
            batched.row.revision = revision;
            batched.is_moved = true;
        }
    }

    /// Writes the moved accounts and forgets all: called before COMMIT.
    pub(super) fn write(&self, db: &Connection) -> Result<(), StoreError> {
        let mut statement = db.prepare_cached(MOVE)?;
        for (project, accounts) in self.projects.borrow_mut().iter_mut() {
            for (id, BatchedAccount { row, is_moved }) in accounts.drain() {
                if is_moved {
                    let (balance, held, revision) = (row.balance.0, row.held.0, stored(row.revision));
                    statement.execute(params![id, balance, held, revision, project.as_str()])?;
                }
            }
        }
        Ok(())
    }

    /// Forgets all: the transaction was rolled back.
    pub(super) fn clear(&self) {
        self.projects.borrow_mut().clear();
    }
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[MOVE];
