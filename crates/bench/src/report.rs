//! Measurements with median and range, and the report of all of them.

use serde_json::{Value, json};

/// The samples of one quantity.
#[derive(Debug, Clone)]
pub(crate) struct Measurement {
    what: String,
    unit: &'static str,
    values: Vec<f64>,
}

impl Measurement {
    pub(crate) fn new(what: impl Into<String>, unit: &'static str, mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Measurement { what: what.into(), unit, values }
    }

    fn median(&self) -> f64 {
        self.values.get(self.values.len() / 2).copied().unwrap_or(f64::NAN)
    }

    fn ends(&self) -> (f64, f64) {
        let at = |value: Option<&f64>| value.copied().unwrap_or(f64::NAN);
        (at(self.values.first()), at(self.values.last()))
    }
}

/// All measurements, with the store, the durability and the sync rate of the disk.
pub struct BenchReport {
    store: &'static str,
    durability: &'static str,
    /// Syncs of the disk per second, before and after.
    syncs: (f64, f64),
    figures: Vec<Measurement>,
}

impl BenchReport {
    pub(crate) fn new(store: &'static str, durability: &'static str, syncs: f64) -> Self {
        BenchReport { store, durability, syncs: (syncs, syncs), figures: Vec::new() }
    }

    pub(crate) fn extend(&mut self, figures: impl IntoIterator<Item = Measurement>) {
        self.figures.extend(figures);
    }

    pub(crate) fn close(&mut self, syncs: f64) {
        self.syncs.1 = syncs;
    }

    pub fn rows(&self) -> Vec<[String; 4]> {
        let row = |figure: &Measurement| {
            let (low, high) = figure.ends();
            let spread = format!("{} – {}", number(low), number(high));
            [figure.what.clone(), number(figure.median()), spread, figure.unit.to_owned()]
        };
        self.figures.iter().map(row).collect()
    }

    /// A table in Markdown, with the conditions below.
    pub fn markdown(&self) -> String {
        let mut text = "| what | median | spread | unit |\n|---|---|---|---|\n".to_owned();
        for [what, median, spread, unit] in self.rows() {
            text.push_str(&format!("| {what} | {median} | {spread} | {unit} |\n"));
        }
        format!("{text}\n{}.", self.footing())
    }

    /// The conditions of the measurements.
    pub fn footing(&self) -> String {
        format!(
            "{}, durability {}; the disk made {} syncs/s before and {} after; {} processors",
            self.store,
            self.durability,
            number(self.syncs.0),
            number(self.syncs.1),
            std::thread::available_parallelism().map_or(1, usize::from),
        )
    }

    pub fn to_json(&self) -> Value {
        let figure = |figure: &Measurement| {
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

/// Three significant digits.
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
        let figure = Measurement::new("x", "s", vec![3.0, 1.0, 2.0]);
        assert_eq!(figure.median(), 2.0);
        assert_eq!(figure.ends(), (1.0, 3.0));
    }

    #[test]
    fn a_table_in_markdown_has_a_line_for_every_figure() {
        let mut report = BenchReport::new("sqlite", "strict", 10.0);
        report.extend([Measurement::new("x", "s", vec![3.0, 1.0, 2.0])]);
        let text = report.markdown();
        assert!(text.contains("| x | 2.00 | 1.00 – 3.00 | s |\n\nsqlite, durability strict;"), "{text}");
    }

    #[test]
    fn numbers_have_three_significant_digits() {
        assert_eq!(number(12_345.6), "12346");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(0.123), "0.12");
    }
}
