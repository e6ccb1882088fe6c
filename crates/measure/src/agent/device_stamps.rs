//! Stamps that an adapter makes of completions, between two readings of its clock: after the loop
//! they become the rows' times of completion.

use crate::agent::connections::Connections;
use wiregauge_clock::{
    AnyClock, Clock, DeviceLine, DeviceReading, DeviceStamps, TickSpan, Ticks, Timebase,
};
use wiregauge_sample::arena::Row;
use wiregauge_transport::counter::CounterValue;

/// Puts the adapter's stamps of completions, as this host's time, into the rows; what they may be
/// wrong by. A row whose send has none has no time of completion: one clock is not mixed with
/// another.
fn stamp_completions(
    rows: &mut [Row],
    stamps: DeviceStamps<'_>,
    first: DeviceReading,
    last: DeviceReading,
) -> Option<TickSpan> {
    let line = DeviceLine::through(first, last, stamps.mask);
    for (number, row) in rows.iter_mut().enumerate() {
        let stamp = stamps.of_send.get(number).filter(|stamp| stamp.0 != 0);
        row.complete = stamp.zip(line).map_or(Ticks(0), |(stamp, line)| line.host(*stamp));
    }
    line.map(|line| TickSpan(line.bound.ceil() as i64))
}

/// A reading of the adapter's clock, where it stamps completions.
pub(super) fn read_device(clock: AnyClock, connections: &Connections) -> Option<DeviceReading> {
    let device = connections.device_clock()?;
    DeviceReading::take(|| clock.now(), || device.now())
}

/// Puts the adapter's stamps into the rows, and what the record says of it.
pub(super) fn by_device(
    rows: &mut [Row],
    stamps: DeviceStamps<'_>,
    (first, last): (DeviceReading, DeviceReading),
    time: &Timebase,
) -> (String, CounterValue) {
    let bound = stamp_completions(rows, stamps, first, last);
    let bound = bound.map_or("unknown".into(), |ticks| time.span(ticks).to_string());
    ("complete_clock_bound_ns".to_string(), CounterValue::Text(bound))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_clock::DeviceTicks;

    #[test]
    fn an_adapter_s_stamps_become_times_of_completion_and_a_send_without_one_has_none() {
        let reading = |host: u64, device: u64| DeviceReading {
            before: Ticks(host),
            device: DeviceTicks(device),
            after: Ticks(host + 10),
        };
        let mut rows = vec![Row { complete: Ticks(77), ..Row::default() }; 3];
        // One tick of the adapter for ten of the host.
        let (first, last) = (reading(1000, 500), reading(11_000, 1500));
        let of_send = [DeviceTicks(600), DeviceTicks(0)];
        let stamps = DeviceStamps { mask: u64::MAX, of_send: &of_send };
        assert_eq!(stamp_completions(&mut rows, stamps, first, last), Some(TickSpan(5)));
        let complete: Vec<u64> = rows.iter().map(|row| row.complete.0).collect();
        assert_eq!(complete, [2005, 0, 0]);
        // A clock that stood still says nothing.
        assert_eq!(stamp_completions(&mut rows, stamps, first, first), None);
        assert!(rows.iter().all(|row| row.complete == Ticks(0)));
    }
}
