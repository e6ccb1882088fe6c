//! A part of what the kernel answers by netlink: no more messages than fit it.

use wiregauge::host::fuzzed;

/// Bytes of the head of a message.
const HEAD: usize = 16;

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    assert!(fuzzed::read_netlink(data) <= data.len() / HEAD);
}
