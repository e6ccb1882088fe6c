//! The transports that this build knows: one line each, and the one `match` of a run.

use super::{Settings, Transport, TransportRequest, homa, null, shm, socket, synthetic, verbs};
use crate::options::{OptionTable, UsageError};
use crate::transport::Traffic;
use serde::{Deserialize, Serialize};

/// What can be asked of a transport, known before anything runs.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// One line for `wiregauge list`.
    pub about: &'static str,
    /// Largest message in bytes.
    pub largest: u64,
    /// What traffic it carries.
    pub traffic: &'static [Traffic],
    /// Whether a message may be lost without an error.
    pub loses: bool,
    /// Whether messages keep their order.
    pub ordered: bool,
    /// Whether it simulates the other end, so that one process plays both roles one after the
    /// other.
    pub one_process: bool,
    /// Whether its ends may be on two hosts.
    pub between_hosts: bool,
    /// Whether a message must be a stream's sample, which it carries in a form of its own.
    pub samples_only: bool,
    /// Whether the kernel can watch many of its ends at once, and lets two threads share one.
    pub watchable: bool,
    /// The options that it has.
    pub settings: OptionTable,
    /// What lies between submit and receive, for the record.
    pub path: &'static str,
}

/// Something that is to be done with a transport's type.
pub trait Visitor {
    /// What it gives.
    type Output;
    /// Does it. Compiled once a transport.
    fn visit<T: Transport>(self) -> Self::Output;
}

macro_rules! registry {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal => $type:ty;)+) => {
        /// A transport's name.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum TransportKind { $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+ }

        impl TransportKind {
            /// All, in the order in which they are listed.
            pub const ALL: &'static [TransportKind] = &[$(TransportKind::$variant,)+];

            /// The name as typed and recorded.
            pub const fn name(self) -> &'static str {
                match self { $(TransportKind::$variant => $name,)+ }
            }

            /// What can be asked of it.
            pub const fn descriptor(self) -> Descriptor {
                match self { $(TransportKind::$variant => <$type as Transport>::DESCRIPTOR,)+ }
            }
        }

        /// Calls the visitor with the type of a transport: the only place where a name becomes
        /// code.
        pub fn with_transport<V: Visitor>(kind: TransportKind, visitor: V) -> V::Output {
            match kind { $(TransportKind::$variant => visitor.visit::<$type>(),)+ }
        }
    };
}

registry! {
    /// TCP.
    Tcp "tcp" => socket::Tcp;
    /// UDP.
    Udp "udp" => socket::Udp;
    /// Unix domain stream socket.
    Unix "unix" => socket::UnixStream;
    /// Unix domain datagram socket.
    Unixgram "unixgram" => socket::UnixDatagram;
    /// A lock-free ring in POSIX shared memory.
    Shm "shm" => shm::Shm;
    /// Homa, where the kernel has it.
    Homa "homa" => homa::Homa;
    /// Datagrams of samples through a node of VILLASnode.
    Villas "villas" => socket::Villas;
    /// RDMA verbs.
    Verbs "verbs" => verbs::Verbs;
    /// No delay: the instrument's floor.
    Null "null" => null::Null;
    /// Simulated delays, stalls, loss and clocks on a virtual clock.
    Synthetic "synthetic" => synthetic::Simulated;
}

impl TransportKind {
    /// Whether it works on this machine; if not, why, in a sentence.
    pub fn available(self) -> Result<(), String> {
        struct Available;
        impl Visitor for Available {
            type Output = Result<(), String>;
            fn visit<T: Transport>(self) -> Self::Output {
                T::available()
            }
        }
        with_transport(self, Available)
    }

    /// Whether a message may be lost without an error, asked like this.
    pub fn loses(self, settings: &Settings) -> bool {
        struct Loses<'a>(&'a Settings);
        impl Visitor for Loses<'_> {
            type Output = bool;
            fn visit<T: Transport>(self) -> Self::Output {
                T::loses(self.0)
            }
        }
        with_transport(self, Loses(settings))
    }

    /// Whether each post, asked like this, makes a completion that says when it was done.
    pub fn completes_each(self, settings: &Settings) -> bool {
        struct Completes<'a>(&'a Settings);
        impl Visitor for Completes<'_> {
            type Output = bool;
            fn visit<T: Transport>(self) -> Self::Output {
                T::completes_each(self.0)
            }
        }
        with_transport(self, Completes(settings))
    }

    /// The NUMA node of the adapter that it would use, where there is one and it is known.
    pub fn numa_node(self, settings: &Settings) -> Option<u32> {
        struct Node<'a>(&'a Settings);
        impl Visitor for Node<'_> {
            type Output = Option<u32>;
            fn visit<T: Transport>(self) -> Self::Output {
                T::numa_node(self.0)
            }
        }
        with_transport(self, Node(settings))
    }

    /// Why it cannot be asked this, in a sentence that says what is allowed.
    pub fn check(self, request: &TransportRequest<'_>) -> Result<(), String> {
        struct Check<'a, 'b>(&'a TransportRequest<'b>);
        impl Visitor for Check<'_, '_> {
            type Output = Result<(), String>;
            fn visit<T: Transport>(self) -> Self::Output {
                T::check(self.0)
            }
        }
        with_transport(self, Check(request))
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

    /// The transport of this name.
    pub fn from_name(name: &str) -> Option<TransportKind> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

impl std::fmt::Display for TransportKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
