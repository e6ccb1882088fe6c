//! The states that a queue pair goes through until messages may pass, the attributes that they set,
//! and what the device has made of these.

use super::adapter::{Adapter, is_ethernet, mtu_bytes, mtu_of};
use super::address::{Address, path_mtu};
use super::queues::Queues;
use super::resources::QueuePair;
use super::service::Service;
use crate::{Result, SetupError};
use fabric_sys::verbs::types::*;

/// What this end brings to a connection.
pub struct End<'a> {
    /// Its port.
    pub adapter: &'a Adapter,
    /// Its own address.
    pub own: &'a Address,
    /// The other end's.
    pub other: &'a Address,
    /// Whether the retries of a receiver that is not ready can be set.
    pub sets_rnr_retries: bool,
}

/// Hops that a packet may take.
const HOPS: u8 = 64;

/// The key of datagrams, from the run's cookie: what comes with another is dropped by the adapter.
pub fn queue_key(cookie: &[u8; 32]) -> u32 {
    // The highest bit is for privileged keys.
    u32::from_le_bytes([cookie[0], cookie[1], cookie[2], cookie[3]]) & 0x7fff_ffff
}

/// The key of a target of dynamic connections, from the run's cookie: who does not show it is
/// refused by the adapter.
pub fn target_key(cookie: &[u8; 32]) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&cookie[8..16]);
    u64::from_le_bytes(bytes)
}

/// What another end may do to this end's memory.
pub const REMOTE_ACCESS: u32 =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/// What a queue pair is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// To send, and to receive where its service has no queue pair for that.
    Sends,
    /// To receive alone: of XRC and DC.
    Receives,
}

/// The attributes that each transition takes beside the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Masks {
    initialised: u32,
    ready_to_receive: u32,
    ready_to_send: u32,
}

/// Those of a service: of rc, uc, ud and xrc by ibv_modify_qp(3), of dc and srd by what the
/// kernel's drivers mlx5_ib and efa check.
const fn masks(service: Service, part: Part) -> Masks {
    let connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    let answers = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    let asks = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    let (last, receives, sends) = match (service, part) {
        (Service::Rc, _) => (IBV_QP_ACCESS_FLAGS, connected | answers, asks),
        (Service::Uc, _) => (IBV_QP_ACCESS_FLAGS, connected, 0),
        (Service::Ud | Service::Srd, _) => (IBV_QP_QKEY, 0, 0),
        (Service::Xrc, Part::Sends) => (IBV_QP_ACCESS_FLAGS, connected, asks),
        (Service::Xrc, Part::Receives) => {
            (IBV_QP_ACCESS_FLAGS, connected | answers, IBV_QP_TIMEOUT)
        }
        (Service::Dc, Part::Sends) => (0, IBV_QP_AV | IBV_QP_PATH_MTU, asks),
        (Service::Dc, Part::Receives) => {
            let receives = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER;
            (IBV_QP_ACCESS_FLAGS, receives, 0)
        }
    };
    Masks {
        initialised: IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | last,
        ready_to_receive: IBV_QP_STATE | receives,
        ready_to_send: IBV_QP_STATE | IBV_QP_SQ_PSN | sends,
    }
}

/// RESET to INIT: receives may be posted.
pub fn initialise(
    qp: &QueuePair,
    adapter: &Adapter,
    (service, part): (Service, Part),
    key: u32,
) -> Result<()> {
    let settings = &adapter.settings;
    let qp_access_flags = match service {
        Service::Rc | Service::Xrc => REMOTE_ACCESS,
        // Without atomics where none are asked for: not every mode of a target has them.
        Service::Dc if settings.operation().is_atomic() => REMOTE_ACCESS,
        Service::Dc => REMOTE_ACCESS & !IBV_ACCESS_REMOTE_ATOMIC,
        Service::Uc => IBV_ACCESS_REMOTE_WRITE,
        Service::Ud | Service::Srd => 0,
    };
    let mut attributes = ibv_qp_attr {
        qp_state: IBV_QPS_INIT,
        pkey_index: adapter.asked.partition,
        port_num: adapter.port,
        qkey: key,
        qp_access_flags,
        ..ibv_qp_attr::default()
    };
    let mask = masks(service, part).initialised;
    qp.modify(&mut attributes, mask, "initialising the queue pair")
}

/// Makes a target of dynamic connections ready to receive, which gives it its number.
pub fn ready_target(qp: &QueuePair, adapter: &Adapter, mtu: u32) -> Result<()> {
    let mut attributes = ibv_qp_attr {
        qp_state: IBV_QPS_RTR,
        path_mtu: mtu_of(mtu),
        min_rnr_timer: adapter.asked.rnr_timer,
        // The way to nobody: index, class, label and hops of the own port are taken of it.
        ah_attr: way(adapter, (adapter.attributes.lid, adapter.gid), false),
        ..ibv_qp_attr::default()
    };
    let mask = masks(Service::Dc, Part::Receives).ready_to_receive;
    qp.modify(&mut attributes, mask, "moving the target to ready to receive")
}

/// The way to the other end.
pub fn route(adapter: &Adapter, other: &Address) -> ibv_ah_attr {
    // EFA knows its ports by GIDs, whatever its link layer is called.
    way(adapter, (other.lid, other.gid), other.service == Service::Srd)
}

/// The way to a port, with a global routing header where it needs one, or where something was asked
/// for that only that has.
fn way(adapter: &Adapter, (dlid, gid): (u16, [u8; 16]), is_global: bool) -> ibv_ah_attr {
    let asks = ["gid-index", "flow-label", "traffic-class"];
    let asks = asks.into_iter().any(|name| adapter.settings.is_given(name)) && gid != [0; 16];
    let mut way = ibv_ah_attr {
        grh: ibv_global_route {
            dgid: ibv_gid { raw: gid },
            sgid_index: adapter.gid_index,
            hop_limit: HOPS,
            ..ibv_global_route::default()
        },
        dlid,
        is_global: u8::from(is_global || asks || is_ethernet(&adapter.attributes)),
        port_num: adapter.port,
        ..ibv_ah_attr::default()
    };
    adapter.asked.mark(&mut way);
    way
}

/// A queue pair of this end that is connected: its number, that of its first packet, and the same
/// of the one that it talks to.
type Ends = ((u32, u32), (u32, u32));

/// INIT to RTR to RTS: messages may go.
fn ready(
    qp: &QueuePair,
    end: &End<'_>,
    part: Part,
    ((_, sq_psn), (dest_qp_num, rq_psn)): Ends,
) -> Result<()> {
    let End { adapter, own, other, sets_rnr_retries } = *end;
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
    let mut masks = masks(own.service, part);
    if own.service == Service::Srd && sets_rnr_retries {
        masks.ready_to_send |= IBV_QP_RNR_RETRY;
    }
    let what = "moving the queue pair to ready to receive";
    qp.modify(&mut attributes, masks.ready_to_receive, what)?;
    attributes.qp_state = IBV_QPS_RTS;
    qp.modify(&mut attributes, masks.ready_to_send, "moving the queue pair to ready to send")
}

/// Connects queue pair `number` of this end, one that sends, to the other end's that receives from
/// it.
pub fn connect((number, qp): (usize, &QueuePair), end: &End<'_>) -> Result<()> {
    let receivers = match end.own.service {
        Service::Xrc => &end.other.receivers,
        _ => &end.other.pairs,
    };
    let ends = end.own.pairs.get(number).zip(receivers.get(number));
    let (&own, &other) = ends.ok_or(SetupError::Address)?;
    ready(qp, end, Part::Sends, (own, other))
}

/// Connects queue pair `number` of this end, one that only receives, to the other end's that sends
/// to it.
pub fn connect_receiver((number, qp): (usize, &QueuePair), end: &End<'_>) -> Result<()> {
    let ends = end.own.receivers.get(number).zip(end.other.pairs.get(number));
    let (&own, &other) = ends.ok_or(SetupError::Address)?;
    ready(qp, end, Part::Receives, (own, other))
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

/// The attributes that a connected end has, as its device gives them back (name, value): of its
/// first queue pair, and of the one that receives where that is another. What no call gives back is
/// what was set.
pub fn granted(queues: &Queues, end: &End<'_>) -> Result<Vec<(&'static str, String)>> {
    let Some(qp) = queues.pairs.first() else { return Ok(Vec::new()) };
    let (service, adapter) = (end.own.service, end.adapter);
    let is_connected = !service.is_routed();
    let path = if is_connected { IBV_QP_AV | IBV_QP_PATH_MTU } else { 0 };
    let asks = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    let asks = if service.retries() { asks } else { 0 };
    let receives_itself = queues.receivers.is_empty();
    let answers = if service.retries() && receives_itself { IBV_QP_MIN_RNR_TIMER } else { 0 };
    let retries = service == Service::Srd && end.sets_rnr_retries;
    let retries = if retries { IBV_QP_RNR_RETRY } else { 0 };
    let mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | path | asks | answers | retries;
    let is = qp.attributes(mask)?;
    let way = if is_connected { is.ah_attr } else { route(adapter, end.other) };
    let mut all =
        vec![("pkey_index", is.pkey_index.to_string()), ("service_level", way.sl.to_string())];
    if is_connected {
        all.push(("path_mtu", mtu_bytes(is.path_mtu).to_string()));
    }
    if way.is_global != 0 {
        all.push(("traffic_class", way.grh.traffic_class.to_string()));
        all.push(("flow_label", way.grh.flow_label.to_string()));
        all.push(("hop_limit", way.grh.hop_limit.to_string()));
    }
    if asks != 0 {
        let receiver = queues.receivers.first();
        let receiver =
            receiver.map(|qp| qp.attributes(IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER)).transpose()?;
        let rnr_timer = receiver.map_or(is.min_rnr_timer, |receiver| receiver.min_rnr_timer);
        all.extend([
            ("qp_timeout", is.timeout.to_string()),
            ("retries", is.retry_cnt.to_string()),
            ("rnr_timer", rnr_timer.to_string()),
            ("read_depth", is.max_rd_atomic.to_string()),
        ]);
    }
    if asks | retries != 0 {
        all.push(("rnr_retries", is.rnr_retry.to_string()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_transition_sets_what_the_service_has() {
        let of = |service, part| masks(service, part);
        // A queue pair of XRC that sends answers nothing, and one that receives asks nothing.
        let (sends, receives) = (of(Service::Xrc, Part::Sends), of(Service::Xrc, Part::Receives));
        let rc = of(Service::Rc, Part::Sends);
        assert_eq!(sends.ready_to_send, rc.ready_to_send);
        assert_eq!(receives.ready_to_receive, rc.ready_to_receive);
        assert_eq!(sends.ready_to_receive & IBV_QP_MIN_RNR_TIMER, 0);
        assert_eq!(receives.ready_to_send, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT);
        // An initiator has nobody to talk to yet.
        let initiator = of(Service::Dc, Part::Sends);
        assert_eq!(initiator.ready_to_receive & (IBV_QP_DEST_QPN | IBV_QP_RQ_PSN), 0);
        assert_eq!(initiator.initialised & IBV_QP_ACCESS_FLAGS, 0);
        let datagram = of(Service::Srd, Part::Sends);
        assert_eq!(datagram, of(Service::Ud, Part::Sends));
    }
}
