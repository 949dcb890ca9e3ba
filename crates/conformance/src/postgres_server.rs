//! A private PostgreSQL for tests: a server of one's own in a directory of its own, and a database for every test.
//!
//! The programs of PostgreSQL have to be on the machine, in `PATH` or where Debian puts them; nothing else of it is
//! used, and no port: the server listens on a socket in its directory only. It ends with the process that started it,
//! however that ends, and its directory goes with it.

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

/// How long a server may take to start: a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(60);
/// How it ends.
const END: &str = r#"kill -QUIT "$(head -n1 "$1/data/postmaster.pid")""#;

/// A server with databases.
#[derive(Debug)]
pub struct PostgresServer {
    directory: PathBuf,
    owner: Option<(u32, u32)>,
    settings: Vec<String>,
    /// The process whose network the server is in, if it is not that of everybody.
    network: Option<u32>,
    server: Option<Child>,
    disk: Option<Disk>,
    guard: ServerGuard,
    n_databases: AtomicU64,
}

impl PostgresServer {
    /// Makes a server and starts it. Without `is_durable` it does not wait for the disk.
    pub fn start(is_durable: bool) -> PostgresServer {
        PostgresServer::made(None, is_durable, &[])
    }

    /// The same with other settings, such as `max_connections=5`.
    pub fn start_with(is_durable: bool, others: &[&str]) -> PostgresServer {
        PostgresServer::made(None, is_durable, others)
    }

    /// Makes a server in the network of another process, where it listens on every address. Takes root.
    pub fn start_in(network: u32, is_durable: bool) -> PostgresServer {
        PostgresServer::made(Some(network), is_durable, &[])
    }

    fn made(network: Option<u32>, is_durable: bool, others: &[&str]) -> PostgresServer {
        let guard = ServerGuard::of("pg", END);
        let directory = guard.directory().to_owned();
        let owner = owner();
        if let Some((user, group)) = owner {
            chown(&directory, Some(user), Some(group)).unwrap();
        }
        // Each server of a test has up to seventeen, and every core may have a test.
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
            server: None,
            disk: None,
            guard,
            n_databases: AtomicU64::new(0),
        };
        server.make();
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

    fn make(&self) {
        let data = self.data();
        let made = self
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
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        if self.network.is_some() {
            let rules = fs::OpenOptions::new().append(true).open(data.join("pg_hba.conf"));
            rules.unwrap().write_all(b"host all all all trust\n").unwrap();
        }
    }

    /// The server's own command, in the network that it is to be in.
    fn program(&self) -> Command {
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
            None => self.program(),
        };
        command.arg("-D").arg(self.data()).arg("-k").arg(&self.directory);
        for setting in &self.settings {
            command.arg("-c").arg(setting);
        }
        // In a process group of its own: Ctrl-C in a test ends it through its supervisor.
        let server = command.stdout(log.try_clone().unwrap()).stderr(log).process_group(0).spawn().unwrap();
        self.server = Some(server);
    }

    /// Starts the server, or starts it again, and waits until it answers.
    pub fn launch(&mut self) {
        self.spawn();
        self.mend();
    }

    /// Waits until it answers, and starts it again if it has given up.
    pub fn mend(&mut self) {
        let begun = Instant::now();
        while !self.sql("postgres", "SELECT 1") {
            assert!(begun.elapsed() < PATIENCE, "{}", self.log());
            // It gives no notice when it is ready: it has to be asked.
            std::thread::sleep(Duration::from_millis(20));
            if self.server.as_mut().unwrap().try_wait().unwrap().is_some() {
                // Processes of a killed server have not noticed yet, and the next server would give up at once.
                self.spawn();
            }
        }
    }

    /// Kills the server without a word to anybody, as a loss of power would.
    pub fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().unwrap();
            server.wait().unwrap();
        }
        // Its children notice by themselves, without a notice to the test.
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && self.sql("postgres", "SELECT 1") {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Makes it a standby of itself, which follows a primary that does not exist and is read-only.
    pub fn demote(&mut self) {
        self.kill();
        fs::write(self.data().join("standby.signal"), "").unwrap();
        self.launch();
    }

    /// Starts it again with a disk of its own in memory, of so many MiB, on which it has a tablespace `small`. Only root
    /// can do so: says whether it was done.
    pub fn add_disk(&mut self, mib: u32) -> bool {
        let Some(owner) = self.owner else { return false };
        let path = self.directory.join("disk");
        self.kill();
        self.disk = Some(Disk::mount(&path, mib, owner));
        self.launch();
        self.sql("postgres", &format!("CREATE TABLESPACE small LOCATION '{}'", path.display()))
    }

    /// Starts it again with its write-ahead log, `pg_wal`, on such a disk.
    pub fn add_log_disk(&mut self, mib: u32) -> bool {
        let Some(owner) = self.owner else { return false };
        self.stop();
        let disk = Disk::mount(&self.directory.join("disk"), mib, owner);
        disk.take(&self.data().join("pg_wal"));
        self.disk = Some(disk);
        self.launch();
        true
    }

    /// Its own disk, if it was given one.
    pub fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref()
    }

    /// Asks this user for a password from now on.
    pub fn protect(&self, user: &str) {
        let path = self.data().join("pg_hba.conf");
        let rules = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("local all {user} scram-sha-256\n{rules}")).unwrap();
        assert!(self.sql("postgres", "SELECT pg_reload_conf()"));
    }

    /// Asks the server to end at once, and waits until it has: clients are cut off.
    pub fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let asked = Command::new("kill").args(["-INT", &server.id().to_string()]).status().unwrap();
            assert!(asked.success());
            server.wait().unwrap();
        }
    }

    /// Cuts every connection to a database.
    pub fn cut(&self, database: &str) {
        let cut =
            format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'");
        self.ask("postgres", &cut);
    }

    fn log(&self) -> String {
        let mut text = String::new();
        drop(fs::File::open(self.directory.join("log")).map(|mut file| file.read_to_string(&mut text)));
        format!("the server does not start:\n{text}")
    }

    /// Runs a statement with the tool that comes with PostgreSQL; whether it worked.
    pub fn sql(&self, database: &str, sql: &str) -> bool {
        self.tell(database, sql).is_ok_and(|told| told.status.success())
    }

    /// Asks something in the same way; a line for every row.
    pub fn ask(&self, database: &str, sql: &str) -> String {
        let told = self.tell(database, sql).unwrap();
        assert!(told.status.success(), "{sql}: {}", String::from_utf8_lossy(&told.stderr));
        String::from_utf8(told.stdout).unwrap()
    }

    fn tell(&self, database: &str, sql: &str) -> std::io::Result<Output> {
        let mut command = self.command("psql");
        command.args(["-X", "-q", "-A", "-t", "-U", "postgres", "-d", database, "-c", sql]);
        command.arg("-h").arg(&self.directory).output()
    }

    /// Where a database of this server is.
    pub fn address(&self, database: &str) -> String {
        let place: String = self
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
        format!("postgres://postgres@{place}/{database}")
    }

    /// Makes a database that is empty.
    pub fn create(&self) -> String {
        let name = format!("empty_{}", self.n_databases.fetch_add(1, Ordering::Relaxed));
        assert!(self.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")));
        name
    }

    /// Makes a database with the tables in it, a copy of one that was made before.
    pub fn copy(&self) -> String {
        let name = format!("copy_{}", self.n_databases.fetch_add(1, Ordering::Relaxed));
        assert!(
            self.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE {TEMPLATE}")),
            "{}",
            self.log()
        );
        name
    }

    /// Deletes a database, and ends its connections.
    pub fn delete(&self, database: &str) {
        // One that cannot be deleted goes with the server.
        self.sql("postgres", &format!("DROP DATABASE {database} WITH (FORCE)"));
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.guard.end();
        if let Some(mut server) = self.server.take() {
            drop(server.wait());
        }
    }
}

fn find(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    // The newest first.
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

/// The user of the server: root may not run it, and gives way to the user that the package made.
fn owner() -> Option<(u32, u32)> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    if !is_root {
        return None;
    }
    let users = fs::read_to_string(Path::new("/etc/passwd")).unwrap();
    let ids = |line: &str| {
        // The password stands before the numbers of the user and its group.
        let mut fields = line.strip_prefix("postgres:")?.split(':').skip(1);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    Some(users.lines().find_map(ids).expect("the package of PostgreSQL makes a user `postgres`"))
}
