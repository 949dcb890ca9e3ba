//! Figures: median and spread of what was measured.

use serde_json::{Value, json};

/// One thing that was measured several times.
#[derive(Debug, Clone)]
pub(super) struct Figure {
    what: String,
    unit: &'static str,
    values: Vec<f64>,
}

impl Figure {
    pub(super) fn new(what: impl Into<String>, unit: &'static str, mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Figure { what: what.into(), unit, values }
    }

    fn median(&self) -> f64 {
        self.values.get(self.values.len() / 2).copied().unwrap_or(f64::NAN)
    }

    fn ends(&self) -> (f64, f64) {
        let at = |value: Option<&f64>| value.copied().unwrap_or(f64::NAN);
        (at(self.values.first()), at(self.values.last()))
    }
}

/// Everything that was measured, and on what.
pub(super) struct Report {
    store: &'static str,
    durability: &'static str,
    /// Syncs of the disk per second, before and after.
    syncs: (f64, f64),
    figures: Vec<Figure>,
}

impl Report {
    pub(super) fn new(store: &'static str, durability: &'static str, syncs: f64) -> Self {
        Report { store, durability, syncs: (syncs, syncs), figures: Vec::new() }
    }

    pub(super) fn extend(&mut self, figures: impl IntoIterator<Item = Figure>) {
        self.figures.extend(figures);
    }

    pub(super) fn close(&mut self, syncs: f64) {
        self.syncs.1 = syncs;
    }

    pub(super) fn rows(&self) -> Vec<[String; 4]> {
        let row = |figure: &Figure| {
            let (low, high) = figure.ends();
            let spread = format!("{} – {}", number(low), number(high));
            [figure.what.clone(), number(figure.median()), spread, figure.unit.to_owned()]
        };
        self.figures.iter().map(row).collect()
    }

    /// The same as a table in Markdown, with what it stands on below.
    pub(super) fn markdown(&self) -> String {
        let mut text = "| what | median | spread | unit |\n|---|---|---|---|\n".to_owned();
        for [what, median, spread, unit] in self.rows() {
            text.push_str(&format!("| {what} | {median} | {spread} | {unit} |\n"));
        }
        format!("{text}\n{}.", self.footing())
    }

    /// On what the figures stand.
    pub(super) fn footing(&self) -> String {
        format!(
            "{}, durability {}; the disk made {} syncs/s before and {} after; {} processors",
            self.store,
            self.durability,
            number(self.syncs.0),
            number(self.syncs.1),
            std::thread::available_parallelism().map_or(1, usize::from),
        )
    }

    pub(super) fn to_json(&self) -> Value {
        let figure = |figure: &Figure| {
            let (low, high) = figure.ends();
            json!({
                "what": figure.what, "unit": figure.unit, "median": figure.median(),
                "low": low, "high": high, "values": figure.values,
            })
        };
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "store": self.store,
            "durability": self.durability,
            "syncs_per_second": {"before": self.syncs.0, "after": self.syncs.1},
            "processors": std::thread::available_parallelism().map_or(1, usize::from),
            "figures": self.figures.iter().map(figure).collect::<Vec<_>>(),
        })
    }
}

/// Three digits that count.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        let figure = Figure::new("x", "s", vec![3.0, 1.0, 2.0]);
        assert_eq!(figure.median(), 2.0);
        assert_eq!(figure.ends(), (1.0, 3.0));
    }

    #[test]
    fn a_table_in_markdown_has_a_line_for_every_figure() {
        let mut report = Report::new("sqlite", "strict", 10.0);
        report.extend([Figure::new("x", "s", vec![3.0, 1.0, 2.0])]);
        let text = report.markdown();
        assert!(text.contains("| x | 2.00 | 1.00 – 3.00 | s |\n\nsqlite, durability strict;"), "{text}");
    }

    #[test]
    fn numbers_have_as_many_digits_as_count() {
        assert_eq!(number(12_345.6), "12346");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(0.123), "0.12");
    }
}
