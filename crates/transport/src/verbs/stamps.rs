//! The adapter's own clock, and its stamps of completed sends.

use super::resources::Context;
use crate::optional::DeviceClock;
use crate::{Result, SetupError};
use fabric_sys::verbs::extended;
use fabric_sys::verbs::types::*;
use std::sync::Arc;
use wiregauge_clock::{DeviceStamps, DeviceTicks};

/// Sends of which stamps are kept (8 MiB): later ones have no time of completion.
const MOST: usize = 1 << 20;

/// The stamps of an end.
pub(super) struct Stamps {
    context: Arc<Context>,
    mask: u64,
    of_send: Vec<DeviceTicks>,
}

impl Stamps {
    /// Room for stamps, made before a loop runs.
    ///
    /// # Errors
    /// The adapter has no clock by which it stamps.
    pub fn of(context: &Arc<Context>, device: &str) -> Result<Stamps> {
        let mut attributes = ibv_device_attr_ex::default();
        let (none, size) = (std::ptr::null(), size_of_val(&attributes));
        // SAFETY: a live context and room for the answer.
        let error =
            unsafe { extended::query_device_ex(context.raw(), none, &mut attributes, size) };
        let (mask, khz) = (attributes.completion_timestamp_mask, attributes.hca_core_clock);
        let (context, of_send) = (Arc::clone(context), vec![DeviceTicks(0); MOST]);
        let stamps = Stamps { context, mask, of_send };
        if error != 0 || mask == 0 || khz == 0 || stamps.now().is_none() {
            return Err(SetupError::NotAllowed(format!(
                "{device} does not support --stamp-complete device, since it has no clock that \
                 stamps completions: use --stamp-complete cpu"
            )));
        }
        Ok(stamps)
    }

    /// Keeps the stamp of a send. Called where time is measured.
    #[inline(always)]
    pub fn keep(&mut self, number: u64, stamp: u64) {
        if let Some(place) = self.of_send.get_mut(number as usize) {
            *place = DeviceTicks(stamp);
        }
    }
}

impl DeviceClock for Stamps {
    fn now(&self) -> Option<DeviceTicks> {
        let comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
        let mut values = ibv_values_ex { comp_mask, ..Default::default() };
        // SAFETY: a live context and room for the answer.
        let error = unsafe { extended::query_rt_values(self.context.raw(), &mut values) };
        let answered = error == 0 && values.comp_mask & comp_mask != 0;
        // The raw clock stands in the nanoseconds, whatever its unit (ibv_query_rt_values_ex(3)).
        answered.then_some(DeviceTicks(values.raw_clock.tv_nsec as u64))
    }

    fn stamps(&self) -> DeviceStamps<'_> {
        DeviceStamps { mask: self.mask, of_send: &self.of_send }
    }
}
