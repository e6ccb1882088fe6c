//! The list of transports: one line each.

use super::{Descriptor, Opening, Result, Settings, Setup};
use super::{homa, mpi, null, shm, socket, synthetic, verbs};
use wiregauge_base::options::{UsageError, named_enum};

macro_rules! registry {
    ($($(#[$attribute:meta])+ $variant:ident $name:literal => $transport:expr;)+) => {
        named_enum! {
            /// A transport's name.
            #[derive(Default, PartialOrd, Ord)]
            pub enum TransportKind { $($(#[$attribute])+ $variant = $name,)+ }
        }

        /// All, in the order in which they are listed.
        const REGISTRY: &[&Descriptor] = &[$(&$transport,)+];
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
    /// A lock-free ring in shared memory.
    Shm "shm" => shm::DESCRIPTOR;
    /// Homa, where the kernel has it.
    Homa "homa" => homa::DESCRIPTOR;
    /// Datagrams of samples through a node of VILLASnode.
    Villas "villas" => socket::VILLAS;
    /// RDMA verbs.
    Verbs "verbs" => verbs::DESCRIPTOR;
    /// MPI, whichever is installed.
    Mpi "mpi" => mpi::DESCRIPTOR;
    /// No delay: the instrument overhead.
    Null "null" => null::DESCRIPTOR;
    /// Simulated delays, stalls, loss and clocks on a virtual clock.
    Synthetic "synthetic" => synthetic::DESCRIPTOR;
}

impl TransportKind {
    /// The transport of this name.
    pub const fn descriptor(self) -> &'static Descriptor {
        REGISTRY[self as usize]
    }

    /// Opens one end.
    ///
    /// # Errors
    /// The end cannot be set up.
    pub fn open(self, setup: &Setup) -> Result<Opening> {
        (self.descriptor().open)(setup)
    }

    /// Opens the ends of a thread, which may have something in common.
    ///
    /// # Errors
    /// An end cannot be set up.
    pub fn open_several(self, setup: &Setup, ends: u32) -> Result<Vec<Opening>> {
        match self.descriptor().open_several.filter(|_| ends > 1) {
            Some(open) => open(setup, ends),
            None => (0..ends).map(|_| self.open(setup)).collect(),
        }
    }

    /// Whether it works on this machine; if not, why, in a sentence.
    ///
    /// # Errors
    /// That sentence.
    pub fn available(self) -> Result<(), String> {
        self.available_with(&Settings::default())
    }

    /// The same with these settings.
    ///
    /// # Errors
    /// That sentence.
    pub fn available_with(self, settings: &Settings) -> Result<(), String> {
        (self.descriptor().available)(settings)
    }

    /// Checks the same for two ends on this host.
    ///
    /// # Errors
    /// That sentence.
    pub fn available_within_host(self, settings: &Settings) -> Result<(), String> {
        self.available_with(settings)?;
        if self.descriptor().over_loopback { wiregauge_host::check_loopback() } else { Ok(()) }
    }

    /// Whether a message may be lost without an error, with these settings.
    pub fn loses(self, settings: &Settings) -> bool {
        self.descriptor().loses && (self.descriptor().loses_with)(settings)
    }

    /// Whether the messages of a connection keep their order, with these settings.
    pub fn keeps_order(self, settings: &Settings) -> bool {
        self.descriptor().ordered || (self.descriptor().ordered_with)(settings)
    }

    /// The transport that carries nothing.
    pub const INSTRUMENT: TransportKind = TransportKind::Null;

    /// The transport that simulates time.
    pub const SIMULATED: TransportKind = TransportKind::Synthetic;

    /// Whether its time is simulated, so that no clock of this host is read.
    pub fn simulates_time(self) -> bool {
        self.descriptor().virtual_clock.is_some()
    }

    /// Whether it has an option.
    pub fn has_setting(self, name: &str) -> bool {
        self.descriptor().settings.iter().any(|option| option.name == name)
    }

    /// Refuses settings that it does not have.
    pub fn check_settings(self, settings: &Settings) -> Result<(), UsageError> {
        let unknown = settings.iter().find(|(name, _)| !self.has_setting(name));
        let Some((name, _)) = unknown else { return settings.check_together() };
        let others = TransportKind::ALL.iter().filter(|other| other.has_setting(name));
        let names: Vec<&str> = others.map(|other| other.name()).collect();
        let first = names.first().copied().unwrap_or_default();
        Err(UsageError(format!(
            "{self} does not support --{name}, which belongs to {}: use --transport {first}, or \
             leave it out",
            names.join(", ")
        )))
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
    use wiregauge_base::options::Named;

    #[test]
    fn a_name_leads_to_its_transport() {
        assert_eq!(TransportKind::ALL.len(), REGISTRY.len());
        for (number, (kind, transport)) in TransportKind::ALL.iter().zip(REGISTRY).enumerate() {
            assert_eq!(*kind as usize, number);
            assert_eq!(TransportKind::from_name(kind.name()), Some(*kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), *kind.name());
            assert_eq!(kind.descriptor().about, transport.about);
        }
    }

    #[test]
    fn order_and_loss_are_known_before_anything_runs() {
        let with = |values: &[(&str, &str)]| {
            let settings = Settings::of_values(values.iter().copied()).unwrap();
            let kind = TransportKind::Verbs;
            (kind.keeps_order(&settings), kind.loses(&settings))
        };
        for service in ["rc", "xrc", "dc"] {
            assert_eq!(with(&[("service", service)]), (true, false));
        }
        assert_eq!(with(&[("service", "uc")]), (true, true));
        assert_eq!(with(&[("service", "srd")]), (false, false));
        assert_eq!(with(&[("queue-pairs", "2")]), (false, false));
        assert!(TransportKind::Tcp.keeps_order(&Settings::default()));
        assert!(!TransportKind::Udp.keeps_order(&Settings::default()));
    }

    #[test]
    fn there_is_an_instrument_and_a_simulation() {
        assert_eq!(TransportKind::INSTRUMENT.descriptor().path, "nothing but the loop itself");
        assert!(TransportKind::SIMULATED.simulates_time());
    }
}
