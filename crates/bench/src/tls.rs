//! The cost of TLS: runs per second over HTTP with it and without, in turns on one server.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_sdk::{Client, ClientTls};
use windlass_server::Options;
use windlass_tls::{ServerTls, ServerTlsFiles};

use super::BenchPlan;
use super::embedded::{EmbeddedServer, chain, function};
use super::processes::many_runs;
use super::report::Measurement;

/// Turns of one round.
const TURNS: u32 = 10;

/// Runs per second over plain HTTP and over TLS, and their ratio. Clients keep their connections, as programs do.
pub(crate) async fn tls(plan: &BenchPlan) -> Result<[Measurement; 3]> {
    let store = plan.stores.new_store("tls").await?;
    let server = Arc::new(EmbeddedServer::make(plan, &store, "bench", &chain(3, function)).await?);
    let directory = plan.stores.dir();
    let files = certificate(directory)?;
    let ca = Some(files.cert.clone());
    let stop = CancellationToken::new();
    let listen = async |tls: Option<Arc<ServerTls>>| {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let options = Options { tls, ..Options::default() };
        let serving = windlass_server::serve(listener, server.runtime().clone(), options, stop.clone());
        anyhow::Ok((address, tokio::spawn(serving)))
    };
    let (plain, serving_plain) = listen(None).await?;
    let (secure, serving_secure) = listen(Some(Arc::new(ServerTls::open(files)?))).await?;
    let plain = Client::new(&format!("http://{plain}"))?;
    let secure = Client::new(&format!("https://{secure}"))?.with_tls(&ClientTls { ca, identity: None })?;
    many_runs(&plain, plan.at_once, plan.round / 4).await?;
    many_runs(&secure, plan.at_once, plan.round / 4).await?;
    let (mut off, mut on, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        let (mut without, mut with) = (0.0, 0.0);
        // In short turns, so that both meet the same machine, which is another one from second to second.
        for _ in 0..TURNS {
            without += many_runs(&plain, plan.at_once, plan.round / TURNS).await?;
            with += many_runs(&secure, plan.at_once, plan.round / TURNS).await?;
        }
        off.push(without / f64::from(TURNS));
        on.push(with / f64::from(TURNS));
        ratios.push(with / without);
    }
    stop.cancel();
    serving_plain.await??;
    serving_secure.await??;
    server.close().await;
    let what = format!("runs of 3 steps over HTTP, {} at once", plan.at_once);
    Ok([
        Measurement::new(format!("{what}, plain"), "runs/s", off),
        Measurement::new(format!("{what}, TLS"), "runs/s", on),
        Measurement::new("with TLS against without it", "×", ratios),
    ])
}

/// A certificate for this machine, which trusts itself.
fn certificate(directory: &Path) -> Result<ServerTlsFiles> {
    let (cert, key) = (directory.join("cert.pem"), directory.join("key.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&cert)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot run `openssl`, which makes the certificate of this row: install it")?;
    ensure!(made.success(), "`openssl` made no certificate");
    Ok(ServerTlsFiles { cert, key, client_ca: None })
}
