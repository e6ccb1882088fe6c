//! Chooses the device, port and GID of an end, or says why none fits.

use super::asked::Asked;
use super::options::{OnDemand, device, service, shares_receives};
use super::resources::{Context, Domain, Owned, errno};
use super::service::Service;
use crate::per_end::{Number, PerEnd};
use crate::{Operation, Result, Role, Settings, SetupError};
use fabric_sys::verbs::types::*;
use fabric_sys::verbs::{self, Verbs};
use std::ffi::CStr;
use std::net::Ipv6Addr;
use std::sync::Arc;
use wiregauge_base::units::counted;
use wiregauge_host::Tree;

/// The port that an end uses.
#[derive(Clone)]
pub struct Adapter {
    /// A protection domain of the opened device.
    pub domain: Arc<Domain>,
    /// The settings by which it was chosen, and of these the attributes of its queue pairs.
    pub settings: Settings,
    pub asked: Asked,
    /// Its name, as `rxe0`.
    pub name: String,
    /// The port's number, from 1.
    pub port: u8,
    /// Its attributes.
    pub attributes: ibv_port_attr,
    /// The device's.
    pub device: ibv_device_attr,
    /// Which GID, and its value; on InfiniBand addresses are LIDs.
    pub gid_index: u8,
    /// The GID.
    pub gid: [u8; 16],
}

/// Whether a port speaks Ethernet, where a GID is the address.
pub fn is_ethernet(attributes: &ibv_port_attr) -> bool {
    u32::from(attributes.link_layer) == IBV_LINK_LAYER_ETHERNET
}

/// Bytes of a path MTU.
pub fn mtu_bytes(mtu: ibv_mtu) -> u32 {
    128 << mtu.clamp(IBV_MTU_256, IBV_MTU_4096)
}

/// The largest path MTU that is not above `bytes`.
pub fn mtu_of(bytes: u32) -> ibv_mtu {
    (bytes.max(256).ilog2() - 7).min(IBV_MTU_4096)
}

impl Adapter {
    /// The one that is asked for at this end, or the first that works.
    pub fn choose(settings: &Settings, role: Role) -> Result<Adapter> {
        let verbs = verbs::verbs().map_err(|missing| refused(missing.to_string()))?;
        let devices = Devices::list(verbs)?;
        let (asked, mut why) = (device(settings, role), None);
        for device in devices.iter() {
            let name = name_of(verbs, device);
            if asked.as_ref().is_some_and(|asked| **asked != *name) {
                continue;
            }
            match Self::of_device(verbs, device, name, (settings, role)) {
                Ok(adapter) => return Ok(adapter),
                Err(error) => why = why.or(Some(error)),
            }
        }
        Err(why.unwrap_or_else(|| devices.none_fits(asked.as_deref())))
    }

    fn of_device(
        verbs: &'static Verbs,
        device: *mut ibv_device,
        name: String,
        (settings, role): (&Settings, Role),
    ) -> Result<Adapter> {
        let context = Arc::new(Context::open(verbs, device, &name)?);
        let attributes = context.device_attributes()?;
        let most = attributes.phys_port_cnt;
        let port = settings.get::<PerEnd<Number<1>>>("port").map(|both| both.of(role).0);
        let ports = match port {
            Some(port) if !(1..=most).contains(&port) => {
                return Err(SetupError::NotAllowed(format!(
                    "--port {port} is out of range: {name} has ports 1 to {most}"
                )));
            }
            Some(port) => port..=port,
            None => 1..=most,
        };
        let mut state = "no port".to_string();
        for port in ports {
            let of_port = context.port_attributes(port)?;
            if of_port.state != IBV_PORT_ACTIVE {
                state = format!("port {port} is {}", state_name(of_port.state));
                continue;
            }
            let (asked, keys) = (Asked::of(settings, role), of_port.pkey_tbl_len);
            ensure!(
                asked.partition < keys.max(1),
                SetupError::NotAllowed(format!(
                    "--pkey-index {} is out of range: port {port} of {name} has {}, from index 0",
                    asked.partition,
                    counted(keys, "partition key")
                ))
            );
            let (gid_index, gid) = choose_gid(&context, &name, port, &of_port, (settings, role))?;
            return Ok(Adapter {
                domain: Domain::new(&context)?,
                settings: settings.clone(),
                asked,
                name,
                port,
                attributes: of_port,
                device: attributes,
                gid_index,
                gid,
            });
        }
        Err(refused(format!(
            "{name}: {state}; bring its link up (`ip link set dev ... up`, `ibstat {name}`)"
        )))
    }
}

impl Adapter {
    /// Refuses pages on demand where the device, or its service type, has none for an operation.
    pub fn check_on_demand(&self, asked: OnDemand) -> Result<()> {
        let attributes = self.domain.parent.further_attributes().unwrap_or_default();
        let supported = on_demand_refusal(&attributes, asked, &self.settings).map_or(Ok(()), Err);
        supported.map_err(|without| {
            SetupError::NotAllowed(format!(
                "{} does not support --on-demand {}{without}: leave it out, and all pages are \
                 locked",
                self.name,
                asked.name()
            ))
        })
    }
}

/// What a device has no pages on demand with, after "does not support": nothing at all, or a
/// service type with an operation. `None`: it has what is asked for, or its provider does not say.
fn on_demand_refusal(
    attributes: &ibv_device_attr_ex,
    asked: OnDemand,
    settings: &Settings,
) -> Option<String> {
    let wanted = match asked {
        OnDemand::Explicit => IBV_ODP_SUPPORT,
        OnDemand::Implicit => IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT,
    };
    let odp = &attributes.odp_caps;
    if odp.general_caps & u64::from(wanted) != u64::from(wanted) {
        return Some(String::new());
    }
    let service = service(settings);
    let of_service = match service {
        Service::Rc => odp.per_transport_caps.rc_odp_caps,
        Service::Uc => odp.per_transport_caps.uc_odp_caps,
        Service::Ud => odp.per_transport_caps.ud_odp_caps,
        Service::Xrc => attributes.xrc_odp_caps,
        // Their own interfaces have them; a registration or a completion says it.
        Service::Dc | Service::Srd => return None,
    };
    let receive = match shares_receives(settings) {
        true => IBV_ODP_SUPPORT_SRQ_RECV,
        false => IBV_ODP_SUPPORT_RECV,
    };
    let operation = settings.operation();
    let needed = match operation {
        Operation::Send | Operation::SendImm => IBV_ODP_SUPPORT_SEND | receive,
        Operation::Write | Operation::WriteImm => IBV_ODP_SUPPORT_WRITE,
        Operation::Read => IBV_ODP_SUPPORT_READ,
        Operation::FetchAdd | Operation::CompareSwap => IBV_ODP_SUPPORT_ATOMIC,
    };
    (of_service & needed != needed)
        .then(|| format!(" with --service {} and --operation {}", service.name(), operation.name()))
}

fn refused(sentence: String) -> SetupError {
    SetupError::Refused(sentence)
}

fn state_name(state: ibv_port_state) -> &'static str {
    match state {
        IBV_PORT_DOWN => "down",
        IBV_PORT_INIT => "initialising (is a subnet manager running?)",
        IBV_PORT_ARMED => "armed (is a subnet manager running?)",
        IBV_PORT_ACTIVE => "active",
        _ => "not active",
    }
}

/// The list of devices, freed with it, and how many there are.
type Devices = Owned<*mut ibv_device, usize, Verbs, ()>;

impl Devices {
    fn list(verbs: &'static Verbs) -> Result<Devices> {
        let mut count = 0;
        // SAFETY: `count` lives through the call.
        let list = unsafe { (verbs.ibv_get_device_list)(&mut count) };
        if list.is_null() && errno().raw_os_error() == Some(libc::ENOSYS) {
            return Err(refused(
                "this kernel has no RDMA (modprobe ib_uverbs, and the driver of the adapter)"
                    .into(),
            ));
        }
        let (free, of) = (verbs.ibv_free_device_list, (verbs, count.max(0) as usize));
        // SAFETY: it was made just now.
        unsafe { Devices::take(list, free, of, "listing RDMA devices") }
    }

    fn iter(&self) -> impl Iterator<Item = *mut ibv_device> + '_ {
        // SAFETY: the list has as many devices as it says, and lives as long as `self`.
        (0..self.parent).map(|number| unsafe { *self.raw().add(number) })
    }

    fn none_fits(&self, asked: Option<&str>) -> SetupError {
        let names: Vec<String> = self.iter().map(|device| name_of(self.library, device)).collect();
        match (asked, names.join(", ")) {
            (_, none) if none.is_empty() => refused(
                "there is no RDMA device (rdma link show; for one in software: rdma link \
                          add rxe0 type rxe netdev INTERFACE)"
                    .into(),
            ),
            (Some(asked), names) => {
                SetupError::NotAllowed(format!("unknown RDMA device {asked}: use {names}"))
            }
            (None, names) => refused(format!("none of {names} can be used")),
        }
    }
}

fn name_of(verbs: &Verbs, device: *mut ibv_device) -> String {
    // SAFETY: a device of a list that lives; its name is a string in it.
    let name = unsafe { CStr::from_ptr((verbs.ibv_get_device_name)(device)) };
    name.to_string_lossy().into_owned()
}

/// The folder of a port in sysfs.
pub fn port_folder(device: &str, port: u8) -> String {
    format!("/sys/class/infiniband/{device}/ports/{port}")
}

/// What a GID is worth: RoCE v2 before others, IPv4 before IPv6, a global address before one of the
/// link. `None`: it is empty.
fn worth(gid: &[u8; 16], kind: &str) -> Option<u32> {
    if *gid == [0; 16] {
        return None;
    }
    let address = Ipv6Addr::from(*gid);
    let v2 = u32::from(kind.trim() == "RoCE v2");
    let v4 = u32::from(address.to_ipv4_mapped().is_some());
    let global = u32::from(!address.is_unicast_link_local());
    Some(v2 * 8 + v4 * 4 + global * 2)
}

fn choose_gid(
    context: &Context,
    name: &str,
    port: u8,
    attributes: &ibv_port_attr,
    (settings, role): (&Settings, Role),
) -> Result<(u8, [u8; 16])> {
    let length = attributes.gid_tbl_len.clamp(0, i32::from(u8::MAX)) as u8;
    let asked = settings.get::<PerEnd<Number<0>>>("gid-index");
    if let Some(Number(index)) = asked.map(|both| *both.of(role)) {
        let gid = (index < length).then(|| context.gid(port, index)).flatten();
        return match gid.filter(|gid| *gid != [0; 16]) {
            Some(gid) => Ok((index, gid)),
            None => Err(SetupError::NotAllowed(format!(
                "--gid-index {index}: that entry of {name} port {port} is empty (see {}/gids)",
                port_folder(name, port)
            ))),
        };
    }
    let types = format!("{}/gid_attrs/types", port_folder(name, port));
    let best = (0..length)
        .filter_map(|index| {
            let gid = context.gid(port, index)?;
            let kind = Tree::default().text(&format!("{types}/{index}")).unwrap_or_default();
            // The first of equals: a later one is worth a little less.
            Some((worth(&gid, &kind)? * 1000 - u32::from(index), index, gid))
        })
        .max_by_key(|(worth, ..)| *worth);
    match best {
        Some((_, index, gid)) => Ok((index, gid)),
        None if is_ethernet(attributes) => Err(refused(format!(
            "{name} port {port} has no GID: give its network interface an IP address"
        ))),
        None => Ok((0, [0; 16])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gid(address: &str) -> [u8; 16] {
        address.parse::<Ipv6Addr>().unwrap().octets()
    }

    #[test]
    fn the_gid_of_an_ipv4_address_by_roce_v2_is_preferred() {
        let v4 = worth(&gid("::ffff:10.9.0.1"), "RoCE v2\n");
        let global = worth(&gid("2001:db8::1"), "RoCE v2\n");
        let link = worth(&gid("fe80::1"), "RoCE v2\n");
        let old = worth(&gid("::ffff:10.9.0.1"), "IB/RoCE v1\n");
        assert!(v4 > global && global > link && link > old, "{v4:?} {global:?} {link:?} {old:?}");
        assert_eq!(worth(&[0; 16], "RoCE v2"), None);
    }

    #[test]
    fn pages_on_demand_are_held_against_the_service_and_the_operation() {
        let mut attributes = ibv_device_attr_ex::default();
        let refused = |attributes: &ibv_device_attr_ex, asked, values: &[(&str, &str)]| {
            let settings = Settings::of_values(values.iter().copied()).unwrap();
            on_demand_refusal(attributes, asked, &settings)
        };
        let explicit = OnDemand::Explicit;
        assert_eq!(refused(&attributes, explicit, &[]), Some(String::new()));
        attributes.odp_caps.general_caps = IBV_ODP_SUPPORT.into();
        attributes.odp_caps.per_transport_caps.rc_odp_caps =
            IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
        assert_eq!(refused(&attributes, explicit, &[]), None);
        assert!(refused(&attributes, OnDemand::Implicit, &[]).is_some());
        let read = refused(&attributes, explicit, &[("operation", "read")]);
        assert_eq!(read.unwrap(), " with --service rc and --operation read");
        assert!(refused(&attributes, explicit, &[("shared-receive-queue", "on")]).is_some());
        assert!(refused(&attributes, explicit, &[("service", "xrc")]).is_some());
        attributes.xrc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_SRQ_RECV;
        assert_eq!(refused(&attributes, explicit, &[("service", "xrc")]), None);
    }

    #[test]
    fn path_mtus_are_powers_of_two() {
        for (bytes, mtu) in [(256, IBV_MTU_256), (1024, IBV_MTU_1024), (4096, IBV_MTU_4096)] {
            assert_eq!((mtu_of(bytes), mtu_bytes(mtu)), (mtu, bytes));
        }
        assert_eq!(mtu_of(1500), IBV_MTU_1024);
    }
}
