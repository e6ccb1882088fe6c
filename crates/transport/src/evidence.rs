//! Comparison of what was asked of an end with what the system granted.
//!
//! Settings are what was asked. Effective settings are what the system gives back of the connected
//! end. What has no entry here no call gives back: `docs/evidence.md` lists it.

use super::per_end::PerEnd;
use super::settings::Settings;
use super::traffic::Role;
use std::collections::BTreeMap;
use wiregauge_base::units::Bytes;

/// A setting that an end has otherwise than it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotGranted {
    /// The option.
    pub option: &'static str,
    /// The value that was asked for.
    pub asked: String,
    /// The value that the system gives back.
    pub granted: String,
    /// A sentence that says what to do.
    pub advice: &'static str,
}

/// A comparison of an asked value with one that is given back.
#[derive(Clone, Copy)]
enum Rule {
    /// By the same text.
    Same,
    /// By the same number.
    Number,
    /// By `true` for `on`.
    Switch,
    /// By microseconds.
    Microseconds,
    /// By at least twice as many bytes: the kernel doubles what it is asked for.
    Doubled,
    /// By as many bytes, less what TCP's options take at most.
    Segment,
}

/// Bytes that TCP's options may take of a segment (`MAX_TCP_OPTION_SPACE` of linux/tcp.h).
const TCP_OPTIONS: u64 = 40;

/// A device says what its queue pairs have.
const OF_DEVICE: &str =
    "leave it out, or look on the wire: some drivers apply what they do not give back";
const OF_SENDING: &str = "raise net.core.wmem_max, run as root, or ask for less";
const OF_RECEIVING: &str = "raise net.core.rmem_max, run as root, or ask for less";
const OF_SEGMENTS: &str = "ask for no more than the MTU of the path leaves (path_mtu_bytes)";
const OF_SOCKET: &str = "the kernel has refused it: leave it out, or look at its sysctls";

/// An option that the system gives back: its name, that of the effective setting, how they are
/// compared, and what to do.
struct GivenBack(&'static str, &'static str, Rule, &'static str);

const GIVEN_BACK: &[GivenBack] = &[
    GivenBack("send-buffer", "send_buffer_bytes", Rule::Doubled, OF_SENDING),
    GivenBack("receive-buffer", "receive_buffer_bytes", Rule::Doubled, OF_RECEIVING),
    GivenBack("busy-poll", "busy_poll_us", Rule::Microseconds, OF_SOCKET),
    GivenBack("dscp", "dscp", Rule::Number, OF_SOCKET),
    GivenBack("family", "family", Rule::Same, OF_SOCKET),
    GivenBack("interface", "interface", Rule::Same, OF_SOCKET),
    GivenBack("nodelay", "nodelay", Rule::Switch, OF_SOCKET),
    GivenBack("zerocopy", "zerocopy", Rule::Switch, OF_SOCKET),
    GivenBack("congestion", "congestion", Rule::Same, OF_SOCKET),
    GivenBack("mss", "mss_bytes", Rule::Segment, OF_SEGMENTS),
    GivenBack("device", "device", Rule::Same, OF_DEVICE),
    GivenBack("port", "port", Rule::Number, OF_DEVICE),
    GivenBack("pkey-index", "pkey_index", Rule::Number, OF_DEVICE),
    GivenBack("service-level", "service_level", Rule::Number, OF_DEVICE),
    GivenBack("traffic-class", "traffic_class", Rule::Number, OF_DEVICE),
    GivenBack("flow-label", "flow_label", Rule::Number, OF_DEVICE),
    GivenBack("qp-timeout", "qp_timeout", Rule::Number, OF_DEVICE),
    GivenBack("retries", "retries", Rule::Number, OF_DEVICE),
    GivenBack("rnr-retries", "rnr_retries", Rule::Number, OF_DEVICE),
    GivenBack("rnr-timer", "rnr_timer", Rule::Number, OF_DEVICE),
    GivenBack("read-depth", "read_depth", Rule::Number, OF_DEVICE),
];

impl Rule {
    /// Returns the asked value, in the form of the one that is given back, where the two differ.
    fn differs(self, settings: &Settings, option: &str, asked: &str, has: &str) -> Option<String> {
        let number = has.parse::<u64>().ok();
        let (asked, is_granted) = match self {
            Rule::Same => (asked.to_owned(), has == asked),
            Rule::Number => (asked.to_owned(), number? == asked.parse::<u64>().ok()?),
            Rule::Switch => (asked.to_owned(), (has == "true") == (asked != "off")),
            Rule::Microseconds => {
                let asked = u64::from(settings.busy_poll_us()?);
                (format!("{asked} us"), number? == asked)
            }
            Rule::Doubled => {
                let asked = settings.size(option)?;
                (asked.to_string(), number? / 2 >= asked.0)
            }
            Rule::Segment => {
                let asked = settings.size(option)?;
                let least = asked.0.saturating_sub(TCP_OPTIONS);
                (asked.to_string(), (least..=asked.0).contains(&number?))
            }
        };
        (!is_granted).then_some(asked)
    }
}

impl GivenBack {
    /// Returns this option where an end has it otherwise than it was asked for.
    fn not_granted(
        &self,
        settings: &Settings,
        role: Role,
        effective: &BTreeMap<String, String>,
    ) -> Option<NotGranted> {
        let GivenBack(option, name, rule, advice) = *self;
        let asked = settings.text(option).filter(|_| settings.is_given(option))?;
        let is_per_end = settings.definition(option).is_some_and(|one| one.is_per_end);
        let both = is_per_end.then(|| asked.parse::<PerEnd<String>>().ok()).flatten();
        let asked = both.as_ref().map_or(asked, |both| both.of(role));
        let granted = effective.get(name)?;
        let asked = rule.differs(settings, option, asked, granted)?;
        // In the unit of what was asked.
        let granted = match rule {
            Rule::Doubled => Bytes(granted.parse::<u64>().ok()? / 2).to_string(),
            Rule::Segment => Bytes(granted.parse().ok()?).to_string(),
            Rule::Microseconds => format!("{granted} us"),
            _ => granted.clone(),
        };
        Some(NotGranted { option, asked, granted, advice })
    }
}

/// Returns the settings that an end has otherwise than they were asked for. A setting that no call
/// has given back differs from nothing.
pub fn not_granted(
    settings: &Settings,
    role: Role,
    effective: &BTreeMap<String, String>,
) -> Vec<NotGranted> {
    GIVEN_BACK.iter().filter_map(|option| option.not_granted(settings, role, effective)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(asked: &[(&str, &str)], role: Role, has: &[(&str, &str)]) -> Vec<(String, String)> {
        let settings = Settings::of_values(asked.iter().copied()).unwrap();
        let effective =
            has.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let all = not_granted(&settings, role, &effective).into_iter();
        all.map(|one| (format!("{} {}", one.option, one.asked), one.granted)).collect()
    }

    fn differs(option: &str, asked: &str, name: &str, has: &str) -> Option<(String, String)> {
        found(&[(option, asked)], Role::Server, &[(name, has)]).pop()
    }

    #[test]
    fn every_rule_knows_what_was_granted_and_what_was_not() {
        for (option, asked, name, granted, other, said) in [
            ("receive-buffer", "256MiB", "receive_buffer_bytes", "536870912", "8388608", "4 MiB"),
            ("send-buffer", "16KiB", "send_buffer_bytes", "32768", "4608", "2304 B"),
            ("busy-poll", "50us", "busy_poll_us", "50", "0", "0 us"),
            ("dscp", "46", "dscp", "46", "0", "0"),
            ("nodelay", "off", "nodelay", "false", "true", "true"),
            ("zerocopy", "on", "zerocopy", "true", "false", "false"),
            ("congestion", "bbr", "congestion", "bbr", "cubic", "cubic"),
            ("interface", "a1,b1", "interface", "b1", "b0", "b0"),
            ("mss", "1460", "mss_bytes", "1448", "536", "536 B"),
            ("service-level", "3", "service_level", "3", "0", "0"),
        ] {
            assert_eq!(differs(option, asked, name, granted), None, "{option}");
            let found = differs(option, asked, name, other).expect(option);
            assert_eq!(found.1, said, "{option}");
        }
        // The smallest buffers are larger than was asked for, which holds what is sent.
        assert_eq!(differs("send-buffer", "1KiB", "send_buffer_bytes", "4608"), None);
    }

    #[test]
    fn each_end_is_held_to_its_own_value() {
        let asked = [("service-level", "3"), ("pkey-index", "1,2")];
        let has = [("service_level", "0"), ("pkey_index", "1")];
        let level = ("service-level 3".to_owned(), "0".to_owned());
        assert_eq!(found(&asked, Role::Client, &has), std::slice::from_ref(&level));
        let index = ("pkey-index 2".to_owned(), "1".to_owned());
        let of_server = found(&asked, Role::Server, &has);
        assert!(of_server.contains(&level) && of_server.contains(&index), "{of_server:?}");
        // What nobody asked for, or no call gives back, differs from nothing.
        assert_eq!(found(&asked, Role::Client, &[("qp_timeout", "1"), ("retries", "1")]), []);
    }
}
