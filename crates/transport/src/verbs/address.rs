//! The address that the two ends exchange.

use super::adapter::{Adapter, mtu_bytes};
use super::ece::EceOptions;
use super::order::MOST_QUEUE_PAIRS;
use super::service::Service;
use crate::{Blob, Operation, Result, SetupError};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv6Addr};

/// The address of one end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The same at both ends.
    pub service: Service,
    /// The same at both ends.
    pub operation: Operation,
    /// Payload bytes, the same at both ends.
    pub size: u64,
    /// The queue pairs: each one's number, and that of its first packet.
    pub pairs: Vec<(u32, u32)>,
    /// The same of those that only receive: of XRC one for each that sends, of DC the target.
    pub receivers: Vec<(u32, u32)>,
    /// The number of the XRC receive queue.
    pub shared: u32,
    /// What initiators of dynamic connections must show.
    pub target_key: u64,
    /// The port's LID: the address on InfiniBand.
    pub lid: u16,
    /// The GID: the address on Ethernet.
    pub gid: [u8; 16],
    /// The largest path MTU in bytes.
    pub mtu: u32,
    /// Where the slots for arrivals begin, for operations that name memory.
    pub memory: u64,
    /// The key to it.
    pub key: u32,
    /// How many slots there are.
    pub slots: u32,
    /// From one slot to the next.
    pub stride: u64,
    /// Where the word is that the other end writes of messages that it has taken; 0: nowhere.
    pub word: u64,
    /// The options of its vendor that it offers, where they are asked for.
    pub ece: Option<EceOptions>,
    /// Reads and atomics that it answers at once.
    pub answers: u8,
    /// The port that the connection manager listens on, where one does.
    pub cm: Option<std::net::SocketAddr>,
}

/// The longest blob that an address can be: 8 B for a queue pair, of XRC two of them, and the rest.
const MOST_BLOB: usize = 256 + 16 * MOST_QUEUE_PAIRS as usize;

impl Address {
    /// As the control channel carries it.
    pub fn blob(&self) -> Blob {
        Blob(postcard::to_stdvec(self).unwrap_or_default())
    }

    /// The IP address that it has on Ethernet, where that reaches beyond its own link.
    pub fn ip(&self) -> Option<IpAddr> {
        let gid = Ipv6Addr::from(self.gid);
        let reaches_beyond = self.lid == 0 && !gid.is_unicast_link_local();
        reaches_beyond.then(|| IpAddr::V6(gid).to_canonical())
    }

    /// An address as it stands in a blob, whichever end's it is.
    pub fn from_blob(blob: &Blob) -> Result<Address> {
        ensure!(blob.0.len() <= MOST_BLOB, SetupError::Address);
        match postcard::take_from_bytes(&blob.0) {
            Ok((address, [])) => Ok(address),
            _ => Err(SetupError::Address),
        }
    }

    /// Parses the other end's address; it must match this end.
    pub fn read(blob: &Blob, own: &Address) -> Result<Address> {
        let other = Address::from_blob(blob)?;
        let alike = (other.service, other.operation, other.size)
            == (own.service, own.operation, own.size)
            && other.ece.is_some() == own.ece.is_some()
            && (other.word == 0) == (own.word == 0)
            && (other.pairs.len(), other.receivers.len()) == (own.pairs.len(), own.receivers.len());
        // The numbers of queue pairs, of packets and of receive queues have 24 bits.
        let mut numbers = other.pairs.iter().chain(&other.receivers);
        let small = numbers.all(|(qp, psn)| *qp < 1 << 24 && *psn < 1 << 24);
        let small = small && other.shared < 1 << 24;
        // With `--same-buffer`, which both ends have or none.
        let in_one_buffer = (own.stride, other.stride) == (0, 0);
        let sound = other.slots > 0 && (other.stride >= other.size || in_one_buffer) && small;
        ensure!(alike && sound, SetupError::Address);
        if (own.lid == 0) != (other.lid == 0) {
            return Err(SetupError::Refused(
                "one end is on InfiniBand and the other on Ethernet; both must be on one".into(),
            ));
        }
        Ok(other)
    }
}

/// The path MTU of both: the smaller of the ports', and what was asked for.
pub fn path_mtu(own: &Address, other: &Address) -> u32 {
    own.mtu.min(other.mtu)
}

/// The MTU that an end offers.
pub fn offered_mtu(adapter: &Adapter) -> Result<u32> {
    let active = mtu_bytes(adapter.attributes.active_mtu);
    match adapter.settings.get("mtu") {
        Some(asked) if asked > active => Err(SetupError::NotAllowed(format!(
            "--mtu {asked} is out of range: port {} of {} has {active}",
            adapter.port, adapter.name
        ))),
        Some(asked) => Ok(asked),
        None => Ok(active),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> Address {
        Address {
            service: Service::Rc,
            operation: Operation::Send,
            size: 64,
            pairs: vec![(17, 0x00ab_cdef), (18, 1)],
            receivers: Vec::new(),
            shared: 0,
            target_key: 0,
            lid: 0,
            gid: [7; 16],
            mtu: 1024,
            memory: 0x7f00_0000_0000,
            key: 5,
            slots: 8,
            stride: 128,
            word: 0,
            ece: None,
            answers: 16,
            cm: None,
        }
    }

    #[test]
    fn one_buffer_is_that_of_both_ends_or_of_none() {
        let one = Address { stride: 0, ..address() };
        let read = |other: &Address, own: &Address| Address::read(&other.blob(), own).is_ok();
        assert!(read(&one, &one) && !read(&one, &address()));
    }

    #[test]
    fn an_address_survives_the_way_and_another_kind_is_refused() {
        let own = address();
        assert_eq!(Address::read(&own.blob(), &own).unwrap(), own);
        let other = Address { service: Service::Ud, ..address() };
        assert!(Address::read(&other.blob(), &own).is_err());
        let larger = Address { size: 65, ..address() };
        assert!(Address::read(&larger.blob(), &own).is_err());
        let no_slots = Address { slots: 0, ..address() };
        assert!(Address::read(&no_slots.blob(), &own).is_err());
        let fewer = Address { pairs: vec![(17, 1)], ..address() };
        assert!(Address::read(&fewer.blob(), &own).is_err());
        let beyond = Address { pairs: vec![(17, 1), (1 << 24, 1)], ..address() };
        assert!(Address::read(&beyond.blob(), &own).is_err());
        let receives = Address { receivers: vec![(19, 1)], ..address() };
        assert!(Address::read(&receives.blob(), &own).is_err());
        assert_eq!(Address::read(&receives.blob(), &receives).unwrap(), receives);
        let beyond = Address { receivers: vec![(1 << 24, 1)], ..address() };
        assert!(Address::read(&beyond.blob(), &receives).is_err());
        let beyond = Address { shared: 1 << 24, ..address() };
        assert!(Address::read(&beyond.blob(), &own).is_err());
        let ece = Some(EceOptions { vendor: 1, options: 2 });
        assert!(Address::read(&Address { ece, ..address() }.blob(), &own).is_err());
        let told = Address { word: 0x7f00_0000_4000, ..address() };
        assert!(Address::read(&told.blob(), &own).is_err());
        assert_eq!(Address::read(&told.blob(), &told).unwrap(), told);
        let on_infiniband = Address { lid: 3, ..address() };
        assert!(Address::read(&on_infiniband.blob(), &own).is_err());
    }

    #[test]
    fn each_of_the_most_queue_pairs_has_its_part_of_a_frame() {
        let pairs = vec![(0x00ff_ffff, 0x00ff_ffff); MOST_QUEUE_PAIRS as usize];
        let own = Address { pairs, ..address() };
        let blob = own.blob();
        assert!(blob.0.len() <= 8 * MOST_QUEUE_PAIRS as usize + 128, "{} B", blob.0.len());
        assert_eq!(Address::read(&blob, &own).unwrap(), own);
        let pairs = vec![(1, 1); 2 * MOST_BLOB];
        assert!(Address::from_blob(&Address { pairs, ..address() }.blob()).is_err());
    }

    #[test]
    fn what_is_no_address_is_refused_whatever_it_holds() {
        use proptest::prelude::*;
        proptest!(|(bytes in proptest::collection::vec(any::<u8>(), 0..300))| {
            // It may by chance be one; it must not panic.
            let _ = Address::read(&Blob(bytes), &address());
        });
        let own = address();
        let mut longer = own.blob();
        longer.0.push(0);
        assert!(Address::read(&longer, &own).is_err());
    }
}
