//! Files of other programs stay as they are.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use windlass_conformance::test_directory::TestDirectory;
use windlass_store::{Durability, Sqlite, StoreError};

/// The files of a directory, with their rights and contents. A reader of a write-ahead log needs its index, which holds
/// locks and no data.
fn files(directory: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let files = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|path| !path.to_string_lossy().ends_with("-shm"));
    let contents = |path: PathBuf| {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        let bytes = fs::read(&path).unwrap();
        (path, (mode, bytes))
    };
    files.map(contents).collect()
}

/// Opens the file as a store, which must be refused without any change of it; returns the message.
fn refused(place: &TestDirectory, name: &str) -> String {
    let path = place.join(name);
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let before = files(place.path());
    let error = Sqlite::open(&path, Durability::Strict).unwrap_err();
    let after = files(place.path());
    assert!(after == before, "{:?}", after.keys());
    let StoreError::Unavailable(reason) = error else { panic!("{error:?}") };
    let told = reason.to_string();
    assert!(told.contains(name) && told.contains("name another file in --store"), "{told}");
    assert!(!told.contains('\n'), "{told}");
    told
}

#[test]
fn a_database_of_another_program_is_refused_and_stays_as_it_is() {
    let place = TestDirectory::create();
    let db = Connection::open(place.join("songs 100%.db")).unwrap();
    db.execute_batch("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('one')").unwrap();
    drop(db);
    assert!(refused(&place, "songs 100%.db").contains("`songs`"));
    // Many programs have a table with this name.
    let db = Connection::open(place.join("other.db")).unwrap();
    db.execute_batch("CREATE TABLE migrations (id INTEGER PRIMARY KEY, applied_at TEXT)").unwrap();
    drop(db);
    assert!(refused(&place, "other.db").contains("`migrations`"));
}

#[test]
fn a_database_whose_tables_are_still_in_its_log_is_refused_too() {
    let place = TestDirectory::create();
    let db = Connection::open(place.join("busy.db")).unwrap();
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE songs (title TEXT)",
    )
    .unwrap();
    assert!(fs::metadata(place.join("busy.db-wal")).unwrap().len() > 0);
    assert!(refused(&place, "busy.db").contains("`songs`"));
    db.execute_batch("INSERT INTO songs VALUES ('one')").unwrap();
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let place = TestDirectory::create();
    fs::write(place.join("notes.txt"), "Milk\n").unwrap();
    assert!(refused(&place, "notes.txt").contains("not a database of SQLite"));
}

#[test]
fn an_empty_file_becomes_a_store_and_a_store_that_was_cut_off_is_known_again() {
    let place = TestDirectory::create();
    fs::write(place.join("empty.db"), "").unwrap();
    let store = Sqlite::open(place.join("empty.db"), Durability::Strict).unwrap();
    // The tables are only in the log.
    for suffix in ["", "-wal"] {
        fs::copy(place.join(&format!("empty.db{suffix}")), place.join(&format!("copy.db{suffix}"))).unwrap();
    }
    drop(store);
    drop(Sqlite::open(place.join("copy.db"), Durability::Strict).unwrap());
    drop(Sqlite::open(place.join("copy.db"), Durability::Strict).unwrap());
}
