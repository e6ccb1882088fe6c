//! The studies, which the program has in it.

use include_dir::{Dir, include_dir};
use std::sync::LazyLock;
#[cfg(test)]
pub use wiregauge_plan::shipped::text;
use wiregauge_plan::shipped::{Texts, texts};

static FOLDER: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/studies");

/// The studies: `potter/mtu` and its text.
pub static STUDIES: LazyLock<Texts> = LazyLock::new(|| texts(&FOLDER));
