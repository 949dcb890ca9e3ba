//! A private PostgreSQL server for tests, with its own directory, and databases on it.
//!
//! The programs of PostgreSQL have to be in `PATH` or in the directory of Debian. The server uses no port: it listens on
//! a socket in its directory. A [`ServerGuard`] ends it and deletes its directory when the test process ends.

mod disk;
mod test_database;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub use disk::Disk;
use test_database::TEMPLATE;
pub use test_database::{TestDatabase, shared, test_database};

use crate::server_guard::ServerGuard;

/// The time limit of a start: a loaded machine is slow.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The command that ends the server.
const END: &str = r#"kill -QUIT "$(head -n1 "$1/data/postmaster.pid")""#;

/// A private PostgreSQL server.
#[derive(Debug)]
pub struct PostgresServer {
    directory: PathBuf,
    owner: Option<(u32, u32)>,
    settings: Vec<String>,
    /// The process whose network namespace the server joins, if it does not use that of the test.
    network: Option<u32>,
    process: Option<Child>,
    disk: Option<Disk>,
    guard: ServerGuard,
    n_databases: AtomicU64,
}

impl PostgresServer {
    /// Starts a new server. Without `is_durable` it does not sync its files.
    pub fn start(is_durable: bool) -> PostgresServer {
        PostgresServer::start_new(None, is_durable, &[])
    }

    /// Starts a new server with these settings, such as `max_connections=5`.
    pub fn start_with(is_durable: bool, others: &[&str]) -> PostgresServer {
        PostgresServer::start_new(None, is_durable, others)
    }

    /// Starts a new server in the network namespace of another process, where it listens on every address. Needs root.
    pub fn start_in(network: u32, is_durable: bool) -> PostgresServer {
        PostgresServer::start_new(Some(network), is_durable, &[])
    }

    /// Gives a file to the user of the servers.
    pub fn give(path: &Path) {
        if let Some((user, group)) = owner() {
            chown(path, Some(user), Some(group)).unwrap();
        }
    }

    fn start_new(network: Option<u32>, is_durable: bool, others: &[&str]) -> PostgresServer {
        let guard = ServerGuard::start("pg", END);
        let directory = guard.directory().to_owned();
        let owner = owner();
        if let Some((user, group)) = owner {
            chown(&directory, Some(user), Some(group)).unwrap();
        }
        // A Windlass server uses up to seventeen connections, and tests run on every core.
        let listen = if network.is_some() { "listen_addresses=*" } else { "listen_addresses=" };
        let mut settings = vec!["max_connections=500".to_owned(), listen.to_owned()];
        if !is_durable {
            settings.extend(["fsync=off", "full_page_writes=off"].map(str::to_owned));
        }
        settings.extend(others.iter().map(|&setting| setting.to_owned()));
        let mut server = PostgresServer {
            directory,
            owner,
            settings,
            network,
            process: None,
            disk: None,
            guard,
            n_databases: AtomicU64::new(0),
        };
        server.init();
        server.launch();
        server
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(find(program));
        // PostgreSQL does not run as root.
        if let Some((user, group)) = self.owner {
            command.uid(user).gid(group);
        }
        command.current_dir(&self.directory).stdin(Stdio::null()).env("LC_ALL", "C.UTF-8");
        command
    }

    fn init(&self) {
        let data = self.data();
        let output = self
            .command("initdb")
            .args([
                "--username=postgres",
                "--auth=trust",
                "--no-sync",
                "--encoding=UTF8",
                "--no-instructions",
            ])
            .arg("--pgdata")
            .arg(&data)
            .output()
            .unwrap();
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        if self.network.is_some() {
            let rules = fs::OpenOptions::new().append(true).open(data.join("pg_hba.conf"));
            rules.unwrap().write_all(b"host all all all trust\n").unwrap();
        }
    }

    /// The command of the server process, in its network namespace.
    fn server_command(&self) -> Command {
        let (Some(network), Some((user, group))) = (self.network, self.owner) else {
            return self.command("postgres");
        };
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/proc/{network}/ns/net"))
            .args(["setpriv", &format!("--reuid={user}"), &format!("--regid={group}"), "--clear-groups"])
            .arg(find("postgres"))
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .env("LC_ALL", "C.UTF-8");
        command
    }

    fn spawn(&mut self) {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.directory.join("log")).unwrap();
        let mut command = match &self.disk {
            Some(disk) => disk.command(&find("postgres"), self.owner),
            None => self.server_command(),
        };
        command.arg("-D").arg(self.data()).arg("-k").arg(&self.directory);
        for setting in &self.settings {
            command.arg("-c").arg(setting);
        }
        // Ctrl-C in a terminal ends the process group of the test; the guard ends the server.
        let process = command.stdout(log.try_clone().unwrap()).stderr(log).process_group(0).spawn().unwrap();
        self.process = Some(process);
    }

    /// Starts or restarts the server and waits until it answers.
    pub fn launch(&mut self) {
        self.spawn();
        self.wait_until_up();
    }

    /// Waits until the server answers, and restarts it if its process has ended.
    pub fn wait_until_up(&mut self) {
        let begun = Instant::now();
        while !self.sql("postgres", "SELECT 1") {
            assert!(begun.elapsed() < TIMEOUT, "{}", self.log());
            // PostgreSQL does not signal its readiness, so it is polled.
            std::thread::sleep(Duration::from_millis(20));
            if self.process.as_mut().unwrap().try_wait().unwrap().is_some() {
                // Processes of a killed server still hold its files for a moment, and the new server refuses to start.
                self.spawn();
            }
        }
    }

    /// Kills the server without a shutdown, like a loss of power.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
        // The child processes end by themselves, without a notice to the test.
        let begun = Instant::now();
        while begun.elapsed() < TIMEOUT && self.sql("postgres", "SELECT 1") {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Restarts the server as a read-only standby whose primary does not exist.
    pub fn demote(&mut self) {
        self.kill();
        fs::write(self.data().join("standby.signal"), "").unwrap();
        self.launch();
    }

    /// Restarts the server with a disk in memory of this size, and a tablespace `small` on it. Returns `false` without
    /// root, which alone can mount one.
    pub fn add_disk(&mut self, mib: u32) -> bool {
        let Some(owner) = self.owner else { return false };
        let path = self.directory.join("disk");
        self.kill();
        self.disk = Some(Disk::mount(&path, mib, owner));
        self.launch();
        self.sql("postgres", &format!("CREATE TABLESPACE small LOCATION '{}'", path.display()))
    }

    /// Restarts the server with its write-ahead log, `pg_wal`, on such a disk.
    pub fn add_log_disk(&mut self, mib: u32) -> bool {
        let Some(owner) = self.owner else { return false };
        self.stop();
        let disk = Disk::mount(&self.directory.join("disk"), mib, owner);
        disk.move_here(&self.data().join("pg_wal"));
        self.disk = Some(disk);
        self.launch();
        true
    }

    /// The disk that was added.
    pub fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref()
    }

    /// Requires a password of this user from now on.
    pub fn require_password(&self, user: &str) {
        let path = self.data().join("pg_hba.conf");
        let rules = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("local all {user} scram-sha-256\n{rules}")).unwrap();
        assert!(self.sql("postgres", "SELECT pg_reload_conf()"));
    }

    /// Shuts the server down with its open connections, and waits for its end.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let signaled = Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap();
            assert!(signaled.success());
            process.wait().unwrap();
        }
    }

    /// Ends every connection to a database.
    pub fn end_connections(&self, database: &str) {
        let end =
            format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'");
        self.ask("postgres", &end);
    }

    fn log(&self) -> String {
        let mut text = String::new();
        drop(fs::File::open(self.directory.join("log")).map(|mut file| file.read_to_string(&mut text)));
        format!("the server does not start:\n{text}")
    }

    /// Runs a statement with `psql`; returns whether it succeeded.
    pub fn sql(&self, database: &str, sql: &str) -> bool {
        self.psql(database, sql).is_ok_and(|output| output.status.success())
    }

    /// Runs a query with `psql`; returns a line for every row.
    pub fn ask(&self, database: &str, sql: &str) -> String {
        let output = self.psql(database, sql).unwrap();
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn psql(&self, database: &str, sql: &str) -> std::io::Result<Output> {
        let mut command = self.command("psql");
        command.args(["-X", "-q", "-A", "-t", "-U", "postgres", "-d", database, "-c", sql]);
        command.arg("-h").arg(&self.directory).output()
    }

    /// The address of a database of this server.
    pub fn address(&self, database: &str) -> String {
        let host: String = self
            .directory
            .to_string_lossy()
            .bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect();
        format!("postgres://postgres@{host}/{database}")
    }

    /// Creates an empty database.
    pub fn create(&self) -> String {
        let name = format!("empty_{}", self.n_databases.fetch_add(1, Ordering::Relaxed));
        assert!(self.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")));
        name
    }

    /// Creates a database with the tables of a store. Only the shared server has the template for it.
    pub fn create_migrated(&self) -> String {
        let name = format!("migrated_{}", self.n_databases.fetch_add(1, Ordering::Relaxed));
        assert!(
            self.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE {TEMPLATE}")),
            "{}",
            self.log()
        );
        name
    }

    /// Deletes a database, and ends its connections.
    pub fn delete(&self, database: &str) {
        // A database that cannot be deleted ends with the server.
        self.sql("postgres", &format!("DROP DATABASE {database} WITH (FORCE)"));
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.guard.end();
        if let Some(mut process) = self.process.take() {
            drop(process.wait());
        }
    }
}

fn find(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    // The newest version comes first.
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|found| found.filter_map(|entry| entry.ok().map(|entry| entry.path().join("bin"))).collect())
        .unwrap_or_default();
    versions.sort();
    versions.reverse();
    places.splice(0..0, versions);
    let found = places.into_iter().map(|place| place.join(program)).find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!("there is no `{program}`: install PostgreSQL, on Debian with `apt-get install postgresql`")
    })
}

/// The user of the server process. PostgreSQL refuses to run as root; the user of its package takes its place.
fn owner() -> Option<(u32, u32)> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    if !is_root {
        return None;
    }
    let users = fs::read_to_string(Path::new("/etc/passwd")).unwrap();
    let ids = |line: &str| {
        // The fields after the name are the password, the user id and the group id.
        let mut fields = line.strip_prefix("postgres:")?.split(':').skip(1);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    Some(users.lines().find_map(ids).expect("the package of PostgreSQL makes a user `postgres`"))
}
