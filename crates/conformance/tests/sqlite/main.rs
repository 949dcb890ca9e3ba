//! The store in a SQLite file.

mod durability;
mod views;

use windlass_store::{Durability, Sqlite};

async fn sqlite() -> Sqlite {
    Sqlite::temporary(Durability::Fast).unwrap()
}

windlass_conformance::conformance!(sqlite);
