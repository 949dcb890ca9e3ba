//! The audit: callers and their changes, as the command line sends and shows them.

use serde_json::json;

use crate::shell::{TestShell, text};

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
