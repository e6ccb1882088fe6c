//! The address of a verbs endpoint from anywhere: one that fits this end, or an error.

use wiregauge::transport::Blob;
use wiregauge::transport::verbs::address::Address;

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let own = include_bytes!("../../seeds/verbs_address/own");
    let own = Address::from_blob(&Blob(own.to_vec())).expect("the seed is an address");
    if let Ok(other) = Address::read(&Blob(data.to_vec()), &own) {
        assert!(other.slots > 0 && other.stride >= own.size);
        assert_eq!(other.pairs.len(), own.pairs.len());
        let _ = other.ip();
    }
}
