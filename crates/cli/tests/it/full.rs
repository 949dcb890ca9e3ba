//! A full disk: new runs are refused, nothing that was acknowledged is lost, and with space the server goes on by
//! itself.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use windlass_sdk::Client;

use crate::http::{ask, ends, get, node_is, post, seen, start};
use crate::server::{Server, TempDir, publish};
use crate::store::Store;

/// A small disk in memory, seen only by processes that enter where it is. It goes with the process that holds it.
struct Disk {
    holder: Child,
    path: PathBuf,
}

impl Disk {
    async fn mount(at: &Path) -> Disk {
        std::fs::create_dir_all(at).unwrap();
        let shown = at.display();
        let script =
            format!("mount -t tmpfs -o size=64m tmpfs {shown} && echo ready > {shown}/ready && exec cat");
        // The holder reads from a pipe of ours: it ends with us, however we end.
        let holder =
            Command::new("unshare").args(["-rm", "sh", "-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
        let disk = Disk { holder, path: at.to_owned() };
        let ready = at.join("ready");
        seen("a disk: unprivileged user namespaces are needed for this test", async || {
            let look = disk.inside(&["test", "-e", ready.to_str().unwrap()]);
            look.then_some(())
        })
        .await;
        disk
    }

    fn wrap(&self) -> Vec<String> {
        let target = self.holder.id().to_string();
        ["nsenter", "-t", &target, "-U", "-m", "--preserve-credentials", "--"].map(str::to_owned).to_vec()
    }

    /// Runs a command where the disk is; whether it did well.
    fn inside(&self, words: &[&str]) -> bool {
        let wrap = self.wrap();
        let status = Command::new(&wrap[0]).args(&wrap[1..]).args(words).stderr(Stdio::null()).status();
        status.unwrap().success()
    }

    /// Writes a file of this size in KiB.
    fn fill(&self, kib: u32) {
        let of = format!("of={}", self.path.join("filler").display());
        assert!(self.inside(&["dd", "if=/dev/zero", &of, "bs=1024", &format!("count={kib}")]));
    }

    fn free(&self) {
        assert!(self.inside(&["rm", self.path.join("filler").to_str().unwrap()]));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.holder.kill());
        drop(self.holder.wait());
    }
}

fn waits() -> Value {
    json!({"start": "w", "nodes": {
        "w": {"kind": "wait_event", "params": {"signal_key": "go"}},
        "e": {"kind": "local", "func": "echo", "prep": {"input_key": "$shared.go"}, "post": {"output_key": "out"}},
    }, "edges": [{"from": "w", "to": "e"}]})
}

/// Starts runs, each with much to remember, until one is refused; those that were acknowledged, and the refusal.
async fn start_until_full(client: &Client, begun: &mut Vec<(String, usize)>) -> Value {
    let bulk = "x".repeat(20_000);
    for n in begun.len()..2_000 {
        let body = json!({"params": {"n": n, "bulk": bulk}});
        let (status, answer) = ask(client, "POST", "/api/v1/flows/waits/runs", Some(body)).await;
        match status {
            201 => begun.push((answer["id"].as_str().unwrap().to_owned(), n)),
            503 => return answer,
            other => panic!("{other}: {answer}"),
        }
    }
    panic!("the disk never was full");
}

async fn all_there(client: &Client, begun: &[(String, usize)]) {
    for (id, n) in begun {
        let run = get(client, &format!("/api/v1/runs/{id}")).await;
        assert_eq!(run["params"]["n"], *n, "{id}");
        assert_eq!(run["params"]["bulk"].as_str().map(str::len), Some(20_000), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_the_disk_of_a_sqlite_file_is_full() {
    let place = TempDir::new();
    let at = place.path().join("disk");
    let disk = Disk::mount(&at).await;
    disk.fill(60_000);
    let wrap = disk.wrap();
    let wrap: Vec<&str> = wrap.iter().map(String::as_str).collect();
    let mut server = Server::start_at(place, Store::File(at.join("store.db")), &wrap, &[]).await;
    let client = server.client();
    publish(&client, "waits", waits()).await;
    let early = start(&client, "waits", json!({})).await;
    node_is(&client, &early, "w", "waiting").await;

    let mut begun = Vec::new();
    let refused = start_until_full(&client, &mut begun).await;
    assert_eq!(refused["code"], "store_unavailable", "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("try again"), "{refused}");
    assert!(begun.len() > 10, "{} runs", begun.len());
    // Reads still work, and the server reports that it is not ready.
    all_there(&client, &begun).await;
    let troubles = seen("the trouble", async || {
        let (status, answer) = ask(&client, "GET", "/readyz", None).await;
        (status == 503).then_some(answer)
    })
    .await;
    assert!(troubles["troubles"].to_string().contains("the disk is full"), "{troubles}");
    assert!(server.log().contains("disk is full"), "{}", server.log());

    disk.free();
    server.ready().await;
    let n_before = begun.len();
    let run = start(&client, "waits", json!({"n": n_before, "bulk": "x".repeat(20_000)})).await;
    begun.push((run, n_before));
    post(&client, &format!("/api/v1/runs/{early}/signal"), json!({"key": "go", "value": 7})).await;
    assert_eq!(ends(&client, &early, "completed").await["shared"]["out"], 7);

    // Full again, and killed while it is: the file is whole.
    disk.fill(54_000);
    start_until_full(&client, &mut begun).await;
    server.kill();
    disk.free();
    server.spawn();
    server.ready().await;
    all_there(&client, &begun).await;
    let count = get(&client, "/api/tasks?page_size=1").await["total"].as_u64().unwrap();
    // A start whose refusal was not certain may have happened; no more than one was in flight each time.
    let acknowledged = begun.len() as u64 + 1;
    assert!((acknowledged..=acknowledged + 2).contains(&count), "{count} runs, {acknowledged} acknowledged");
    for (id, _) in &begun {
        post(&client, &format!("/api/v1/runs/{id}/signal"), json!({"key": "go", "value": 1})).await;
    }
    for (id, _) in &begun {
        ends(&client, id, "completed").await;
    }
    assert_eq!(server.terminate().code(), Some(0), "{}", server.log());
}
