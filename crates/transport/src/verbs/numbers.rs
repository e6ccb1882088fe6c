//! The numbers of messages whose payloads the CPU does not read, since they are in memory that is
//! not this host's (`--memory`) or in one buffer (`--same-buffer`).
//!
//! Nothing of a message is known here but its completion. Its number is that of the message's post
//! at the other end: the order of arrival where the service keeps it, else what the adapter carries
//! beside the payload. It is worked out when the message is asked for, which is after its stamp.

use super::memory_kind::MemoryKind;
use super::options::{keeps_order, service};
use crate::{MOST_EVENTS, Operation, Role, Settings, Setup, Traffic};

/// What tells the number of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbered {
    /// The order of arrival: one queue pair of a reliable service that keeps the order.
    Order,
    /// The immediate value of a send.
    Immediate,
    /// The slot that a write names by its immediate value: slots are used in turn.
    Slot,
}

impl Numbered {
    /// What tells it with these settings; `None`: nothing does.
    pub fn of(settings: &Settings) -> Option<Numbered> {
        let is_reliable = !service(settings).loses();
        match settings.operation() {
            Operation::SendImm => Some(Numbered::Immediate),
            Operation::WriteImm if is_reliable => Some(Numbered::Slot),
            Operation::Send if is_reliable && keeps_order(settings) => Some(Numbered::Order),
            _ => None,
        }
    }

    /// The name in the record.
    pub fn name(self) -> &'static str {
        match self {
            Numbered::Order => "order of arrival",
            Numbered::Immediate => "immediate value",
            Numbered::Slot => "slot of the write",
        }
    }
}

/// The numbers of the messages of an end.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    by: Numbered,
    /// Arrivals of the polls before the last.
    before: u64,
    /// Messages for each that arrives: an answer has the number of the last that it answers.
    every: u64,
    /// Slots for arrivals.
    slots: u64,
    /// The immediate values of the last poll's arrivals.
    immediates: [u32; MOST_EVENTS],
}

impl Numbers {
    /// Those of an end with so many slots for arrivals; `None` where payloads are read or nothing
    /// arrives.
    pub fn of(setup: &Setup, slots: u64) -> Option<Box<Numbers>> {
        let settings = &setup.settings;
        MemoryKind::unread(settings).filter(|_| setup.traffic != Traffic::OneSided)?;
        let every = match (setup.traffic, setup.role) {
            (Traffic::Echo { every }, Role::Client) => u64::from(every.max(1)),
            _ => 1,
        };
        let (by, immediates) = (Numbered::of(settings)?, [0; MOST_EVENTS]);
        Some(Box::new(Numbers { by, before: 0, every, slots: slots.max(1), immediates }))
    }

    /// What tells them.
    pub fn by(&self) -> Numbered {
        self.by
    }

    /// Notes the immediate value of the arrival at this place of the last poll.
    #[inline(always)]
    pub fn note(&mut self, place: usize, immediate: u32) {
        if let Some(kept) = self.immediates.get_mut(place) {
            *kept = immediate;
        }
    }

    /// Goes on to the next poll, after one that brought so many.
    #[inline(always)]
    pub fn pass(&mut self, arrived: usize) {
        self.before += arrived as u64;
    }

    /// The number of the message at this place of the last poll, in a slot.
    pub fn number(&self, place: usize, slot: usize) -> u64 {
        let nth = self.before + place as u64;
        match self.by {
            Numbered::Order => (nth + 1) * self.every - 1,
            Numbered::Immediate => {
                // The number that ends so and is nearest to the expected one.
                let expected = (nth + 1) * self.every - 1;
                let immediate = self.immediates.get(place).copied().unwrap_or(0);
                expected.wrapping_add_signed(immediate.wrapping_sub(expected as u32) as i32 as i64)
            }
            Numbered::Slot => {
                let ahead = (slot as u64 + self.slots - nth % self.slots) % self.slots;
                let nth = match ahead > self.slots / 2 {
                    true => (nth + ahead).saturating_sub(self.slots),
                    false => nth + ahead,
                };
                (nth + 1) * self.every - 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Wait;

    fn numbers(values: &[(&str, &str)], traffic: Traffic, role: Role) -> Option<Box<Numbers>> {
        let settings = Settings::of_values(values.iter().copied()).unwrap();
        let setup = Setup { settings, ..Setup::new(role, traffic, Wait::Busy, 64) };
        Numbers::of(&setup, 8)
    }

    const GPU: (&str, &str) = ("memory", "cuda:0");

    #[test]
    fn memory_of_the_host_needs_no_numbers_and_one_sided_operations_have_none() {
        let echo = Traffic::Echo { every: 1 };
        assert!(numbers(&[], echo, Role::Client).is_none());
        assert!(numbers(&[GPU], Traffic::OneSided, Role::Client).is_none());
        assert!(numbers(&[("memory", "host,rocm")], echo, Role::Client).is_some());
    }

    #[test]
    fn the_order_of_arrival_is_the_number_and_an_answer_has_that_of_the_last_of_its_burst() {
        let mut server = numbers(&[GPU], Traffic::Echo { every: 4 }, Role::Server).unwrap();
        let mut client = numbers(&[GPU], Traffic::Echo { every: 4 }, Role::Client).unwrap();
        server.pass(5);
        assert_eq!((server.number(0, 3), server.number(2, 5)), (5, 7));
        client.pass(1);
        assert_eq!((client.number(0, 0), client.number(1, 0)), (7, 11));
    }

    #[test]
    fn an_immediate_value_tells_the_number_of_what_came_late_or_after_a_loss() {
        let of = [GPU, ("operation", "send_imm"), ("service", "ud")];
        let mut numbers = numbers(&of, Traffic::Forward, Role::Server).unwrap();
        numbers.pass(1 << 33);
        for number in [(1 << 33) - 2, 1 << 33, (1 << 33) + 40] {
            numbers.note(1, number as u32);
            assert_eq!(numbers.number(1, 0), number);
        }
    }

    #[test]
    fn a_slot_tells_the_number_nearest_to_the_order_of_arrival() {
        let of = [GPU, ("operation", "write_imm"), ("queue-pairs", "2")];
        let mut numbers = numbers(&of, Traffic::Forward, Role::Server).unwrap();
        numbers.pass(80);
        // Message 81 before message 80.
        assert_eq!((numbers.number(0, 1), numbers.number(1, 0)), (81, 80));
        numbers.pass(7);
        assert_eq!((numbers.number(0, 0), numbers.number(1, 7)), (88, 87));
    }
}
