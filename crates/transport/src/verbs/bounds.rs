//! What the queues and slots of an end may take: of the device, and of this host's memory.

use super::memory::Layout;
use super::queues::Depths;
use crate::{Result, SetupError};
use fabric_sys::verbs::types::ibv_device_attr;
use wiregauge_base::units::Bytes;
use wiregauge_host::{Tree, available_memory};

/// The least memory of a queued work request and its completion: 64 B each, of all adapters whose
/// provider says so in its source.
const LEAST_QUEUED: u64 = 128;

/// Refuses more queue pairs than the device has, or than complete into one queue of it, where each
/// needs so many entries. There are `all` of them, with those that receive where those that send do
/// not.
pub fn check_pairs(
    (pairs, all): (u32, u32),
    of_each: u32,
    name: &str,
    device: &ibv_device_attr,
) -> Result<()> {
    let of_device = |limit: i32| u32::try_from(limit).unwrap_or(0);
    let (most, entries) = (of_device(device.max_qp), of_device(device.max_cqe));
    let sentence = if all > most {
        let each =
            if all > pairs { format!(", and this service needs {all}") } else { String::new() };
        format!(
            "--queue-pairs {pairs} is out of range: {name} has at most {most} queue pairs{each}"
        )
    } else if pairs > 1 && pairs > entries / of_each {
        // A send, and what is posted beside those that carry messages.
        format!(
            "--queue-pairs {pairs} is out of range: a completion queue of {name} has at most \
             {entries} entries, and each queue pair needs {of_each}: use 1 to {}",
            entries / of_each
        )
    } else {
        return Ok(());
    };
    Err(SetupError::NotAllowed(sentence))
}

/// Refuses an end that needs more memory than this host has left: the kernel would end a process.
/// With `huge_pages` the slots lie in pages that are reserved, and only the queues need more.
pub fn check_memory(layout: &Layout, depths: &Depths, huge_pages: bool) -> Result<()> {
    let Some(left) = available_memory(&Tree::default()) else { return Ok(()) };
    let slots = if huge_pages { 0 } else { layout.touched_bytes(false) as u64 };
    let needed = slots.saturating_add(least_queued_bytes(depths));
    check_memory_of(needed, left).map_err(SetupError::NotAllowed)
}

/// Returns the fewest bytes of the queues of an end.
fn least_queued_bytes(depths: &Depths) -> u64 {
    let sends = u64::from(depths.pairs) * u64::from(depths.send);
    (sends + u64::from(depths.receives)) * LEAST_QUEUED
}

fn check_memory_of(needed: u64, left: u64) -> Result<(), String> {
    ensure!(
        needed <= left,
        "the slots and queues of an end need {}, and this host has {} left: use smaller messages, \
         fewer queue pairs, --shared-receive-queue, or less --send-depth and --receive-depth",
        Bytes(needed),
        Bytes(left)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_queue_pairs_as_the_device_and_its_completion_queues_have() {
        let device = ibv_device_attr { max_qp: 1000, max_cqe: 800, ..ibv_device_attr::default() };
        let refused =
            |pairs| check_pairs((pairs, pairs), 2, "mlx5_0", &device).err().map(|e| e.to_string());
        assert_eq!((refused(1), refused(400)), (None, None));
        assert_eq!(
            refused(401).unwrap(),
            "--queue-pairs 401 is out of range: a completion queue of mlx5_0 has at most 800 \
             entries, and each queue pair needs 2: use 1 to 400"
        );
        assert_eq!(
            refused(1001).unwrap(),
            "--queue-pairs 1001 is out of range: mlx5_0 has at most 1000 queue pairs"
        );
        let of_xrc = check_pairs((400, 1001), 2, "mlx5_0", &device).unwrap_err().to_string();
        assert!(of_xrc.ends_with("and this service needs 1001"), "{of_xrc}");
    }

    #[test]
    fn more_than_is_left_is_refused_with_both_amounts() {
        assert!(check_memory_of(5 << 20, 5 << 20).is_ok());
        let refused = check_memory_of(6 << 20, 5 << 20).unwrap_err();
        assert!(refused.contains("need 6 MiB, and this host has 5 MiB left"), "{refused}");
    }
}
