//! Settings of the transport under test: the options that several transports have, and the values
//! that were given to a transport.
//!
//! A transport lists its options in its [`Descriptor`](super::Descriptor). An option that several
//! transports have is declared here, once. Whatever a plan, a message or a record holds as settings
//! was checked against these tables when it was read.

use super::per_end::{InterfaceName, PerEnd};
use super::traffic::Operation;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use wiregauge_base::options::{Given, OptionDef, UsageError};
use wiregauge_base::units::Span;
use wiregauge_host::Family;

/// SO_SNDBUF.
pub const SEND_BUFFER: OptionDef = OptionDef::size(
    "send-buffer",
    "Socket send buffer (SO_SNDBUF), such as 4MiB; the record has the size that the kernel granted",
);
/// SO_RCVBUF.
pub const RECEIVE_BUFFER: OptionDef =
    OptionDef::size("receive-buffer", "Socket receive buffer (SO_RCVBUF), such as 4MiB");
/// SO_BUSY_POLL: the kernel polls the device queue before it sleeps.
pub const BUSY_POLL: OptionDef = OptionDef::text(
    "busy-poll",
    |text| microseconds(text).map(drop),
    "Let the kernel poll the device for this time before it sleeps (SO_BUSY_POLL), such as 50us",
)
.metavar("TIME");
/// The DSCP code point.
pub const DSCP: OptionDef = OptionDef::count("dscp", "DSCP code point").limits(0, 63);
/// Whose addresses the ends use.
pub const INTERFACE: OptionDef = OptionDef::parsed::<Interfaces>(
    "interface",
    "Network interface of both ends, such as ib0, or of the client and the server, such as \
     ib0,ib1; between hosts tcp and udp are bound to it",
)
.metavar("NAME")
.per_end()
.default_note("loopback");
/// The version of IP of the ends' addresses.
pub const FAMILY: OptionDef = OptionDef::choice::<Family>(
    "family",
    "IP version of both ends: their loopback's or interface's address of it",
)
.metavar("VERSION")
.default_note("IPv4 where there is an address of it");
/// What a post does.
pub const OPERATION: OptionDef =
    OptionDef::choice::<Operation>("operation", "Operation of each post").default("send");

/// Whole microseconds, as SO_BUSY_POLL takes them.
fn microseconds(text: &str) -> Result<u32, String> {
    let time = text.parse::<Span>().map_err(|error| error.to_string())?;
    let whole = Some(time.0 / 1000).filter(|_| time.0.is_multiple_of(1000));
    whole
        .and_then(|us| u32::try_from(us).ok())
        .filter(|us| i32::try_from(*us).is_ok())
        .ok_or_else(|| format!("invalid time '{text}': use whole microseconds such as 50us"))
}

/// An address with a port.
pub fn check_address(text: &str) -> Result<(), String> {
    let address = text.parse().ok().filter(|address: &SocketAddr| address.port() != 0);
    address.map(drop).ok_or_else(|| {
        format!("invalid address '{text}': use ADDRESS:PORT such as 127.0.0.1:12000 or [::1]:12000")
    })
}

/// A network interface for each end, by name.
pub type Interfaces = PerEnd<InterfaceName>;

/// The values that were given to the transport under test, by the names of their options.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings(Given);

impl Deref for Settings {
    type Target = Given;

    fn deref(&self) -> &Given {
        &self.0
    }
}

impl Settings {
    /// No settings yet, of these options.
    pub(super) fn of_definitions(definitions: Arc<[&'static OptionDef]>) -> Settings {
        Settings(Given::of_definitions(definitions))
    }

    /// Settings of these values.
    pub fn of_values<'a>(
        values: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Settings, UsageError> {
        let mut settings = Settings::default();
        values.into_iter().try_for_each(|(name, text)| settings.set(name, text))?;
        Ok(settings)
    }

    /// Gives a setting a value.
    pub fn set(&mut self, name: &str, text: impl Into<String>) -> Result<(), UsageError> {
        self.0.set(name, text)
    }

    /// Gives a setting a value where none was given.
    pub fn set_default(&mut self, name: &str, text: &str) -> Result<(), UsageError> {
        if self.is_given(name) { Ok(()) } else { self.set(name, text) }
    }

    /// Takes a value back.
    pub fn unset(&mut self, name: &str) {
        self.0.unset(name);
    }

    /// What a post does.
    pub fn operation(&self) -> Operation {
        self.choice("operation").unwrap_or_default()
    }

    /// Whose addresses the ends use; `None`: loopback.
    pub fn interfaces(&self) -> Option<Interfaces> {
        self.get("interface")
    }

    /// The version of IP of the ends' addresses; `None`: IPv4 where there is an address of it.
    pub fn family(&self) -> Option<Family> {
        self.choice("family")
    }

    /// SO_BUSY_POLL in microseconds.
    pub fn busy_poll_us(&self) -> Option<u32> {
        self.read("busy-poll", microseconds)
    }

    /// Whether messages carry the last time at which they were still at the sender.
    pub fn stamps_send(&self) -> bool {
        self.flag("stamp-send")
    }
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Settings, D::Error> {
        let values = BTreeMap::<String, String>::deserialize(deserializer)?;
        let values = values.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        Settings::of_values(values).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TransportKind;
    use crate::definitions::DEFINITIONS;

    #[test]
    fn an_option_means_the_same_to_all_transports_that_have_it() {
        for transport in TransportKind::ALL {
            for own in transport.descriptor().settings {
                let shared = DEFINITIONS.iter().find(|one| one.name == own.name).unwrap();
                let differs = format!("--{} of {transport} is declared twice", own.name);
                assert_eq!(shared.help_text(), own.help_text(), "{differs}");
                assert_eq!(shared.metavar, own.metavar, "{differs}");
                let default = own.default.map_or(Ok(()), |text| own.check(text));
                assert_eq!(default, Ok(()), "the default of --{}", own.name);
            }
        }
    }

    #[test]
    fn settings_are_a_map_that_is_checked_when_it_is_read() {
        let settings = Settings::of_values([("mss", "1448"), ("zerocopy", "on")]).unwrap();
        let json = serde_json::to_string(&settings).unwrap();
        assert_eq!(json, r#"{"mss":"1448","zerocopy":"on"}"#);
        assert_eq!(serde_json::from_str::<Settings>(&json).unwrap(), settings);
        let frame = postcard::to_stdvec(&settings).unwrap();
        assert_eq!(postcard::from_bytes::<Settings>(&frame).unwrap(), settings);
        for wrong in [r#"{"mss":"1"}"#, r#"{"colour":"red"}"#, r#"{"dscp":"64"}"#] {
            assert!(serde_json::from_str::<Settings>(wrong).is_err(), "{wrong}");
        }
    }
}
