//! The studies that are shipped.

use super::reference;

/// The studies that are shipped: name, text.
pub const SHIPPED: [(&str, &str); 44] = reference::shipped! {
    "studies":
    "dabc/chaotic" "dabc/messages" "dabc/over-time" "dabc/rdma" "dabc/scheduled-or-chaotic"
    "gamess/bandwidth" "gamess/ipoib-latency" "gamess/ipoib-throughput" "gamess/send-latency"
    "homa/congestion" "homa/factors" "homa/offloads" "homa/polling" "homa/window"
    "homa/workloads" "impact/gpcnet"
    "mpi/osu" "mpi/pallas" "mpi/presta" "mpi/presta-collectives"
    "potter/busy-polling" "potter/cm-against-exchange" "potter/correspondence" "potter/environment"
    "potter/event-polling" "potter/inline" "potter/mtu" "potter/pauses" "potter/size-sweep"
    "potter/submit-against-send" "potter/unsignalled" "potter/write-against-send"
    "ramcloud/buffers" "ramcloud/many-clients" "ramcloud/under-load" "sockets/overview"
    "villas/decomposition" "villas/node-types" "villas/rates" "villas/receive-depth"
    "villas/signalling" "villas/sizes" "villas/surface" "villas/timers"
};
