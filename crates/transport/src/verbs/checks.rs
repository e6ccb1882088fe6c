//! What of the options goes together, and with what of a case: the refusals before anything runs.

use super::memory_kind::MemoryKind;
use super::numbers::Numbered;
use super::options::*;
use super::order::check_requests;
use super::queues::LEAST_RECEIVES_OF_ECHO;
use crate::{Lengths, Operation, Settings, Traffic, TransportRequest};
use wiregauge_base::options::names;

/// The shortest message that has room for a number and a time.
pub const STAMPED_SIZE: u64 = 16;

/// The largest path MTU of InfiniBand.
const LARGEST_MTU: u64 = 4096;

/// Checks what goes together; the error says what is supported.
pub fn check(request: &TransportRequest<'_>) -> Result<(), String> {
    let settings = request.settings;
    let number = |name| settings.get(name).unwrap_or(1);
    check_requests(number("queue-pairs"), number("send-depth"))?;
    check_service(request)?;
    check_attributes(settings)?;
    check_memory(request)?;
    check_stamps(request)?;
    check_receives(request)?;
    check_waits(request)
}

/// Refuses what the service does not support.
fn check_service(request: &TransportRequest<'_>) -> Result<(), String> {
    let TransportRequest { size, traffic, lengths, settings, .. } = *request;
    let (service, operation) = (service(settings), settings.operation());
    let (by, with) = (service.name(), operation.name());
    let supported = service.operations();
    let largest = settings.get("mtu").unwrap_or(LARGEST_MTU);
    let takes = |name| settings.flag(name);
    Err(if !supported.contains(&operation) {
        format!("--service {by} does not support --operation {with}: use {}", names(supported))
    } else if operation.is_atomic() && size != 8 {
        format!(
            "--size {size} B is not allowed with --operation {with}: use 8, the size of an atomic"
        )
    } else if service == Service::Ud && size > largest {
        format!("--size {size} B is not allowed with --service ud: use 1 to {largest} B, one MTU")
    } else if !service.keeps_order()
        && operation == Operation::Write
        && traffic != Traffic::OneSided
    {
        format!(
            "--service {by} does not support --operation write here, since its packets arrive in \
             any order and the last byte does not show that all have: use --operation write_imm, \
             or bandwidth"
        )
    } else if operation == Operation::Write && lengths == Lengths::Varied {
        "--operation write needs messages of one length here, since a receiver polls the byte \
         behind it: use --operation send or write_imm"
            .into()
    } else if service.completes_each() && signalled(settings).is_some_and(|every| every > 1) {
        format!("--service {by} needs a completion of every send: use --signal-every 1")
    } else if service.needs_extended(operation)
        && settings.choice("post") == Some(CallStyle::Classic)
    {
        format!("--service {by} with --operation {with} is posted by ibv_wr_*: use --post extended")
    } else if by_manager(settings) && !matches!(service, Service::Rc | Service::Ud) {
        format!("--service {by} does not support --connect cm: use --connect exchange")
    } else if takes("shared-receive-queue") && matches!(service, Service::Uc | Service::Srd) {
        format!("--service {by} does not support --shared-receive-queue: use --service rc or ud")
    } else if takes("ece")
        && (!matches!(service, Service::Rc | Service::Uc) || by_manager(settings))
    {
        "--ece is supported by --service rc and uc with --connect exchange: leave it out".into()
    } else {
        return Ok(());
    })
}

/// The attributes of queue pairs that only a reliable service has.
const RELIABLE: [&str; 4] = ["qp-timeout", "retries", "rnr-timer", "read-depth"];

/// Refuses attributes that the queue pairs of the service do not have, so that none is ignored.
fn check_attributes(settings: &Settings) -> Result<(), String> {
    let service = service(settings);
    let by = service.name();
    let is_given = |name: &&str| settings.is_given(name);
    if let Some(name) = RELIABLE.iter().find(|name| !service.retries() && is_given(name)) {
        return Err(format!(
            "--{name} is supported by --service rc, xrc and dc: leave it out with --service {by}"
        ));
    }
    ensure!(
        !service.loses() || !is_given(&"rnr-retries"),
        "--rnr-retries is supported by --service rc, xrc, dc and srd: leave it out with --service \
         {by}"
    );
    ensure!(
        service != Service::Srd || !is_given(&"mtu"),
        "--mtu is no attribute of --service srd, whose packets have the length of the port's: \
         leave it out"
    );
    ensure!(
        !by_manager(settings) || !is_given(&"pkey-index"),
        "--pkey-index does not work with --connect cm, which takes the partition of the network \
         interface: use --connect exchange"
    );
    Ok(())
}

/// Refuses what payloads that the CPU neither reads nor writes cannot.
fn check_memory(request: &TransportRequest<'_>) -> Result<(), String> {
    let TransportRequest { traffic, settings, reads_payloads, .. } = *request;
    let Some(by) = MemoryKind::unread(settings) else { return Ok(()) };
    ensure!(
        !reads_payloads,
        "{by} keeps payloads where the CPU neither writes nor reads them: leave --check out, and \
         use latency, oneway or bandwidth"
    );
    let is_foreign = MemoryKind::foreign(settings).is_some();
    let given = ["stamp-send", "huge-pages"].into_iter().find(|name| settings.flag(name));
    let given = given.or(on_demand(settings).map(|_| "on-demand"));
    let given = given.or(inline(settings).filter(|bytes| *bytes > 0).map(|_| "inline"));
    if let Some(name) = given.filter(|name| is_foreign || *name == "stamp-send") {
        return Err(format!("--{name} does not work with {by}: leave one of the two out"));
    }
    let operation = settings.operation();
    if traffic == Traffic::OneSided {
        return Ok(());
    }
    ensure!(
        operation != Operation::Write,
        "{by} does not support --operation write here, since its receiver polls memory: use \
         --operation send or write_imm, or bandwidth"
    );
    ensure!(
        Numbered::of(settings).is_some(),
        "{by} with --operation send numbers messages in the order of their arrival: use one queue \
         pair of --service rc, xrc or dc, or --operation send_imm, which sends the number"
    );
    Ok(())
}

/// Refuses stamps that the operation or the completions have no place for.
fn check_stamps(request: &TransportRequest<'_>) -> Result<(), String> {
    let TransportRequest { size, settings, .. } = *request;
    let operation = settings.operation();
    let with = operation.name();
    let is_inline = inline(settings).is_some_and(|bytes| u64::from(bytes) >= size);
    let (stamps_send, stamps_complete) = (settings.stamps_send(), stamps_complete(settings));
    Err(if stamps_send && !operation.carries_payload() {
        format!("--operation {with} does not support --stamp-send: use an operation that sends")
    } else if stamps_send && size < STAMPED_SIZE {
        format!("--size {size} B is not allowed with --stamp-send: use {STAMPED_SIZE} B or more")
    } else if stamps_send && is_inline {
        "--inline does not work with --stamp-send, since an inline payload is copied when it is \
         posted: use --inline off"
            .into()
    } else if stamps_complete && signalled(settings).is_some_and(|every| every > 1) {
        "--stamp-complete device needs a completion of every send: use --signal-every 1".into()
    } else if stamps_complete && settings.choice("poll") == Some(CallStyle::Classic) {
        "--stamp-complete device needs timestamps in completions: use --poll extended".into()
    } else {
        return Ok(());
    })
}

/// Refuses fewer receives than an end that answers needs.
fn check_receives(request: &TransportRequest<'_>) -> Result<(), String> {
    let TransportRequest { traffic, settings, .. } = *request;
    let answers = matches!(traffic, Traffic::Echo { .. });
    let depth = settings.count32("receive-depth").unwrap_or(LEAST_RECEIVES_OF_ECHO);
    ensure!(
        !answers || depth >= LEAST_RECEIVES_OF_ECHO,
        "--receive-depth {depth} leaves no receive while an answer is sent from the last one: use \
         {LEAST_RECEIVES_OF_ECHO} or more"
    );
    Ok(())
}

/// Refuses waits that an end cannot do.
fn check_waits(request: &TransportRequest<'_>) -> Result<(), String> {
    let TransportRequest { wait, traffic, settings, .. } = *request;
    let one_sided = traffic == Traffic::OneSided;
    let sends_and_receives = matches!(traffic, Traffic::Echo { .. } | Traffic::Both);
    ensure!(
        settings.text("send-wait") != Some("block") || wait.sleeps() || !sends_and_receives,
        "--send-wait block with --wait busy is supported for ends that receive nothing (bandwidth, \
         stream, oneway --outstanding): use it there, or --wait block"
    );
    ensure!(
        settings.operation() != Operation::Write || one_sided || !wait.sleeps(),
        "--operation write does not support --wait {}, since its receiver polls memory: use --wait \
         busy, or --operation write_imm",
        wait.name()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Wait;

    fn refused(values: &[(&str, &str)], size: u64) -> Option<String> {
        let settings = Settings::of_values(values.iter().copied());
        let settings = &settings.unwrap();
        let traffic = Traffic::Echo { every: 1 };
        check(&TransportRequest {
            size,
            wait: Wait::Busy,
            traffic,
            lengths: Lengths::Fixed,
            settings,
            reads_payloads: false,
        })
        .err()
    }

    #[test]
    fn what_a_service_does_not_support_is_refused_in_a_sentence() {
        let with =
            |service, operation| refused(&[("service", service), ("operation", operation)], 64);
        assert_eq!(
            with("ud", "write").unwrap(),
            "--service ud does not support --operation write: use send, send_imm"
        );
        assert!(with("uc", "read").is_some());
        assert_eq!(with("rc", "read"), None);
        assert!(refused(&[("service", "uc"), ("connect", "cm")], 64).is_some());
        assert!(refused(&[("service", "uc"), ("shared-receive-queue", "on")], 64).is_some());
        let with_ece = |more| refused(&[("ece", "on"), more], 64);
        assert_eq!(with_ece(("service", "uc")), None);
        assert!(with_ece(("service", "ud")).is_some() && with_ece(("connect", "cm")).is_some());
    }

    #[test]
    fn an_end_that_answers_has_a_receive_while_it_does() {
        assert!(refused(&[("receive-depth", "1")], 64).unwrap().contains("use 2 or more"));
        assert_eq!(refused(&[("receive-depth", "2")], 64), None);
    }

    #[test]
    fn an_end_that_polls_for_messages_does_not_sleep_for_sends() {
        let settings = Settings::of_values([("send-wait", "block")]).unwrap();
        let allowed = |wait, traffic| {
            let reads_payloads = false;
            let (lengths, settings) = (Lengths::Fixed, &settings);
            check(&TransportRequest { size: 64, wait, traffic, lengths, settings, reads_payloads })
                .is_ok()
        };
        let echo = Traffic::Echo { every: 1 };
        assert!(!allowed(Wait::Busy, echo) && !allowed(Wait::Busy, Traffic::Both));
        assert!(allowed(Wait::Block, echo) && allowed(Wait::Adaptive, echo));
        assert!(allowed(Wait::Busy, Traffic::Forward) && allowed(Wait::Busy, Traffic::OneSided));
    }

    #[test]
    fn a_device_stamps_every_send_and_its_completions_carry_the_time() {
        let with = |name, text| refused(&[("stamp-complete", "device"), (name, text)], 64);
        assert_eq!(with("service", "rc"), None);
        assert!(with("signal-every", "4").unwrap().contains("--signal-every 1"));
        assert!(with("poll", "classic").unwrap().contains("--poll extended"));
    }

    #[test]
    fn memory_that_the_cpu_does_not_read_is_numbered_by_order_or_by_the_adapter() {
        let of = |traffic, more: &[(&str, &str)], reads_payloads| {
            let values = [&[("memory", "cuda:1,host")], more].concat();
            let settings = &Settings::of_values(values).unwrap();
            let (size, wait, lengths) = (64, Wait::Busy, Lengths::Fixed);
            check(&TransportRequest { size, wait, traffic, lengths, settings, reads_payloads })
        };
        let echo = Traffic::Echo { every: 1 };
        for traffic in [Traffic::OneSided, Traffic::Forward, echo] {
            assert_eq!(of(traffic, &[], false), Ok(()));
            assert!(of(traffic, &[], true).unwrap_err().contains("leave --check out"));
            for more in [("inline", "64"), ("huge-pages", "on"), ("on-demand", "explicit")] {
                assert!(of(traffic, &[more], false).unwrap_err().contains(more.0));
            }
            assert_eq!(of(traffic, &[("inline", "off")], false), Ok(()));
        }
        let write = [("operation", "write")];
        assert_eq!(of(Traffic::OneSided, &write, false), Ok(()));
        assert!(of(echo, &write, false).unwrap_err().contains("send or write_imm"));
        for unordered in [("queue-pairs", "2"), ("service", "ud"), ("service", "srd")] {
            assert!(of(echo, &[unordered], false).unwrap_err().contains("send_imm"));
            assert_eq!(of(echo, &[unordered, ("operation", "send_imm")], false), Ok(()));
        }
    }

    #[test]
    fn one_buffer_keeps_no_payload_that_could_be_read() {
        let of = |traffic, more: &[(&str, &str)], reads_payloads| {
            let values = [&[("same-buffer", "on")], more].concat();
            let settings = &Settings::of_values(values).unwrap();
            let (size, wait, lengths) = (64, Wait::Busy, Lengths::Fixed);
            check(&TransportRequest { size, wait, traffic, lengths, settings, reads_payloads })
        };
        for fits in [("inline", "64"), ("huge-pages", "on"), ("on-demand", "explicit")] {
            assert_eq!(of(Traffic::Forward, &[fits], false), Ok(()));
        }
        assert!(of(Traffic::Forward, &[], true).unwrap_err().starts_with("--same-buffer keeps"));
        let stamped = of(Traffic::Forward, &[("stamp-send", "on")], false).unwrap_err();
        assert!(stamped.contains("does not work with --same-buffer"), "{stamped}");
        assert!(of(Traffic::Forward, &[("operation", "write")], false).is_err());
        assert_eq!(of(Traffic::OneSided, &[("operation", "write")], false), Ok(()));
    }

    #[test]
    fn what_xrc_dc_and_srd_lack_is_refused_with_what_they_have() {
        let of = |service, more| refused(&[("service", service), more], 64);
        for service in ["xrc", "dc"] {
            for operation in ["send", "write", "read", "write_imm"] {
                assert_eq!(of(service, ("operation", operation)), None, "{service} {operation}");
            }
            assert_eq!(of(service, ("shared-receive-queue", "on")), None);
            assert_eq!(of(service, ("retries", "3")), None);
        }
        let sentence = |service, more| of(service, more).unwrap();
        for service in ["xrc", "dc", "srd"] {
            assert!(sentence(service, ("connect", "cm")).contains("--connect exchange"));
            assert!(sentence(service, ("ece", "on")).contains("rc and uc"));
        }
        assert!(sentence("dc", ("post", "classic")).contains("--post extended"));
        assert_eq!(of("srd", ("post", "classic")), None);
        assert_eq!(
            sentence("srd", ("operation", "fetch_add")),
            "--service srd does not support --operation fetch_add: use send, send_imm, write, \
             write_imm, read"
        );
        assert!(sentence("srd", ("operation", "write")).contains("write_imm"));
        assert!(sentence("srd", ("signal-every", "2")).contains("--signal-every 1"));
        assert!(sentence("srd", ("shared-receive-queue", "on")).contains("rc or ud"));
    }

    #[test]
    fn an_attribute_that_a_service_does_not_have_is_refused_and_not_ignored() {
        for name in ["qp-timeout", "retries", "rnr-timer", "read-depth"] {
            for service in ["uc", "ud", "srd"] {
                let sentence = refused(&[("service", service), (name, "1")], 64).unwrap();
                assert!(sentence.contains(name) && sentence.contains("rc, xrc and dc"));
            }
        }
        assert_eq!(refused(&[("service", "srd"), ("rnr-retries", "1")], 64), None);
        assert!(refused(&[("service", "srd"), ("mtu", "1024")], 64).is_some());
        assert!(refused(&[("service", "ud"), ("rnr-retries", "1")], 64).is_some());
        let by_manager = refused(&[("connect", "cm"), ("pkey-index", "1")], 64).unwrap();
        assert!(by_manager.contains("--connect exchange"), "{by_manager}");
    }

    #[test]
    fn an_atomic_operation_has_eight_bytes_and_a_datagram_fits_the_mtu() {
        let atomic = |size| refused(&[("operation", "fetch_add")], size);
        assert!(atomic(8).is_none() && atomic(16).is_some());
        let datagram = |mtu, size| refused(&[("service", "ud"), ("mtu", mtu)], size);
        assert!(datagram("4096", 4096).is_none() && datagram("4096", 4097).is_some());
        assert!(datagram("1024", 1025).is_some());
        assert!(refused(&[("service", "ud")], 4097).is_some());
    }

    #[test]
    fn a_stamp_needs_room_and_a_message_that_is_read_late() {
        let with = |name, text, size| refused(&[("stamp-send", "on"), (name, text)], size);
        assert_eq!(with("inline", "off", 64), None);
        assert!(with("inline", "128", 64).unwrap().contains("--inline off"));
        assert!(with("inline", "off", 8).unwrap().contains("16 B or more"));
        assert!(with("operation", "read", 64).unwrap().contains("--stamp-send"));
    }
}
