//! Samples in VILLASnode's forms, as files and as a node's datagrams: samples or a sentence.

use wiregauge::signal::format::{Format, binary};
use wiregauge::signal::{Kind, message_bytes};
use wiregauge_test_support::villas;

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let kind = Kind::ALL[usize::from(*choice) % Kind::ALL.len()];
    for format in Format::ALL {
        let _ = villas::read(format, bytes, kind);
    }
    let mut message = vec![0; message_bytes(usize::from(*choice) / Kind::ALL.len())];
    let _ = binary::decode(bytes, kind, &mut message);
}
