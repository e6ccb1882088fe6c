//! The service types of queue pairs, and what each supports: asked before anything runs.

use crate::{Operation, SetupError};
use std::fmt::Display;
use wiregauge_base::options::named_enum;

named_enum! {
    /// The service type of a queue pair.
    #[derive(Default)]
    pub enum Service {
        /// Reliable connection.
        #[default]
        Rc = "rc",
        /// Unreliable connection: what is lost stays lost.
        Uc = "uc",
        /// Unreliable datagram: messages up to the MTU, each with its own address.
        Ud = "ud",
        /// Extended reliable connection: a queue pair that sends, one that receives, and a shared
        /// receive queue that each message names.
        Xrc = "xrc",
        /// Dynamically connected (NVIDIA's mlx5): an initiator sends to the target that each work
        /// request names, and the adapters connect them meanwhile.
        Dc = "dc",
        /// Scalable reliable datagram (Amazon's EFA): reliable, in no order.
        Srd = "srd",
    }
}

impl Service {
    /// The operations that it allows: of `rc`, `uc`, `ud` and `xrc` by the InfiniBand
    /// specification, volume 1, table 38; of the others by their providers' manuals
    /// (mlx5dv_wr_post(3), efadv_create_qp_ex(3)). A device may have fewer.
    pub const fn operations(self) -> &'static [Operation] {
        use Operation::*;
        match self {
            Service::Rc | Service::Xrc | Service::Dc => Operation::ALL,
            Service::Uc => &[Send, SendImm, Write, WriteImm],
            Service::Ud => &[Send, SendImm],
            Service::Srd => &[Send, SendImm, Write, WriteImm, Read],
        }
    }

    /// Whether a message may be lost without an error.
    pub const fn loses(self) -> bool {
        matches!(self, Service::Uc | Service::Ud)
    }

    /// Whether the messages of one queue pair arrive in the order in which they were posted, and
    /// the bytes of each from the first to the last.
    pub const fn keeps_order(self) -> bool {
        !matches!(self, Service::Srd)
    }

    /// Whether its queue pairs have attributes of a reliable connection: timeouts, retries, reads
    /// on the way.
    pub const fn retries(self) -> bool {
        matches!(self, Service::Rc | Service::Xrc | Service::Dc)
    }

    /// Whether a receive puts the global routing header before the payload.
    pub const fn has_header(self) -> bool {
        matches!(self, Service::Ud)
    }

    /// Whether each work request names its receiver by an address handle.
    pub const fn is_routed(self) -> bool {
        matches!(self, Service::Ud | Service::Dc | Service::Srd)
    }

    /// Whether an end has one receive queue, whatever is asked for.
    pub const fn shares_receives(self) -> bool {
        matches!(self, Service::Xrc | Service::Dc)
    }

    /// Whether it must complete each send: EFA's provider takes no other, and these come in any
    /// order.
    pub const fn completes_each(self) -> bool {
        matches!(self, Service::Srd)
    }

    /// Whether this operation can only be posted by `ibv_wr_*`: a target is named by no member of
    /// `ibv_send_wr`, and EFA's `ibv_post_send` knows sends alone.
    pub const fn needs_extended(self, operation: Operation) -> bool {
        match self {
            Service::Dc => true,
            Service::Srd => !matches!(operation, Operation::Send | Operation::SendImm),
            Service::Rc | Service::Uc | Service::Ud | Service::Xrc => false,
        }
    }

    /// Queue pairs that have an address, of `pairs` that send.
    pub const fn addressed(self, pairs: u32) -> u32 {
        match self {
            Service::Xrc => pairs.saturating_mul(2),
            Service::Dc => pairs.saturating_add(1),
            Service::Rc | Service::Uc | Service::Ud | Service::Srd => pairs,
        }
    }

    /// The refusal of a device that does not have it.
    pub fn lacks(self, device: &str, why: &dyn Display) -> SetupError {
        SetupError::NotAllowed(format!(
            "{device} does not support --service {} ({why}): use --service rc, uc or ud, or \
             another --device",
            self.name()
        ))
    }
}
