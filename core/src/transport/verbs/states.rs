//! The states that a queue pair goes through until messages may pass, the attributes that they set,
//! and what the device has made of these.

use super::adapter::{Adapter, is_ethernet, mtu_of};
use super::address::{Address, path_mtu};
use super::options::Service;
use super::resources::QueuePair;
use crate::transport::{Result, SetupError};
use fabric_sys::verbs::types::*;

/// What this end brings to a connection.
pub struct End<'a> {
    /// Its port.
    pub adapter: &'a Adapter,
    /// Its own address.
    pub own: &'a Address,
    /// The other end's.
    pub other: &'a Address,
}

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
        pkey_index: adapter.asked.partition,
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
    let mut way = ibv_ah_attr {
        grh: ibv_global_route {
            dgid: ibv_gid { raw: other.gid },
            sgid_index: adapter.gid_index,
            hop_limit: HOPS,
            ..ibv_global_route::default()
        },
        dlid: other.lid,
        is_global: u8::from(is_ethernet(&adapter.attributes)),
        port_num: adapter.port,
        ..ibv_ah_attr::default()
    };
    adapter.asked.mark(&mut way);
    way
}

/// INIT to RTR to RTS: messages may go both ways over queue pair `number` of both ends.
pub fn connect((number, qp): (usize, &QueuePair), end: &End<'_>) -> Result<()> {
    let End { adapter, own, other } = *end;
    let pair = own.pairs.get(number).zip(other.pairs.get(number)).ok_or(SetupError::Address)?;
    let (&(_, sq_psn), &(dest_qp_num, rq_psn)) = pair;
    let asked = &adapter.asked;
    let mut attributes = ibv_qp_attr {
        qp_state: IBV_QPS_RTR,
        path_mtu: mtu_of(path_mtu(own, other)),
        dest_qp_num,
        rq_psn,
        sq_psn,
        max_dest_rd_atomic: own.answers,
        max_rd_atomic: asked.reads(&adapter.device, other.answers),
        min_rnr_timer: asked.rnr_timer,
        timeout: asked.timeout,
        retry_cnt: asked.retries,
        rnr_retry: asked.rnr_retries,
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

/// Limits the rate at which a queue pair sends, where that is asked for.
pub fn limit_rate(qp: &QueuePair, adapter: &Adapter) -> Result<()> {
    let Some(rate_limit) = adapter.asked.rate else { return Ok(()) };
    let mut attributes =
        ibv_qp_attr { qp_state: IBV_QPS_RTS, rate_limit, ..ibv_qp_attr::default() };
    let limited = qp.modify(&mut attributes, IBV_QP_STATE | IBV_QP_RATE_LIMIT, "--rate-limit");
    limited.map_err(|error| {
        SetupError::NotAllowed(format!(
            "{error}: {} does not limit the rate of these queue pairs",
            adapter.name
        ))
    })
}

/// The attributes that a connected queue pair has, as its device gives them back: name, value.
pub fn granted(qp: &QueuePair, service: Service) -> Result<Vec<(&'static str, String)>> {
    let way = if service == Service::Ud { 0 } else { IBV_QP_AV | IBV_QP_PATH_MTU };
    let reliable = IBV_QP_TIMEOUT
        | IBV_QP_RETRY_CNT
        | IBV_QP_RNR_RETRY
        | IBV_QP_MIN_RNR_TIMER
        | IBV_QP_MAX_QP_RD_ATOMIC
        | IBV_QP_MAX_DEST_RD_ATOMIC;
    let reliable = if service == Service::Rc { reliable } else { 0 };
    let is = qp.attributes(IBV_QP_STATE | IBV_QP_PKEY_INDEX | way | reliable)?;
    let (to, header) = (&is.ah_attr, &is.ah_attr.grh);
    let mut all = vec![("pkey_index", is.pkey_index.to_string())];
    if way != 0 {
        all.push(("service_level", to.sl.to_string()));
        if to.is_global != 0 {
            all.push(("traffic_class", header.traffic_class.to_string()));
            all.push(("flow_label", header.flow_label.to_string()));
        }
    }
    if reliable != 0 {
        all.extend([
            ("qp_timeout", is.timeout.to_string()),
            ("retries", is.retry_cnt.to_string()),
            ("rnr_retries", is.rnr_retry.to_string()),
            ("rnr_timer", is.min_rnr_timer.to_string()),
            ("read_depth", is.max_rd_atomic.to_string()),
        ]);
    }
    Ok(all)
}
