//! Completions with an error: counted, named, and what they mean for the link.

use crate::Link;
use crate::counter::{CounterValue, FinalCounters};
use fabric_sys::verbs::types::*;
use fabric_sys::verbs::{Verbs, verbs};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};

/// What went wrong, by what was asked for and what the adapter said.
#[derive(Clone, Debug, Default)]
pub struct Errors {
    counts: BTreeMap<(&'static str, ibv_wc_status), (u64, u64)>,
    events: BTreeMap<ibv_event_type, u64>,
}

impl Errors {
    /// Counts one; the link as it leaves it.
    pub fn note(&mut self, what: &'static str, completion: &ibv_wc) -> Link {
        let counted = self.counts.entry((what, completion.status)).or_insert((0, completion.wr_id));
        counted.0 += 1;
        known(completion.status).1
    }

    /// Counts an async event of the device; the state of the link after it.
    pub fn async_event(&mut self, event: ibv_event_type) -> Link {
        *self.events.entry(event).or_default() += 1;
        match event {
            IBV_EVENT_DEVICE_FATAL => Link::Failed(libc::ENODEV),
            IBV_EVENT_QP_FATAL | IBV_EVENT_QP_REQ_ERR | IBV_EVENT_CQ_ERR | IBV_EVENT_SRQ_ERR => {
                Link::Failed(libc::EIO)
            }
            IBV_EVENT_QP_ACCESS_ERR => Link::Failed(libc::EACCES),
            // A port that is down may come back; what it cost is seen in the completions.
            _ => Link::Up,
        }
    }

    /// As they stand in the record: name, value.
    pub fn counters(&self) -> FinalCounters {
        let errors = self.counts.iter().map(|((what, status), (count, first))| {
            let words = words(*status, |verbs| verbs.ibv_wc_status_str);
            let text = format!("{count} ({words}; first: wr_id {first})");
            (format!("error.{what}.{}", known(*status).0), text)
        });
        let events = self.events.iter().map(|(event, count)| {
            format!("{count} ({})", words(*event, |verbs| verbs.ibv_event_type_str))
        });
        let events = events.reduce(|all, next| format!("{all}; {next}"));
        let events = events.map(|events| ("event".to_string(), events));
        BTreeMap::from_iter(
            errors.chain(events).map(|(name, text)| (name, CounterValue::Text(text))),
        )
    }
}

/// The statuses with an error, as the specification abbreviates them, and the link after each.
const STATUSES: &[(ibv_wc_status, &str, Link)] = &[
    (IBV_WC_LOC_LEN_ERR, "loc_len", Link::Failed(libc::EMSGSIZE)),
    (IBV_WC_LOC_QP_OP_ERR, "loc_qp_op", Link::Failed(libc::EIO)),
    (IBV_WC_LOC_PROT_ERR, "loc_prot", Link::Failed(libc::EACCES)),
    // What was posted comes back when the queue pair has failed or is torn down.
    (IBV_WC_WR_FLUSH_ERR, "wr_flush", Link::Closed),
    (IBV_WC_REM_INV_REQ_ERR, "rem_inv_req", Link::Failed(libc::EMSGSIZE)),
    (IBV_WC_REM_ACCESS_ERR, "rem_access", Link::Failed(libc::EACCES)),
    (IBV_WC_REM_OP_ERR, "rem_op", Link::Failed(libc::EIO)),
    (IBV_WC_RETRY_EXC_ERR, "retry_exc", Link::Failed(libc::ETIMEDOUT)),
    (IBV_WC_RNR_RETRY_EXC_ERR, "rnr_retry_exc", Link::Failed(libc::ENOBUFS)),
    (IBV_WC_RESP_TIMEOUT_ERR, "resp_timeout", Link::Failed(libc::EIO)),
    (IBV_WC_FATAL_ERR, "fatal", Link::Failed(libc::EIO)),
];

/// A status' abbreviation, and the link after it.
fn known(status: ibv_wc_status) -> (&'static str, Link) {
    let known = STATUSES.iter().find(|(known, ..)| *known == status);
    known.map_or(("other", Link::Failed(libc::EIO)), |(_, name, link)| (name, *link))
}

/// The library's own words for a number.
// SAFETY: only functions that return a static string for every number are passed.
fn words(number: u32, of: fn(&Verbs) -> unsafe extern "C" fn(u32) -> *const c_char) -> String {
    let Ok(verbs) = verbs() else { return format!("number {number}") };
    // SAFETY: ibv_wc_status_str and ibv_event_type_str, the functions that are passed, return a
    // static string for every number.
    let text = unsafe { CStr::from_ptr(of(verbs)(number)) };
    text.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_by_name_and_end_the_link_by_their_meaning() {
        let mut errors = Errors::default();
        let of = |status, wr_id| ibv_wc { status, wr_id, ..ibv_wc::default() };
        let link = errors.note("send", &of(IBV_WC_RETRY_EXC_ERR, 7));
        assert_eq!(link, Link::Failed(libc::ETIMEDOUT));
        assert_eq!(errors.note("send", &of(IBV_WC_WR_FLUSH_ERR, 8)), Link::Closed);
        let _ = errors.note("send", &of(IBV_WC_WR_FLUSH_ERR, 9));
        let counters = errors.counters();
        let flushed = counters["error.send.wr_flush"].to_string();
        assert!(flushed.starts_with("2 (") && flushed.ends_with("wr_id 8)"), "{flushed}");
        assert!(counters.contains_key("error.send.retry_exc") && counters.len() == 2);
        assert_eq!(errors.async_event(IBV_EVENT_PORT_ERR), Link::Up);
        assert_eq!(errors.async_event(IBV_EVENT_DEVICE_FATAL), Link::Failed(libc::ENODEV));
        assert_eq!(errors.counters()["event"].to_string().split("; ").count(), 2);
    }
}
