//! The time in which all flows were under way, and what they delivered in it. Each thread is a
//! flow, and each of its directions where data goes both ways.
//!
//! A flow that is still alone, or alone again, has the transport to itself: its messages then say
//! nothing of what all flows get together. So the window is the time that all flows have in
//! common, from the latest of their first stamps to the earliest of their last, and the work is
//! what all of them delivered within it. `METHOD.md` derives it.

use wiregauge_stats::rate::Delivered;

/// `each` of work for every stamp but the first of each flow, in the time that all flows share. No
/// time at all where one of them was over before another one began.
pub(super) fn delivered(flows: &[Vec<f64>], each: f64) -> Delivered {
    let flows: Vec<Vec<f64>> = flows.iter().map(|stamps| rising(stamps)).collect();
    let begins = flows.iter().map(|flow| flow.first().copied().unwrap_or(f64::INFINITY));
    let ends = flows.iter().map(|flow| flow.last().copied().unwrap_or(f64::NEG_INFINITY));
    let (begin, end) =
        (begins.fold(f64::NEG_INFINITY, f64::max), ends.fold(f64::INFINITY, f64::min));
    if flows.is_empty() || end.partial_cmp(&begin) != Some(std::cmp::Ordering::Greater) {
        return Delivered { work: 0.0, seconds: 0.0 };
    }
    let strides: f64 = flows.iter().map(|flow| at(flow, end) - at(flow, begin)).sum();
    Delivered { work: strides * each, seconds: (end - begin) / 1e9 }
}

/// The stamps of a flow, rising.
fn rising(stamps: &[f64]) -> Vec<f64> {
    let mut stamps: Vec<f64> = stamps.iter().copied().filter(|ns| !ns.is_nan()).collect();
    stamps.sort_by(f64::total_cmp);
    stamps
}

/// Strides after the first stamp of a flow that have been delivered by then, parts of one included:
/// its messages are taken to be evenly spread over the time from one stamp to the next.
fn at(flow: &[f64], ns: f64) -> f64 {
    let after = flow.partition_point(|stamp| *stamp <= ns);
    let Some(last) = after.checked_sub(1) else { return 0.0 };
    let part = flow.get(after).map_or(0.0, |next| (ns - flow[last]) / (next - flow[last]));
    last as f64 + part
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stamp every `step` ns.
    fn steady(from: f64, to: f64, step: f64) -> Vec<f64> {
        let stamp = |i: u32| from + f64::from(i) * step;
        (0..).map(stamp).take_while(|ns| *ns <= to).collect()
    }

    fn rate(flows: &[Vec<f64>], each: f64) -> f64 {
        let found = delivered(flows, each);
        found.work / found.seconds
    }

    #[test]
    fn one_flow_is_its_stamps_but_the_first_over_its_time() {
        let found = delivered(&[vec![1e9, f64::NAN, 2e9, 3e9, 3e9]], 16.0);
        assert_eq!(found, Delivered { work: 48.0, seconds: 2.0 });
    }

    #[test]
    fn flows_of_known_rates_add_up_whatever_their_length() {
        // 1000, 500 and 250 messages/s; each begins and ends at another time.
        let flows = [steady(0.0, 10e9, 1e6), steady(1e9, 12e9, 2e6), steady(0.3e9, 8e9, 4e6)];
        assert_eq!(delivered(&flows, 1.0).seconds, 7.0);
        assert!((rate(&flows, 1.0) - 1750.0).abs() < 1e-6, "{}", rate(&flows, 1.0));
        // The sum over the time in which any was under way would be too little.
        let sent: f64 = flows.iter().map(|flow| flow.len() as f64 - 1.0).sum();
        assert!(sent / 12.0 < 1500.0);
    }

    #[test]
    fn the_ends_of_the_window_may_fall_between_two_stamps() {
        // The second flow has a stamp every second, the window is half a second.
        let flows = [vec![0.25e9, 0.75e9], vec![0.0, 1e9]];
        assert_eq!(delivered(&flows, 10.0), Delivered { work: 15.0, seconds: 0.5 });
    }

    #[test]
    fn flows_without_a_common_time_have_no_rate() {
        let none = Delivered { work: 0.0, seconds: 0.0 };
        assert_eq!(delivered(&[vec![0.0, 1e9], vec![1e9, 2e9]], 1.0), none);
        assert_eq!(delivered(&[vec![0.0, 1e9], vec![]], 1.0), none);
        assert_eq!(delivered(&[vec![f64::NAN]], 1.0), none);
        assert_eq!(delivered(&[], 1.0), none);
    }
}
