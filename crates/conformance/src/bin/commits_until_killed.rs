//! Commits to the SQLite file `store.db` in a directory until it is killed, and writes the acknowledged length of each
//! journal to `acked-<run>` beside it. The tests of durability start and kill it.
#![allow(clippy::unwrap_used, reason = "the test sees that it ended by itself")]

use std::path::PathBuf;
use std::{env, fs, io, process, thread};

use windlass_conformance::block_on;
use windlass_conformance::entries::{commit, entry, len};
use windlass_store::{Durability, Sqlite};

fn main() {
    let directory = PathBuf::from(env::args_os().nth(1).expect("the first argument is the directory"));
    // The test holds the other end of the pipe: a test that fails leaves no process behind.
    thread::spawn(|| {
        io::copy(&mut io::stdin(), &mut io::sink()).unwrap();
        process::exit(1);
    });
    let store = Sqlite::open(directory.join("store.db"), Durability::Strict).unwrap();
    thread::scope(|scope| {
        for run in 1..=4 {
            let (store, path) = (&store, directory.join(format!("acked-{run}")));
            scope.spawn(move || {
                let mut n = block_on(len(store, run));
                loop {
                    n = block_on(commit(store, entry(0, run, n, 200))).unwrap().run.unwrap().1.0;
                    fs::write(&path, n.to_string()).unwrap();
                }
            });
        }
    });
}
