//! A server with a certificate, and clients of it, as users start them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use windlass_conformance::certificates::TestAuthority;
use windlass_sdk::{Client, ClientTls};

use crate::server::{PATIENCE, TempDir, free_port, signal};

struct HttpsServer(Child);

impl HttpsServer {
    fn start(directory: &Path, url: &str, cert: &Path, key: &Path) -> Self {
        let log = std::fs::File::create(directory.join("server.log")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["serve", "--listen", url.trim_start_matches("https://")])
            .arg("--store")
            .arg(format!("sqlite:{}", directory.join("windlass.db").display()))
            .arg("--tls-cert")
            .arg(cert)
            .arg("--tls-key")
            .arg(key)
            .env("RUST_LOG", "info")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        HttpsServer(child.unwrap())
    }
}

impl Drop for HttpsServer {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Runs a command against the server.
fn windlass(url: &str, ca: Option<&PathBuf>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(["run", "list", "-o", "json", "--server", url]).env_remove("WINDLASS_CA");
    if let Some(ca) = ca {
        command.env("WINDLASS_CA", ca);
    }
    command.output().unwrap()
}

#[tokio::test]
async fn a_server_with_a_certificate_is_reached_by_those_that_trust_its_authority() {
    let (dir, authority) = (TempDir::new(), TestAuthority::new());
    let (cert, key) = authority.sign(&["127.0.0.1"]).write(dir.path());
    let ca = authority.write(dir.path());
    let url = format!("https://127.0.0.1:{}", free_port());
    let mut server = HttpsServer::start(dir.path(), &url, &cert, &key);
    let tls = ClientTls { ca: Some(ca.clone()), identity: None };
    let client = Client::new(&url).unwrap().with_tls(&tls).unwrap();
    let log = || std::fs::read_to_string(dir.path().join("server.log")).unwrap();
    let begun = Instant::now();
    while !matches!(client.raw("GET", "/readyz", None).await, Ok((200, _))) {
        assert!(begun.elapsed() < PATIENCE, "not ready; its log: {}", log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(log().contains(&format!("listens on {url}")), "{}", log());

    let listed = windlass(&url, Some(&ca));
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let refused = windlass(&url, None);
    assert_eq!(refused.status.code(), Some(3));
    let told = String::from_utf8_lossy(&refused.stderr).to_lowercase();
    assert!(told.contains("certificate") && told.contains("--ca file"), "{told}");
    let plain = windlass(&url.replace("https://", "http://"), None);
    assert_eq!(plain.status.code(), Some(3));

    // SIGHUP makes the server read the files, changed or not, and ends nothing.
    signal(&server.0, "HUP");
    while !log().contains("the certificate was read again") {
        assert!(begun.elapsed() < PATIENCE, "its log: {}", log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(server.0.try_wait().unwrap().is_none());
    assert!(windlass(&url, Some(&ca)).status.success());
}
