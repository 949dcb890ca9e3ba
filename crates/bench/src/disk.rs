//! The sync rate of the disk, which bounds most other figures.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How long the disk is measured.
const MEASURE_TIME: Duration = Duration::from_millis(500);

/// Syncs of one page per second.
pub(crate) fn syncs_per_second(dir: &Path) -> Result<f64> {
    let path = dir.join("syncs");
    let mut file = File::create(&path).with_context(|| format!("{} cannot be written", path.display()))?;
    let (page, begun) = ([7_u8; 4_096], Instant::now());
    let mut n = 0_u32;
    while begun.elapsed() < MEASURE_TIME {
        file.write_all(&page)?;
        file.sync_data()?;
        n += 1;
    }
    let rate = f64::from(n) / begun.elapsed().as_secs_f64();
    std::fs::remove_file(&path)?;
    Ok(rate)
}
