//! Node types in Python, templates, services and logs, as a person at the command line has them.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::shell::{KilledOnDrop, TestShell, text};

const PICTURE: &str = r#"{"nodes": [
    {"id": "img_gen", "type": "image_generation", "config": {"prompt": "$var.prompt"}},
    {"id": "end", "type": "end", "config": {"outputs": [{"name": "picture", "source": "$node.img_gen.output.urls[0]"}]}}],
  "edges": [{"source": "img_gen", "target": "end"}],
  "variables": {"prompt": {"type": "string", "defaultValue": ""}}}"#;

/// A worker of the examples, ended when it is dropped.
fn painter(file: &str, shell: &TestShell) -> KilledOnDrop {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/extend").join(file);
    let mut command = Command::new("python3");
    KilledOnDrop(
        command.arg(path).env("WINDLASS_SERVER", shell.server.url()).stdin(Stdio::null()).spawn().unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_type_is_a_worker_in_python_that_pulls_or_is_pushed_to() {
    let shell = TestShell::open().await;
    for (file, definition) in [
        ("pull.py", PICTURE.to_owned()),
        (
            "push.py",
            PICTURE.replace(
                r#""config": {"prompt""#,
                r#""exec_type": "http", "recheck_ms": 200, "config": {"prompt""#,
            ),
        ),
    ] {
        let _painter = painter(file, &shell);
        shell.write("picture.json", &definition);
        shell.text(&["flow", "apply", "--name", file, "picture.json"]);
        let run = shell.json(&["run", "start", file, "-p", "prompt=a harbour", "--wait", "--timeout", "60s"]);
        assert_eq!(run["result"]["picture"], "asset://pictures/3.png", "{run}");
        let id = run["id"].as_str().unwrap();
        let lines = shell.text(&["run", "logs", id, "--node", "img_gen", "-o", "table"]);
        for word in ["ordered", "suspended, asked again later", "asked again", "done"] {
            assert!(lines.contains(word), "no `{word}` in {lines}");
        }
        let failed = shell.code(&["run", "start", file, "--wait", "--timeout", "60s"], 1);
        assert!(text(&failed.stdout).contains("give a prompt"), "{}", text(&failed.stdout));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_read_filtered_and_followed() {
    let shell = TestShell::open().await;
    shell.write(
        "fails.json",
        r#"{"nodes": [{"id": "a", "type": "fail", "exec_type": "local_func"}], "edges": []}"#,
    );
    shell.text(&["flow", "apply", "fails.json"]);
    let id = shell.text(&["run", "start", "fails", "--quiet"]);
    let lines = shell.text(&["run", "logs", &id, "--follow", "-o", "table"]);
    assert!(
        lines.contains("the run started") && lines.trim_end().ends_with("the run failed: failed as asked"),
        "{lines}"
    );
    assert!(lines.lines().any(|line| line.contains("error  a: failed: ")), "{lines}");
    let loud = shell.json(&["run", "logs", &id, "--level", "error"]);
    assert_eq!(loud.as_array().unwrap().len(), 2, "{loud}");
    assert_eq!(loud[0]["node"], "a");
    assert_eq!(shell.json(&["run", "logs", &id, "--node", "b"]).as_array().unwrap().len(), 0);
    shell.code(&["run", "logs", &id, "--level", "loud"], 2);
    shell.code(&["run", "logs", "run_00000000000000000000000000000000"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn templates_are_instantiated_and_services_are_set() {
    let shell = TestShell::open().await;
    shell.write("picture.json", PICTURE);
    shell.text(&["flow", "apply", "--template", "picture.json"]);
    assert_eq!(shell.text(&["flow", "list", "--templates", "--quiet"]), "picture");
    let made = shell.json(&["flow", "instantiate", "picture", "harbour", "--set", "prompt=a harbour"]);
    assert_eq!((&made["name"], &made["version"]), (&"harbour".into(), &1.into()));
    shell.write("harbour.json", PICTURE);
    let flow = shell.code(&["flow", "apply", "--template", "harbour.json"], 1);
    assert!(text(&flow.stderr).contains("cannot become a template"), "{}", text(&flow.stderr));
    shell.text(&["flow", "apply", "--template", "picture.json"]);
    let shown = shell.json(&["flow", "show", "harbour"]);
    assert_eq!(shown["version"]["definition"]["variables"]["prompt"]["defaultValue"], "a harbour");
    let refused = shell.code(&["flow", "instantiate", "picture", "other", "--set", "promt=x"], 1);
    assert!(text(&refused.stderr).contains("did you mean `prompt`?"), "{}", text(&refused.stderr));
    let plain = shell.code(&["flow", "instantiate", "harbour", "other"], 1);
    assert!(text(&plain.stderr).contains("[not_template]"), "{}", text(&plain.stderr));
    assert_eq!(shell.json(&["service", "set", "image_generation", "--recheck", "5s"])["recheck_ms"], 5_000);
    assert_eq!(shell.json(&["service", "set", "video", "--recheck-ms", "700"])["recheck_ms"], 700);
    assert_eq!(shell.text(&["service", "list", "--quiet"]), "image_generation\nvideo");
    assert!(shell.text(&["service", "show", "video", "-o", "table"]).contains("every 700ms"));
    assert!(shell.json(&["service", "set", "video", "--clear"]).get("recheck_ms").is_none());
    assert_eq!(shell.text(&["service", "list", "--quiet"]), "image_generation");
    let short = shell.code(&["service", "set", "video", "--recheck-ms", "5"], 1);
    assert!(text(&short.stderr).contains("recheck_ms"), "{}", text(&short.stderr));
    shell.code(&["service", "set", "video"], 2);
    shell.code(&["service", "show", "nobody"], 1);
}
