//! The working directory of one script, and the lock that one attempt of a visit holds.
//!
//! Both are in a directory of this user in the system's temporary directory. The lock is a file beside the script's
//! directory, so a script of another user cannot remove it. The supervisor and the processes of the script hold it, and
//! the system frees it when all of them are dead.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use windlass_engine::id::RunId;

use super::launcher::ScriptStartFailure;
use super::user::ScriptUser;

const ROOT_MODE: u32 = 0o711;
const LOCK_ENDING: &str = ".lock";
/// How often, and how far apart, the removal of a directory is tried.
const REMOVE_TRIES: usize = 5;
const REMOVE_PAUSE: Duration = Duration::from_millis(50);

/// The directory with the scripts of this user. Its name is known, so it must belong to this user alone.
pub(super) fn open_root() -> io::Result<PathBuf> {
    let own = geteuid().as_raw();
    let root = std::env::temp_dir().join(format!("windlass-scripts-{own}"));
    match DirBuilder::new().mode(ROOT_MODE).create(&root) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let found = fs::symlink_metadata(&root)?;
    if !found.is_dir() || found.uid() != own {
        let message = format!(
            "{} belongs to another user: remove it, or set TMPDIR to another directory",
            root.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    // The script's user must be able to enter a directory whose name it knows; every one in there is private.
    if found.mode() & 0o777 != ROOT_MODE {
        fs::set_permissions(&root, Permissions::from_mode(ROOT_MODE))?;
    }
    Ok(root)
}

/// The directory of the scripts of one visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ScriptDir {
    root: PathBuf,
    name: String,
}

impl ScriptDir {
    /// All attempts of a visit have the same key, and so the same directory and lock.
    pub(super) fn of_visit(root: PathBuf, run: RunId, key: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        ScriptDir { root, name: format!("{run}-{:016x}", hasher.finish()) }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.root.join(&self.name)
    }

    pub(super) fn lock_file(&self) -> PathBuf {
        self.root.join(format!("{}{LOCK_ENDING}", self.name))
    }

    /// The lock of the visit; `None` = an earlier attempt still lives.
    pub(super) fn try_lock(&self) -> io::Result<Option<ScriptLock>> {
        let path = self.lock_file();
        loop {
            File::options().create(true).truncate(false).write(true).mode(0o600).open(&path)?;
            // Processes of the script inherit it, so it is not for writing.
            let file = match File::open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The holder before removed the file while this process opened it: then its lock is worth nothing.
            let is_current = fs::metadata(&path).is_ok_and(|now| {
                file.metadata().is_ok_and(|held| (held.dev(), held.ino()) == (now.dev(), now.ino()))
            });
            if is_current {
                return Ok(Some(ScriptLock { dir: self.clone(), file }));
            }
        }
    }
}

/// The right to run the script of a visit. Dropping it removes the directory, then the lock.
#[derive(Debug)]
pub(super) struct ScriptLock {
    dir: ScriptDir,
    file: File,
}

impl ScriptLock {
    /// Makes the directory, with the script's code, and removes one that a killed supervisor left.
    pub(super) fn make_dir(
        self,
        code: Option<&(String, String)>,
        user: Option<ScriptUser>,
    ) -> io::Result<Self> {
        let path = self.dir.path();
        remove(&path)?;
        DirBuilder::new().mode(0o700).create(&path)?;
        if let Some((name, text)) = code {
            fs::write(path.join(name), text)?;
        }
        if let Some(ScriptUser { uid, gid }) = user {
            if let Some((name, _)) = code {
                chown(path.join(name), Some(uid), Some(gid))?;
            }
            chown(&path, Some(uid), Some(gid))?;
        }
        fs::write(self.dir.lock_file(), "")?;
        Ok(self)
    }

    /// Lets the children of this process hold the lock as well, so that it is free only when all of them are gone, even
    /// if this process is killed.
    pub(super) fn share_with_children(&self) -> io::Result<()> {
        Ok(fcntl_setfd(&self.file, FdFlags::empty())?)
    }

    /// The reason why the second stage did not become the script, if it wrote one.
    pub(super) fn start_failure(&self) -> Option<ScriptStartFailure> {
        let text = fs::read_to_string(self.dir.lock_file()).ok()?;
        serde_json::from_str(&text).ok()
    }
}

impl Drop for ScriptLock {
    fn drop(&mut self) {
        // The next start of a server tries again.
        if remove(&self.dir.path()).is_ok() {
            let _ = fs::remove_file(self.dir.lock_file());
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    let mut n_tries = 0;
    loop {
        match fs::remove_dir_all(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if n_tries == REMOVE_TRIES => return Err(error),
            // A process that was killed a moment ago may still be writing.
            Err(_) => std::thread::sleep(REMOVE_PAUSE),
        }
        n_tries += 1;
    }
}

/// Removes the directories of scripts whose supervisors were killed; returns their number.
pub(super) fn remove_leftovers(root: &Path) -> io::Result<usize> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(root)? {
        if let Ok(name) = entry?.file_name().into_string() {
            names.insert(name.strip_suffix(LOCK_ENDING).map(str::to_owned).unwrap_or(name));
        }
    }
    let mut n_removed = 0;
    for name in names {
        // The lock of a script that lives, of this server or another one, is not free.
        if let Some(lock) = (ScriptDir { root: root.to_owned(), name }).try_lock()? {
            n_removed += usize::from(lock.dir.path().exists());
        }
    }
    Ok(n_removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        let root = std::env::temp_dir().join(format!("windlass-test-{}", uuid::Uuid::now_v7().simple()));
        fs::create_dir(&root).unwrap();
        root
    }

    fn dir(root: &Path, key: &str) -> ScriptDir {
        ScriptDir::of_visit(root.to_owned(), RunId::new(uuid::Uuid::from_u128(7)), key)
    }

    #[test]
    fn one_attempt_of_a_visit_holds_the_lock() {
        let root = root();
        let first = dir(&root, "a/1").try_lock().unwrap().expect("no other holds it");
        assert!(dir(&root, "a/1").try_lock().unwrap().is_none());
        assert!(dir(&root, "a/2").try_lock().unwrap().is_some(), "another visit");
        let first = first.make_dir(Some(&("script.sh".to_owned(), "echo".to_owned())), None).unwrap();
        assert!(first.dir.path().join("script.sh").is_file());
        drop(first);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0, "nothing is left");
        assert!(dir(&root, "a/1").try_lock().unwrap().is_some());
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn leftovers_go_and_living_scripts_stay() {
        let root = root();
        let living = dir(&root, "lives").try_lock().unwrap().unwrap().make_dir(None, None).unwrap();
        for name in ["dead", "without-lock"] {
            fs::create_dir_all(root.join(name).join("deep")).unwrap();
        }
        fs::write(root.join("dead.lock"), "").unwrap();
        assert_eq!(remove_leftovers(&root).unwrap(), 2);
        let left: Vec<_> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
        assert!(left.contains(&living.dir.path()) && left.contains(&living.dir.lock_file()));
        fs::remove_dir_all(&root).unwrap();
    }
}
