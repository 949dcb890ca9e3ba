//! Rights of files: other users of the machine read nothing of a store.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::dev::DevServer;
use crate::http::expect;
use crate::server::{Server, TempDir};
use crate::store::Store;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode()
        & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

const FILES: [&str; 4] = ["store.db", "store.db-wal", "store.db-shm", "store.db.lock"];

#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_store_and_of_its_copy_are_for_their_owner_alone() {
    let (dir, copies) = (TempDir::new(), TempDir::new());
    let place = dir.path().to_owned();
    // A parent process with a generous mask: every right that the server does not withhold is given.
    let wrap = ["sh", "-c", "umask 000; exec \"$0\" \"$@\""];
    let mut server = Server::start_at(dir, Store::File(place.join("store.db")), &wrap, &[]).await;
    let flow = json!({"start": "a", "nodes": {"a": {"kind": "local", "func": "echo"}}, "edges": []});
    let body = json!({"name": "f", "definition": flow});
    expect(&server.client(), "POST", "/api/v1/flows", Some(body), 201).await;
    for name in FILES {
        assert_eq!(mode(&place.join(name)), 0o600, "{name}");
    }
    assert!(!server.log().contains("other users"), "{}", server.log());

    // A server that was killed leaves all its files behind.
    server.kill();
    for name in FILES {
        set_mode(&place.join(name), 0o664);
    }
    server.spawn();
    server.ready().await;
    for name in FILES {
        assert_eq!(mode(&place.join(name)), 0o600, "{name}");
        let log = server.log();
        assert!(log.lines().any(|line| line.contains("other users") && line.contains(name)), "{name}: {log}");
    }
    assert!(server.terminate().success());

    let target = copies.path().join("copy.db");
    let (from, to) = (place.join("store.db"), target.clone());
    let script = "umask 000; exec \"$0\" \"$@\"";
    let ended = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_windlass"), "store", "copy"])
        .args([format!("sqlite:{}", from.display()), format!("sqlite:{}", to.display())])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    for entry in std::fs::read_dir(copies.path()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    assert_eq!(mode(&target), 0o600);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_directory_of_a_developers_server_is_closed_to_others() {
    let dev = DevServer::start_in(TempDir::new()).await;
    let path = dev.dir.path().join(".windlass");
    assert_eq!((mode(&path), mode(&path.join("windlass.db"))), (0o700, 0o600));
    assert!(!dev.log().contains("other users"), "{}", dev.log());

    let open = TempDir::new();
    let path = open.path().join(".windlass");
    std::fs::create_dir(&path).unwrap();
    set_mode(&path, 0o755);
    let dev = DevServer::start_in(open).await;
    assert_eq!(mode(&path), 0o700);
    assert!(dev.log().contains(".windlass was open to other users"), "{}", dev.log());
}
