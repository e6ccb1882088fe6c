//! Scalable reliable datagrams of Amazon's EFA: what its devices can, and what makes their queue
//! pairs.

use super::adapter::Adapter;
use super::options;
use super::service::Service;
use crate::{Operation, Result, Setup, SetupError};
use fabric_sys::verbs::efa::{self, *};
use fabric_sys::verbs::types::*;
use std::fmt::Display;
use std::io;
use wiregauge_base::units::Bytes;

/// The calls of libefa and what the device can, for a case that it can.
///
/// # Errors
/// The library or the device lacks it, or what the case needs of it.
pub fn device(setup: &Setup, adapter: &Adapter) -> Result<(&'static Efa, efadv_device_attr)> {
    let lacks = |why: &dyn Display| Service::Srd.lacks(&adapter.name, why);
    let library = efa::efa().map_err(|missing| lacks(&missing))?;
    let mut device = efadv_device_attr::default();
    let size = size_of_val(&device) as u32;
    // SAFETY: a live context and room for the answer.
    let error =
        unsafe { (library.efadv_query_device)(adapter.domain.parent.raw(), &mut device, size) };
    if error != 0 {
        let error = io::Error::from_raw_os_error(error.abs());
        return Err(lacks(&format_args!("efadv_query_device: {error}")));
    }
    let most = most_bytes(setup.settings.operation(), &device, adapter.attributes.max_msg_sz);
    check(setup, &adapter.name, most)?;
    check_inline(options::inline(&setup.settings), &adapter.name, &device)?;
    Ok((library, device))
}

/// The longest message of an operation: a send fits a packet. `None`: the device has no such
/// operation.
fn most_bytes(operation: Operation, device: &efadv_device_attr, packet: u32) -> Option<u32> {
    let can = |flag| (device.device_caps & flag != 0).then_some(device.max_rdma_size);
    match operation {
        Operation::Send | Operation::SendImm => Some(packet),
        Operation::Read => can(EFADV_DEVICE_ATTR_CAPS_RDMA_READ),
        Operation::Write | Operation::WriteImm => can(EFADV_DEVICE_ATTR_CAPS_RDMA_WRITE),
        Operation::FetchAdd | Operation::CompareSwap => None,
    }
}

fn check(setup: &Setup, name: &str, most: Option<u32>) -> Result<()> {
    let (size, with) = (setup.size as u64, setup.settings.operation().name());
    let sentence = match most {
        None => format!(
            "{name} does not support --operation {with} with --service srd: use --operation send"
        ),
        Some(most) if size > u64::from(most) => format!(
            "--size {} is not allowed with --service srd and --operation {with}: {name} takes 1 B \
             to {}",
            Bytes(size),
            Bytes(most.into())
        ),
        Some(_) => return Ok(()),
    };
    Err(SetupError::NotAllowed(sentence))
}

fn check_inline(asked: Option<u32>, name: &str, device: &efadv_device_attr) -> Result<()> {
    let most = u32::from(device.inline_buf_size);
    ensure!(
        asked.unwrap_or(0) <= most,
        SetupError::NotAllowed(format!(
            "--inline {} is out of range: {name} sends up to {most} B inline with --service srd",
            asked.unwrap_or(0)
        ))
    );
    Ok(())
}

/// Whether the retries of a receiver that is not ready can be set.
pub fn sets_rnr_retries(device: &efadv_device_attr) -> bool {
    device.device_caps & EFADV_DEVICE_ATTR_CAPS_RNR_RETRY != 0
}

/// Makes a queue pair; null (with errno) where the device cannot.
///
/// # Safety
/// `domain` is live and `attributes` are well formed and name live queues.
pub unsafe fn create(
    library: &Efa,
    domain: *mut ibv_pd,
    attributes: &mut ibv_qp_init_attr_ex,
    is_extended: bool,
) -> *mut ibv_qp {
    if !is_extended {
        let plain = (&raw mut *attributes).cast();
        // SAFETY: the caller's promise; the attributes begin as the plain ones do.
        return unsafe {
            (library.efadv_create_driver_qp)(domain, plain, EFADV_QP_DRIVER_TYPE_SRD)
        };
    }
    let mut own = efadv_qp_init_attr {
        driver_qp_type: EFADV_QP_DRIVER_TYPE_SRD,
        ..efadv_qp_init_attr::default()
    };
    let size = size_of_val(&own) as u32;
    // SAFETY: the caller's promise; a live domain has a live context.
    unsafe { (library.efadv_create_qp_ex)((*domain).context, attributes, &mut own, size) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Role, Settings, Traffic, Wait};

    const DEVICE: efadv_device_attr = efadv_device_attr {
        device_caps: EFADV_DEVICE_ATTR_CAPS_RDMA_READ,
        max_rdma_size: 1 << 30,
        inline_buf_size: 32,
        comp_mask: 0,
        max_sq_wr: 256,
        max_rq_wr: 256,
        max_sq_sge: 2,
        max_rq_sge: 2,
        inline_buf_size_ex: 0,
    };

    fn refused(operation: &str, size: usize) -> Option<String> {
        let settings = Settings::of_values([("operation", operation)]).unwrap();
        let setup =
            Setup { settings, ..Setup::new(Role::Client, Traffic::OneSided, Wait::Busy, size) };
        let most = most_bytes(setup.settings.operation(), &DEVICE, 8928);
        check(&setup, "rdmap0s6-rdm", most).err().map(|error| error.to_string())
    }

    #[test]
    fn a_send_fits_a_packet_and_an_rdma_operation_what_the_device_says() {
        assert_eq!((refused("send", 8928), refused("read", 1 << 20)), (None, None));
        let sentence = refused("send", 8929).unwrap();
        assert!(sentence.contains("rdmap0s6-rdm takes 1 B to 8928 B"), "{sentence}");
        let sentence = refused("write_imm", 64).unwrap();
        assert!(sentence.contains("does not support --operation write_imm"), "{sentence}");
    }

    #[test]
    fn what_is_asked_to_be_inline_is_held_against_the_device() {
        let asked = |bytes| check_inline(bytes, "rdmap0s6-rdm", &DEVICE).err();
        assert!(asked(None).is_none() && asked(Some(32)).is_none());
        assert!(asked(Some(64)).unwrap().to_string().contains("up to 32 B inline"));
        assert!(!sets_rnr_retries(&DEVICE));
    }
}
