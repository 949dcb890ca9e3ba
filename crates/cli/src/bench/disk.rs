//! What the disk can do: the ground all other figures stand on.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How long the disk is tried.
const TRIAL: Duration = Duration::from_millis(500);

/// How often per second this disk makes a page durable.
pub(super) fn syncs_per_second(dir: &Path) -> Result<f64> {
    let path = dir.join("syncs");
    let mut file = File::create(&path).with_context(|| format!("{} cannot be written", path.display()))?;
    let (page, begun) = ([7_u8; 4_096], Instant::now());
    let mut n = 0_u32;
    while begun.elapsed() < TRIAL {
        file.write_all(&page)?;
        file.sync_data()?;
        n += 1;
    }
    let rate = f64::from(n) / begun.elapsed().as_secs_f64();
    std::fs::remove_file(&path)?;
    Ok(rate)
}
