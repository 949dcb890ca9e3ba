//! The audit: callers and their changes, as the command line sends and shows them.

use std::process::Command;

use serde_json::json;

use crate::shell::{TestShell, text};
use crate::store::Store;

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_noted_with_who_asked_and_shown() {
    let shell = TestShell::open().await;
    shell.text(&["account", "open", "acme"]);
    shell.text(&["--actor", "bob@example.org", "account", "deposit", "acme", "5"]);
    shell.text(&["queue", "pause", "mail", "--actor", "Jürgen"]);
    let by_variable =
        shell.command(&["queue", "resume", "mail"]).env("WINDLASS_ACTOR", "eve").output().unwrap();
    assert!(by_variable.status.success());
    shell.code(&["run", "cancel", "run_00000000000000000000000000000001"], 1);
    let refused = text(&shell.code(&["--actor", "a\u{202e}b", "queue", "pause", "mail"], 1).stderr);
    assert!(refused.contains("[bad_header]"), "{refused}");
    let unsendable = text(&shell.code(&["--actor", "a\nb", "queue", "pause", "mail"], 1).stderr);
    assert!(unsendable.contains("cannot be sent"), "{unsendable}");

    let lines = shell.json(&["audit", "-o", "table", "--json"]);
    let short = lines.as_array().unwrap().iter().map(|line| {
        let word = |name: &str| line[name].as_str().unwrap();
        format!("{} {} {} {}", word("who"), word("what"), word("subject"), word("result"))
    });
    let short: Vec<String> = short.collect();
    assert_eq!(
        short,
        [
            "anonymous queue.pause mail refused",
            "ann run.cancel run_00000000000000000000000000000001 refused",
            "eve queue.resume mail done",
            "Jürgen queue.pause mail done",
            "bob@example.org account.deposit acme done",
            "ann account.open acme done",
        ]
    );
    assert!(lines.as_array().unwrap().iter().all(|line| line["ip"] == "127.0.0.1"), "{lines}");
    assert_eq!(lines[1]["code"], "unknown_run");

    assert_eq!(shell.text(&["audit", "--quiet", "--who", "ann"]), "5\n1");
    assert_eq!(shell.json(&["audit", "--what", "queue.pause", "--limit", "1"])[0]["seq"], json!(6));
    assert_eq!(shell.text(&["audit", "--quiet", "--subject", "acme"]), "2\n1");
    let table = shell.code(&["audit", "--limit", "2", "-o", "table"], 0);
    let (shown, told) = (text(&table.stdout), text(&table.stderr));
    assert!(shown.starts_with("SEQ") && shown.contains("refused: unknown_run"), "{shown}");
    assert!(told.contains("raise --limit"), "{told}");
    let slip = text(&shell.code(&["audit", "--what", "queue.puase"], 1).stderr);
    assert!(slip.contains("[bad_query]") && slip.contains("queue.pause"), "{slip}");
}

/// Changes the store of a stopped server as a person with access to the file could.
fn tamper(shell: &TestShell, sql: &str) {
    let script =
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.executescript(sys.argv[2]); db.commit()";
    let Store::File(file) = shell.server.store() else { panic!("the store is a file") };
    let status = Command::new("python3").args(["-c", script]).arg(file).arg(sql).status().unwrap();
    assert!(status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_missing_or_replaced_line_in_a_sqlite_file_is_found() {
    let mut shell = TestShell::open().await;
    assert_eq!(shell.text(&["audit", "head", "--quiet"]), format!("0:{}", "0".repeat(64)));
    for name in ["a", "b", "c", "d", "e"] {
        shell.text(&["queue", "pause", name]);
    }
    let kept = shell.text(&["audit", "head", "--quiet"]);
    assert!(kept.starts_with("5:"), "{kept}");
    assert_eq!(shell.json(&["audit", "--limit", "1"])[0]["hash"], kept[2..]);
    assert_eq!(
        shell.text(&["audit", "verify", "--head", &kept, "-o", "table"]),
        format!("5 lines are intact, up to {kept}")
    );
    let other = kept.replace(|digit: char| digit.is_ascii_digit() && digit != '5', "5");
    shell.code(&["audit", "verify", "--head", &other], 1);
    let slip = text(&shell.code(&["audit", "verify", "--head", "5"], 1).stderr);
    assert!(slip.contains("<seq>:<hash>"), "{slip}");

    // Each undoes the change before it.
    let head = "UPDATE audit_heads SET seq = (SELECT max(seq) FROM audit), hash = (SELECT hash FROM audit ORDER BY seq DESC LIMIT 1)";
    let changes = [
        ("UPDATE audit SET who = 'bob' WHERE seq = 3", "line 3: the line is not as it was written"),
        (
            "UPDATE audit SET who = 'ann' WHERE seq = 3; UPDATE audit SET seq = 9 WHERE seq = 2",
            "line 2: the line is missing",
        ),
        (
            "UPDATE audit SET seq = 2 WHERE seq = 4; UPDATE audit SET seq = 4 WHERE seq = 9",
            "line 2: the line is not as it was written",
        ),
        (
            "UPDATE audit SET seq = 9 WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 4; UPDATE audit SET seq = 4 WHERE seq = 9; DELETE FROM audit WHERE seq = 5",
            "line 5: the line is missing",
        ),
        (head, "line 5: the line is missing"),
    ];
    for (sql, found) in changes {
        shell.server.kill();
        tamper(&shell, sql);
        shell.server.spawn();
        shell.server.ready().await;
        let output = shell.code(&["audit", "verify", "--head", &kept, "-o", "table"], 1);
        assert!(text(&output.stdout).starts_with(found), "{sql}: {}", text(&output.stdout));
    }
    // A cut end with a rewritten head shows only to a reader who kept an earlier head.
    shell.code(&["audit", "verify"], 0);
}
