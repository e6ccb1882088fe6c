//! What an endpoint around another one leaves to it.

/// The methods of `Endpoint` that go to the field `inner` as they are.
macro_rules! leave_to_inner {
    () => {
        fn slots(&self) -> u32 {
            self.inner.slots()
        }

        fn payload(&mut self, slot: wiregauge_transport::Slot) -> &mut [u8] {
            self.inner.payload(slot)
        }

        fn flush(&mut self) {
            self.inner.flush();
        }

        fn progress(&mut self) {
            self.inner.progress();
        }

        fn serves_by_progress(&self) -> bool {
            self.inner.serves_by_progress()
        }

        fn rejected_peers(&self) -> u64 {
            self.inner.rejected_peers()
        }

        fn final_counters(&self) -> wiregauge_transport::counter::FinalCounters {
            self.inner.final_counters()
        }

        fn watched(&self) -> Option<wiregauge_transport::optional::Watched<'_>> {
            self.inner.watched()
        }

        fn arm(&mut self, was_readable: bool) -> bool {
            self.inner.arm(was_readable)
        }

        fn live_word(
            &mut self,
            slot: wiregauge_transport::Slot,
            at: usize,
        ) -> Option<wiregauge_transport::optional::LiveWord> {
            self.inner.live_word(slot, at)
        }

        fn device_clock(&self) -> Option<&dyn wiregauge_transport::optional::DeviceClock> {
            self.inner.device_clock()
        }
    };
}

pub(super) use leave_to_inner;
