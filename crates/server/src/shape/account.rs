//! Accounts and their ledger entries.

use windlass_engine::money::{Movement, job_of_key};
use windlass_sdk::contract::{AccountInfo, LedgerEntry};
use windlass_store::account::{AccountRow, LedgerRow};

use super::time;

/// An account.
pub(crate) fn account(row: AccountRow) -> AccountInfo {
    let AccountRow { id, name, balance, held, revision: _, created_at } = row;
    AccountInfo { id, name, balance: balance.0, held: held.0, created_at: time(created_at) }
}

/// One row of a ledger.
pub(crate) fn ledger_entry(row: LedgerRow) -> LedgerEntry {
    let (run, node) = (row.posting.run(), row.posting.node());
    let Movement { kind, amount, key, held: _, borne_by_platform } = row.posting.movement;
    LedgerEntry {
        seq: row.seq.0,
        kind: kind.word().to_owned(),
        amount: amount.0,
        balance_after: row.balance_after.0,
        borne_by_platform: borne_by_platform.0,
        run: run.map(|run| run.to_string()),
        node: node.map(|node| node.to_string()),
        // As the queue platform surface spells it.
        task: job_of_key(&key).map(|job| job.uuid().to_string()),
        key,
        at: time(row.at),
    }
}
