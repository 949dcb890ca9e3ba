//! The working directory of one script: private, and removed with the script.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;
use windlass_engine::plan::Script;

/// How often, and how far apart, the removal of a directory is tried: the killed are gone long before.
const REMOVE_TRIES: usize = 5;
const REMOVE_PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Workshop {
    pub(super) path: PathBuf,
    /// The script's code, if it brought some.
    pub(super) code: Option<PathBuf>,
}

impl Workshop {
    pub(super) async fn open(script: &Script) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("windlass-script-{}", Uuid::now_v7().simple()));
        let (code, extension) = (script.code.clone(), extension(&script.language));
        let made = tokio::task::spawn_blocking(move || {
            // An existing directory belongs to another process: this fails.
            std::fs::DirBuilder::new().mode(0o700).create(&path)?;
            let mut workshop = Workshop { path, code: None };
            if !code.is_empty() {
                let file = workshop.path.join(format!("script{extension}"));
                std::fs::write(&file, code)?;
                workshop.code = Some(file);
            }
            Ok(workshop)
        });
        made.await.unwrap_or_else(|_| Err(io::Error::other("the server is shutting down")))
    }

    /// Removes it, and comes back when it is gone.
    pub(super) async fn close(mut self) {
        let path = std::mem::take(&mut self.path);
        // If the server stops meanwhile, the directory stays.
        let _ = tokio::task::spawn_blocking(move || remove(&path)).await;
    }
}

/// Some interpreters go by it.
fn extension(language: &str) -> &'static str {
    match language {
        "python" => ".py",
        "javascript" | "node" => ".js",
        "bash" | "sh" => ".sh",
        _ => "",
    }
}

impl Drop for Workshop {
    /// The caller of a canceled script does not wait for the removal.
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.path);
        if path.as_os_str().is_empty() {
            return;
        }
        let left = path.clone();
        if let Err(error) = std::thread::Builder::new().spawn(move || remove(&path)) {
            tracing::warn!(path = %left.display(), %error, "the directory of a script could not be removed");
        }
    }
}

fn remove(path: &Path) {
    let mut removed = std::fs::remove_dir_all(path);
    for _ in 1..REMOVE_TRIES {
        if removed.is_ok() {
            return;
        }
        // A process that was killed a moment ago may still be writing.
        std::thread::sleep(REMOVE_PAUSE);
        removed = std::fs::remove_dir_all(path);
    }
    if let Err(error) = removed {
        tracing::warn!(path = %path.display(), %error, "the directory of a script could not be removed");
    }
}
