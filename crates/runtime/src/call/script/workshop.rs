//! The directory a script works in: nobody else's, and gone when the script is.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use uuid::Uuid;
use windlass_engine::plan::Script;

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
            // One that is there already is somebody else's: this refuses it.
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
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.path);
        let remove = move || {
            if let Err(error) = std::fs::remove_dir_all(&path) {
                tracing::warn!(path = %path.display(), %error, "the directory of a script could not be removed");
            }
        };
        // A script may have left a lot: others need not wait for its removal.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}
