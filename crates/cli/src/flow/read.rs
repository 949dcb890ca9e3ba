//! Reading the text of a definition from a file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use windlass_engine::limits;

/// Reads the text of a definition, up to the largest size of one.
pub(crate) fn read(file: &Path) -> Result<String> {
    let open = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    let most = limits::DEFINITION_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    open.take(most).read_to_end(&mut bytes).with_context(|| format!("cannot read {}", file.display()))?;
    if bytes.len() as u64 == most {
        bail!("{} is larger than {} bytes: split the flow", file.display(), limits::DEFINITION_BYTES);
    }
    String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8 text", file.display()))
}
