//! The options of all transports, against which settings are checked.

use super::registry::TransportKind;
use super::settings::Settings;
use std::sync::{Arc, LazyLock};
use wiregauge_base::options::{Given, OptionDef};

/// The options of all transports, each once.
pub static DEFINITIONS: LazyLock<Arc<[&'static OptionDef]>> = LazyLock::new(|| {
    let tables = TransportKind::ALL.iter().map(|transport| transport.descriptor().settings);
    Given::of_tables(tables).definitions().into()
});

impl Default for Settings {
    fn default() -> Settings {
        Settings::of_definitions(Arc::clone(&DEFINITIONS))
    }
}
