//! The store in a SQLite file.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod bad_rows;
mod durability;
mod foreign;
mod views;

use windlass_store::{Durability, Sqlite};

async fn sqlite() -> Sqlite {
    Sqlite::temporary(Durability::Fast).unwrap()
}

windlass_conformance::conformance!(sqlite);
