//! The options of all transports, against which settings are checked.

use super::registry::TransportKind;
use super::settings::Settings;
use crate::options::{Given, OptionDef};
use std::sync::{Arc, OnceLock};

/// The options of all transports, each once.
pub fn definitions() -> &'static Arc<[&'static OptionDef]> {
    static ALL: OnceLock<Arc<[&'static OptionDef]>> = OnceLock::new();
    ALL.get_or_init(|| {
        let tables = TransportKind::ALL.iter().map(|transport| transport.descriptor().settings);
        Given::of_tables(tables).definitions().into()
    })
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::of_definitions(Arc::clone(definitions()))
    }
}
