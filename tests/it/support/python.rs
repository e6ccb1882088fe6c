//! The Python whose readers and arithmetic are not ours.

use std::path::{Path, PathBuf};

/// How to install what the tests of the formats need.
pub const READERS: &str = "python3 -m venv target/readers && \
                           target/readers/bin/pip install pyarrow duckdb polars pandas \
                           matplotlib hdrhistogram prometheus_client";

/// The Python that has the readers: `WIREGAUGE_PYTHON`, or the environment under `target/`.
pub fn python() -> PathBuf {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/readers/bin/python");
    match std::env::var_os("WIREGAUGE_PYTHON") {
        Some(python) => python.into(),
        None if made.exists() => made,
        None => "python3".into(),
    }
}
