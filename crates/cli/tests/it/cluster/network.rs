//! The network between servers and their database is cut: first for one of them, then for all.
//!
//! The database is in a network namespace with a virtual cable to each server; a pulled cable drops all packets without
//! an error. The test needs root and the tools of Linux; `./test` skips it, and says so, where they are missing.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use windlass_conformance::postgres_server::PostgresServer;

use super::load::Load;
use super::{Cluster, says_ready};

/// The remedy where the test cannot run.
const AS_ROOT: &str = "run it as root, or leave it out with --skip as_root_";

/// Longer than a server may be silent (ten seconds), counted from its last heartbeat.
const PAST_ITS_LEASE: Duration = Duration::from_secs(11);
/// How long the network is down for all servers.
const CUT: Duration = Duration::from_secs(8);
/// A server is ready again this soon after its network is.
const BACK: Duration = Duration::from_secs(60);

/// A network of its own with a cable for each server. It goes with the process that holds it.
struct Network {
    holder: Child,
    n_cables: usize,
}

impl Network {
    fn lay(n_cables: usize) -> Network {
        // The holder reads from a pipe of ours: it ends with us, however we end.
        let holder = Command::new("unshare").args(["-n", "cat"]).stdin(Stdio::piped()).spawn();
        let holder = holder.unwrap_or_else(|error| panic!("unshare: {error}: {AS_ROOT}"));
        let network = Network { holder, n_cables };
        // It is another network once the namespace of the process differs from ours.
        let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let (ours, begun) = (of("self"), std::time::Instant::now());
        while of(&network.holder.id().to_string()).is_none_or(|of| Some(of) == ours) {
            assert!(begun.elapsed() < Duration::from_secs(5), "only root can make a network: {AS_ROOT}");
            // The kernel does not announce it.
            std::thread::sleep(Duration::from_millis(5));
        }
        for nth in 0..n_cables {
            let (outer, inner) = (network.name(nth, "a"), network.name(nth, "b"));
            let holder = network.holder.id().to_string();
            let laid = ["link", "add", &outer, "type", "veth", "peer", "name", &inner, "netns", &holder];
            let address = |end| format!("{}/30", network.address(nth, end));
            let is_laid = run("ip", &laid)
                && run("ip", &["addr", "add", &address(1), "dev", &outer])
                && run("ip", &["link", "set", &outer, "up"])
                && network.inside(&["addr", "add", &address(2), "dev", &inner])
                && network.inside(&["link", "set", &inner, "up"]);
            assert!(is_laid, "a cable takes root and `ip`: {AS_ROOT}");
        }
        network
    }

    /// Names of ends are short, and other tests of this machine have others.
    fn name(&self, nth: usize, end: &str) -> String {
        format!("wl{}{end}{nth}", self.holder.id())
    }

    /// Addresses from the range that is reserved for network tests, a few for each holder.
    fn address(&self, nth: usize, end: u32) -> String {
        let block = self.holder.id() % 4_096 * 16 + u32::try_from(nth).unwrap() * 4 + end;
        format!("198.{}.{}.{}", 18 + (block >> 16), (block >> 8) & 255, block & 255)
    }

    fn ways(&self) -> Vec<Option<String>> {
        (0..self.n_cables).map(|nth| Some(self.address(nth, 2))).collect()
    }

    fn inside(&self, words: &[&str]) -> bool {
        let target = format!("--net=/proc/{}/ns/net", self.holder.id());
        run("nsenter", &[&[target.as_str(), "ip"], words].concat())
    }

    /// Pulls a cable, or puts it back.
    fn cut(&self, nth: usize, is_cut: bool) {
        let state = if is_cut { "down" } else { "up" };
        assert!(self.inside(&["link", "set", &self.name(nth, "b"), state]));
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        drop(self.holder.kill());
        drop(self.holder.wait());
    }
}

fn run(program: &str, words: &[&str]) -> bool {
    let done = Command::new(program).args(words).stdin(Stdio::null()).stderr(Stdio::null()).status();
    done.is_ok_and(|status| status.success())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_root_servers_that_are_cut_off_from_their_database_say_so_and_go_on_when_it_is_back() {
    let network = Network::lay(3);
    let database = tokio::task::block_in_place(|| PostgresServer::start_in(network.holder.id(), false));
    let cluster = Cluster::on(database, &network.ways()).await;
    let load = Load::begin(&cluster).await;
    let clients = cluster.clients();
    load.goes_on(10).await;

    network.cut(0, true);
    let begun = std::time::Instant::now();
    says_ready(&clients[0], false).await;
    // The other servers work, and take over its runs.
    for client in &clients[1..] {
        assert!(says_ready(client, true).await < BACK);
    }
    load.goes_on(10).await;
    tokio::time::sleep(PAST_ITS_LEASE.saturating_sub(begun.elapsed())).await;
    network.cut(0, false);
    assert!(says_ready(&clients[0], true).await < BACK);

    (0..3).for_each(|nth| network.cut(nth, true));
    let begun = std::time::Instant::now();
    for client in &clients {
        says_ready(client, false).await;
    }
    tokio::time::sleep(CUT.saturating_sub(begun.elapsed())).await;
    (0..3).for_each(|nth| network.cut(nth, false));
    for client in &clients {
        assert!(says_ready(client, true).await < BACK);
    }
    load.goes_on(5).await;
    load.settles(&cluster).await;
}
