//! A disk for tests that fill it up.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A small file system in memory, in the mount namespace of a process that holds it. It ends with that process.
#[derive(Debug)]
pub struct Disk {
    holder: Child,
    path: PathBuf,
}

impl Disk {
    pub(super) fn mount(path: &Path, mib: u32, (user, group): (u32, u32)) -> Disk {
        fs::create_dir(path).unwrap();
        let options = format!("size={mib}m,mode=700,uid={user},gid={group}");
        let script =
            format!("mount -t tmpfs -o {options} tmpfs '{}' && echo mounted && exec cat", path.display());
        // The holder reads from a pipe: it ends with the test process, also after a kill.
        let mut holder = Command::new("unshare")
            .args(["-m", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut answer = [0; 8];
        holder.stdout.as_mut().unwrap().read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"mounted\n");
        Disk { holder, path: path.to_owned() }
    }

    fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.holder.id().to_string(), "-m"]);
        command
    }

    /// A command that runs a program in the namespace of the disk, as this user.
    pub(super) fn command(&self, program: &Path, owner: Option<(u32, u32)>) -> Command {
        let mut command = self.enter();
        if let Some((user, group)) = owner {
            command.args(["-S", &user.to_string(), "-G", &group.to_string()]);
        }
        command.arg("--").arg(program).stdin(Stdio::null()).env("LC_ALL", "C.UTF-8");
        command
    }

    /// Moves a directory to this disk and puts a link in its place.
    pub(super) fn move_here(&self, directory: &Path) {
        let (from, to) = (directory.display(), self.path.display());
        let script = format!("cp -a '{from}' '{to}/moved' && rm -r '{from}' && ln -s '{to}/moved' '{from}'");
        assert!(self.enter().args(["--", "sh", "-c", &script]).status().unwrap().success());
    }

    /// Fills the disk up to this many free KiB.
    pub fn fill(&self, left_kib: u64) {
        let place = self.path.display();
        let script = format!(
            "free=$(df --output=avail -k '{place}' | tail -n1); \
             dd if=/dev/zero of='{place}/filler' bs=1024 count=$((free - {left_kib})) 2>/dev/null"
        );
        assert!(self.enter().args(["--", "sh", "-c", &script]).status().unwrap().success());
    }

    /// Deletes the filler.
    pub fn free(&self) {
        assert!(self.enter().args(["--", "rm"]).arg(self.path.join("filler")).status().unwrap().success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.holder.kill());
        drop(self.holder.wait());
    }
}
