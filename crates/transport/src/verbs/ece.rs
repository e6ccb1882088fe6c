//! Enhanced connection establishment (ECE): vendor options that both adapters support, exchanged
//! with the addresses of the ends.

use super::resources::QueuePair;
use crate::{Result, SetupError};
use fabric_sys::verbs;
use fabric_sys::verbs::types::*;
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};
use std::io;

/// The ECE options of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EceOptions {
    /// The OUI of the vendor that defines the options.
    pub vendor: u32,
    /// One bit per option.
    pub options: u32,
}

impl Display for EceOptions {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x} of vendor {:#x}", self.options, self.vendor)
    }
}

impl EceOptions {
    /// The options of both ends. An end may only remove options (ibv_set_ece(3)), so ends of
    /// different vendors have no option in common.
    pub fn and(self, other: EceOptions) -> EceOptions {
        let alike = self.vendor == other.vendor;
        EceOptions { options: if alike { self.options & other.options } else { 0 }, ..self }
    }

    /// The options that the device offers for a queue pair.
    pub fn of(qp: &QueuePair, device: &str) -> Result<EceOptions> {
        let library = verbs::ece().map_err(|missing| not_supported(device, &missing))?;
        let mut ece = ibv_ece::default();
        // SAFETY: a live queue pair and room for the answer.
        let error = unsafe { (library.ibv_query_ece)(qp.raw(), &mut ece) };
        checked(error, device)?;
        Ok(EceOptions { vendor: ece.vendor_id, options: ece.options })
    }

    /// Limits a queue pair to these options in the state transitions that follow.
    pub fn set(self, qp: &QueuePair, device: &str) -> Result<()> {
        let library = verbs::ece().map_err(|missing| not_supported(device, &missing))?;
        let EceOptions { vendor, options } = self;
        let mut ece = ibv_ece { vendor_id: vendor, options, comp_mask: 0 };
        // SAFETY: a live queue pair and options that live through the call.
        checked(unsafe { (library.ibv_set_ece)(qp.raw(), &mut ece) }, device)
    }
}

/// Both functions return 0 or an errno.
fn checked(error: i32, device: &str) -> Result<()> {
    match error.abs() {
        0 => Ok(()),
        errno => Err(not_supported(device, &io::Error::from_raw_os_error(errno))),
    }
}

fn not_supported(device: &str, why: &dyn Display) -> SetupError {
    SetupError::NotAllowed(format!("{device} does not support --ece ({why}): leave it out"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_agree_on_the_options_of_both_and_on_none_of_two_vendors() {
        let offered = |vendor, options| EceOptions { vendor, options };
        let agreed = offered(0x02c9, 0b1101).and(offered(0x02c9, 0b0111));
        assert_eq!(agreed, offered(0x02c9, 0b0101));
        assert_eq!(agreed.to_string(), "0x5 of vendor 0x2c9");
        assert_eq!(offered(0x02c9, 7).and(offered(0x15b3, 7)), offered(0x02c9, 0));
    }

    #[test]
    fn a_device_without_it_is_named_with_what_to_do() {
        assert!(checked(0, "rxe0").is_ok());
        let refused = checked(libc::EOPNOTSUPP, "rxe0").unwrap_err().to_string();
        assert!(refused.contains("rxe0 does not support --ece"), "{refused}");
    }
}
