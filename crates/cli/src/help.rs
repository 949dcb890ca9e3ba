//! What stands under the help of a command: examples, and what it ends with.

/// Examples and exit codes as one text: `concat!` takes no constants.
macro_rules! help {
    ($example:literal, $codes:expr) => {
        [concat!("Examples:\n", $example, "\n\n"), $codes].concat()
    };
}

pub(crate) use help;
