//! The attributes of queue pairs that can be asked for; `states` sets them.

use crate::per_end::{Number, PerEnd};
use crate::{Role, Settings};
use fabric_sys::verbs::types::*;
use wiregauge_base::units::BitRate;

/// The attributes of a queue pair that can be asked for.
#[derive(Clone)]
pub struct Asked {
    /// Index of the partition key.
    pub partition: u16,
    /// Of an acknowledgement: 4.096 us x 2^n.
    pub timeout: u8,
    pub retries: u8,
    pub rnr_retries: u8,
    pub rnr_timer: u8,
    /// Outstanding reads and atomics; `None`: as many as the devices allow.
    pub read_depth: Option<u8>,
    pub level: u8,
    pub class: u8,
    pub flow_label: u32,
    /// In kbit/s, as the attribute has it; `None`: not limited.
    pub rate: Option<u32>,
}

impl Asked {
    /// Those of an end.
    pub fn of(settings: &Settings, role: Role) -> Asked {
        let partition = settings.get::<PerEnd<Number<0>>>("pkey-index");
        let rate = settings.get("rate-limit").map(|BitRate(bits)| bits / 1000);
        let number = |name| settings.get(name).unwrap_or(0);
        Asked {
            partition: partition.map_or(0, |both| both.of(role).0).into(),
            timeout: number("qp-timeout"),
            retries: number("retries"),
            rnr_retries: number("rnr-retries"),
            rnr_timer: number("rnr-timer"),
            read_depth: settings.get("read-depth"),
            level: number("service-level"),
            class: number("traffic-class"),
            flow_label: settings.count32("flow-label").unwrap_or(0),
            rate: rate.map(|rate| rate.try_into().unwrap_or(u32::MAX)),
        }
    }

    /// Reads and atomics that may be on the way to an end that answers so many at once.
    pub fn reads(&self, device: &ibv_device_attr, answers: u8) -> u8 {
        let of_device = device.max_qp_init_rd_atom.clamp(0, 255) as u8;
        self.read_depth.unwrap_or(u8::MAX).min(answers).min(of_device)
    }

    /// Sets what a packet carries on its way.
    pub fn mark(&self, way: &mut ibv_ah_attr) {
        (way.sl, way.grh.traffic_class, way.grh.flow_label) =
            (self.level, self.class, self.flow_label);
    }
}
