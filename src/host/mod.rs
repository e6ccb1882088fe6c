//! The machine: pinning, memory locking, the noise floor, and the fingerprint of rule 22.

use serde::{Deserialize, Serialize};

/// What a result depends on (rule 22), as far as this host shows it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Host name.
    pub host: String,
}
