//! The list of transports: one line each.

use super::{Settings, Transport, homa, null, shm, socket, synthetic, verbs};
use crate::options::UsageError;
use serde::{Deserialize, Serialize};
use std::ops::Deref;

macro_rules! registry {
    ($($(#[$attribute:meta])+ $variant:ident $name:literal => $transport:expr;)+) => {
        /// A transport's name; it dereferences to the transport.
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize,
            Deserialize,
        )]
        pub enum TransportKind { $($(#[$attribute])+ #[serde(rename = $name)] $variant,)+ }

        /// All, in the order in which they are listed.
        const REGISTRY: &[(TransportKind, &str, &dyn Transport)] =
            &[$((TransportKind::$variant, $name, &$transport),)+];

        impl TransportKind {
            /// All, in the order in which they are listed.
            pub const ALL: &'static [TransportKind] = &[$(TransportKind::$variant,)+];
        }
    };
}

registry! {
    /// TCP.
    #[default]
    Tcp "tcp" => socket::TCP;
    /// UDP.
    Udp "udp" => socket::UDP;
    /// Unix domain stream socket.
    Unix "unix" => socket::UNIX;
    /// Unix domain datagram socket.
    Unixgram "unixgram" => socket::UNIXGRAM;
    /// A lock-free ring in POSIX shared memory.
    Shm "shm" => shm::Shm;
    /// Homa, where the kernel has it.
    Homa "homa" => homa::Homa;
    /// Datagrams of samples through a node of VILLASnode.
    Villas "villas" => socket::Villas;
    /// RDMA verbs.
    Verbs "verbs" => verbs::Verbs;
    /// No delay: the instrument overhead.
    Null "null" => null::Null;
    /// Simulated delays, stalls, loss and clocks on a virtual clock.
    Synthetic "synthetic" => synthetic::Simulated;
}

impl Deref for TransportKind {
    type Target = dyn Transport;

    fn deref(&self) -> &'static dyn Transport {
        REGISTRY[*self as usize].2
    }
}

impl TransportKind {
    /// The name as typed and recorded.
    pub const fn name(self) -> &'static str {
        REGISTRY[self as usize].1
    }

    /// The transport of this name.
    pub fn from_name(name: &str) -> Option<TransportKind> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// The transport that carries nothing.
    pub fn instrument() -> TransportKind {
        Self::first(|kind| kind.descriptor().is_instrument)
    }

    /// The transport that simulates time.
    pub fn simulated() -> TransportKind {
        Self::first(TransportKind::simulates_time)
    }

    /// Whether its time is simulated, so that no clock of this host is read.
    pub fn simulates_time(self) -> bool {
        self.virtual_clock().is_some()
    }

    /// Whether it has an option.
    pub fn has_setting(self, name: &str) -> bool {
        self.descriptor().settings.iter().any(|option| option.name == name)
    }

    /// Refuses settings that it does not have.
    pub fn check_settings(self, settings: &Settings) -> Result<(), UsageError> {
        let unknown = settings.iter().find(|(name, _)| !self.has_setting(name));
        let Some((name, _)) = unknown else { return settings.check_together() };
        let own: Vec<String> =
            self.descriptor().settings.iter().map(|own| format!("--{}", own.name)).collect();
        let supported = match own.as_slice() {
            [] => "no transport options".to_string(),
            some => some.join(", "),
        };
        Err(UsageError(format!("{self} does not support --{name}; it supports {supported}")))
    }

    fn first(has: impl Fn(TransportKind) -> bool) -> TransportKind {
        Self::ALL.iter().copied().find(|kind| has(*kind)).unwrap_or_default()
    }
}

impl std::fmt::Display for TransportKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_its_transport() {
        for (number, (kind, name, transport)) in REGISTRY.iter().enumerate() {
            assert_eq!(*kind as usize, number);
            assert_eq!(TransportKind::ALL[number], *kind);
            assert_eq!(TransportKind::from_name(name), Some(*kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), **name);
            assert_eq!(kind.descriptor().about, transport.descriptor().about);
        }
    }

    #[test]
    fn there_is_an_instrument_and_a_simulation() {
        assert!(TransportKind::instrument().descriptor().is_instrument);
        assert!(TransportKind::simulated().simulates_time());
    }
}
