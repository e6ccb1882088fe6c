//! The address that the two ends exchange, and the states that a queue pair goes through with it.

use super::adapter::{Adapter, is_ethernet, mtu_bytes, mtu_of};
use super::options::Service;
use super::order::MOST_QUEUE_PAIRS;
use super::resources::QueuePair;
use crate::transport::{Blob, Operation, Result, SetupError};
use fabric_sys::verbs::types::*;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv6Addr};

/// The address of one end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The same at both ends.
    pub service: Service,
    /// The same at both ends.
    pub operation: Operation,
    /// Payload bytes, the same at both ends.
    pub size: u64,
    /// The queue pairs: each one's number, and that of its first packet.
    pub pairs: Vec<(u32, u32)>,
    /// The port's LID: the address on InfiniBand.
    pub lid: u16,
    /// The GID: the address on Ethernet.
    pub gid: [u8; 16],
    /// The largest path MTU in bytes.
    pub mtu: u32,
    /// Where the slots for arrivals begin, for operations that name memory.
    pub memory: u64,
    /// The key to it.
    pub key: u32,
    /// How many slots there are.
    pub slots: u32,
    /// From one slot to the next.
    pub stride: u64,
    /// Reads and atomics that it answers at once.
    pub answers: u8,
    /// The port that the connection manager listens on, where one does.
    pub cm: Option<std::net::SocketAddr>,
}

/// What this end brings to a connection.
pub struct End<'a> {
    /// Its port.
    pub adapter: &'a Adapter,
    /// Its own address.
    pub own: &'a Address,
    /// The other end's.
    pub other: &'a Address,
}

/// The longest blob that an address can be: 10 B for a queue pair, and the rest.
const MOST_BLOB: usize = 256 + 10 * MOST_QUEUE_PAIRS as usize;

impl Address {
    /// As the control channel carries it.
    pub fn blob(&self) -> Blob {
        Blob(postcard::to_stdvec(self).unwrap_or_default())
    }

    /// The IP address that it has on Ethernet, where that reaches beyond its own link.
    pub fn ip(&self) -> Option<IpAddr> {
        let gid = Ipv6Addr::from(self.gid);
        let reaches_beyond = self.lid == 0 && !gid.is_unicast_link_local();
        reaches_beyond.then(|| IpAddr::V6(gid).to_canonical())
    }

    /// An address as it stands in a blob, whichever end's it is.
    pub fn from_blob(blob: &Blob) -> Result<Address> {
        ensure!(blob.0.len() <= MOST_BLOB, SetupError::Address);
        match postcard::take_from_bytes(&blob.0) {
            Ok((address, [])) => Ok(address),
            _ => Err(SetupError::Address),
        }
    }

    /// Parses the other end's address; it must match this end.
    pub fn read(blob: &Blob, own: &Address) -> Result<Address> {
        let other = Address::from_blob(blob)?;
        let alike = (other.service, other.operation, other.size)
            == (own.service, own.operation, own.size)
            && other.pairs.len() == own.pairs.len();
        // The numbers of queue pairs and of packets have 24 bits.
        let small = other.pairs.iter().all(|(qp, psn)| *qp < 1 << 24 && *psn < 1 << 24);
        let sound = other.slots > 0 && other.stride >= other.size && small;
        ensure!(alike && sound, SetupError::Address);
        if (own.lid == 0) != (other.lid == 0) {
            return Err(SetupError::Refused(
                "one end is on InfiniBand and the other on Ethernet; both must be on one".into(),
            ));
        }
        Ok(other)
    }
}

/// How long an unanswered packet is waited for, 4.096 us x 2^14 = 67 ms: perftest's, too.
const TIMEOUT: u8 = 14;
/// How often it is sent again.
pub const RETRIES: u8 = 7;
/// How often a receiver that is not ready is tried: 7 is for ever. A full receiver is flow control.
pub const RNR_RETRIES: u8 = 7;
/// What a receiver that is not ready asks for: 12 is 0.64 ms.
pub const RNR_TIMER: u8 = 12;
/// Hops that a packet may take.
const HOPS: u8 = 64;

/// The key of datagrams, from the run's cookie: what comes with another is dropped by the adapter.
pub fn queue_key(cookie: &[u8; 32]) -> u32 {
    // The highest bit is for privileged keys.
    u32::from_le_bytes([cookie[0], cookie[1], cookie[2], cookie[3]]) & 0x7fff_ffff
}

/// What another end may do to this end's memory.
pub const REMOTE_ACCESS: u32 =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/// RESET to INIT: receives may be posted.
pub fn initialise(qp: &QueuePair, adapter: &Adapter, service: Service, key: u32) -> Result<()> {
    let (qp_access_flags, last) = match service {
        Service::Rc => (REMOTE_ACCESS, IBV_QP_ACCESS_FLAGS),
        Service::Uc => (IBV_ACCESS_REMOTE_WRITE, IBV_QP_ACCESS_FLAGS),
        Service::Ud => (0, IBV_QP_QKEY),
    };
    let mut attributes = ibv_qp_attr {
        qp_state: IBV_QPS_INIT,
        port_num: adapter.port,
        qkey: key,
        qp_access_flags,
        ..ibv_qp_attr::default()
    };
    let mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | last;
    qp.modify(&mut attributes, mask, "initialising the queue pair")
}

/// The way to the other end.
pub fn route(adapter: &Adapter, other: &Address) -> ibv_ah_attr {
    ibv_ah_attr {
        grh: ibv_global_route {
            dgid: ibv_gid { raw: other.gid },
            sgid_index: adapter.gid_index,
            hop_limit: HOPS,
            traffic_class: adapter.settings.get("traffic-class").unwrap_or(0),
            ..ibv_global_route::default()
        },
        dlid: other.lid,
        sl: adapter.settings.get("service-level").unwrap_or(0),
        is_global: u8::from(is_ethernet(&adapter.attributes)),
        port_num: adapter.port,
        ..ibv_ah_attr::default()
    }
}

/// The path MTU of both: the smaller of the ports', and what was asked for.
pub fn path_mtu(own: &Address, other: &Address) -> u32 {
    own.mtu.min(other.mtu)
}

/// The MTU that an end offers.
pub fn offered_mtu(adapter: &Adapter) -> Result<u32> {
    let active = mtu_bytes(adapter.attributes.active_mtu);
    match adapter.settings.get("mtu") {
        Some(asked) if asked > active => Err(SetupError::NotAllowed(format!(
            "--mtu {asked} is out of range: port {} of {} has {active}",
            adapter.port, adapter.name
        ))),
        Some(asked) => Ok(asked),
        None => Ok(active),
    }
}

/// INIT to RTR to RTS: messages may go both ways over queue pair `number` of both ends.
pub fn connect((number, qp): (usize, &QueuePair), end: &End<'_>) -> Result<()> {
    let End { adapter, own, other } = *end;
    let pair = own.pairs.get(number).zip(other.pairs.get(number)).ok_or(SetupError::Address)?;
    let (&(_, sq_psn), &(dest_qp_num, rq_psn)) = pair;
    let mut attributes = ibv_qp_attr {
        qp_state: IBV_QPS_RTR,
        path_mtu: mtu_of(path_mtu(own, other)),
        dest_qp_num,
        rq_psn,
        sq_psn,
        max_dest_rd_atomic: own.answers,
        max_rd_atomic: other.answers.min(adapter.device.max_qp_init_rd_atom.clamp(0, 255) as u8),
        min_rnr_timer: RNR_TIMER,
        timeout: TIMEOUT,
        retry_cnt: RETRIES,
        rnr_retry: RNR_RETRIES,
        ah_attr: route(adapter, other),
        ..ibv_qp_attr::default()
    };
    // The masks say which of them count.
    let connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    let answers = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    let asks = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    let (receives, sends) = match own.service {
        Service::Rc => (connected | answers, asks),
        Service::Uc => (connected, 0),
        Service::Ud => (0, 0),
    };
    let mask = IBV_QP_STATE | receives;
    qp.modify(&mut attributes, mask, "moving the queue pair to ready to receive")?;
    attributes.qp_state = IBV_QPS_RTS;
    let mask = IBV_QP_STATE | IBV_QP_SQ_PSN | sends;
    qp.modify(&mut attributes, mask, "moving the queue pair to ready to send")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> Address {
        Address {
            service: Service::Rc,
            operation: Operation::Send,
            size: 64,
            pairs: vec![(17, 0x00ab_cdef), (18, 1)],
            lid: 0,
            gid: [7; 16],
            mtu: 1024,
            memory: 0x7f00_0000_0000,
            key: 5,
            slots: 8,
            stride: 128,
            answers: 16,
            cm: None,
        }
    }

    #[test]
    fn an_address_survives_the_way_and_another_kind_is_refused() {
        let own = address();
        assert_eq!(Address::read(&own.blob(), &own).unwrap(), own);
        let other = Address { service: Service::Ud, ..address() };
        assert!(Address::read(&other.blob(), &own).is_err());
        let larger = Address { size: 65, ..address() };
        assert!(Address::read(&larger.blob(), &own).is_err());
        let no_slots = Address { slots: 0, ..address() };
        assert!(Address::read(&no_slots.blob(), &own).is_err());
        let fewer = Address { pairs: vec![(17, 1)], ..address() };
        assert!(Address::read(&fewer.blob(), &own).is_err());
        let beyond = Address { pairs: vec![(17, 1), (1 << 24, 1)], ..address() };
        assert!(Address::read(&beyond.blob(), &own).is_err());
        let on_infiniband = Address { lid: 3, ..address() };
        assert!(Address::read(&on_infiniband.blob(), &own).is_err());
    }

    #[test]
    fn what_is_no_address_is_refused_whatever_it_holds() {
        use proptest::prelude::*;
        proptest!(|(bytes in proptest::collection::vec(any::<u8>(), 0..300))| {
            // It may by chance be one; it must not panic.
            let _ = Address::read(&Blob(bytes), &address());
        });
        let own = address();
        let mut longer = own.blob();
        longer.0.push(0);
        assert!(Address::read(&longer, &own).is_err());
    }
}
