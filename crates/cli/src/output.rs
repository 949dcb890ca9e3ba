//! The only place that writes: data to stdout, messages to stderr. A reader that went away is no error.

use std::io::{self, Write};

use anyhow::Result;
use serde::Serialize;

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs: one valid JSON value.
    Json,
}

/// Prints one line of data.
pub(crate) fn line(text: &str) -> Result<()> {
    written(writeln!(io::stdout().lock(), "{text}"))
}

/// Prints a value as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Prints rows under a heading, columns aligned; the last column takes what room it needs.
pub(crate) fn table<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> Result<()> {
    let mut widths = heading.map(|name| name.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    line(&aligned(&heading.map(str::to_uppercase), &widths))?;
    rows.iter().try_for_each(|row| line(&aligned(row, &widths)))
}

fn aligned(cells: &[String], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

/// Tells a person something that is not data.
pub(crate) fn message(text: &str) {
    // Nobody is left to be told when stderr is gone.
    let _gone = writeln!(io::stderr().lock(), "{text}");
}

fn written(outcome: io::Result<()>) -> Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_end_clean() {
        let cells = ["größe".to_owned(), "b".to_owned()];
        assert_eq!(aligned(&cells, &[7, 4]), "größe    b");
    }

    #[test]
    fn a_reader_that_went_away_is_no_error() {
        let kind = |kind| written(Err(io::Error::from(kind)));
        assert!(kind(io::ErrorKind::BrokenPipe).is_ok());
        assert!(kind(io::ErrorKind::StorageFull).is_err());
    }
}
