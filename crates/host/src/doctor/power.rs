//! Checks of what saves power: frequencies, idle states, links.

use super::cpus::named;
use super::examined::Examined;
use super::finding::Finding;
use crate::CpuState;
use wiregauge_base::warning::Severity::{Note, Warning};

/// Profiles of tuned that keep frequencies up and idle states shallow.
const PROFILES: [&str; 7] = [
    "latency-performance",
    "network-latency",
    "realtime",
    "realtime-virtual-guest",
    "realtime-virtual-host",
    "cpu-partitioning",
    "hpc-compute",
];
/// What /dev/cpu_dma_latency holds where no program asks for less (include/linux/pm_qos.h).
const NO_REQUEST_US: i32 = 2_000_000_000;
const CPU: &str = "/sys/devices/system/cpu";

pub(super) fn governor(examined: &Examined) -> Vec<Finding> {
    let Some(warning) = examined.warned("governor") else { return Vec::new() };
    let wrong = |state: &&CpuState| {
        state.governor.as_deref().is_some_and(|governor| governor != "performance")
    };
    let states: Vec<&CpuState> = examined.environment.cpus.iter().filter(wrong).collect();
    let ratio = |state: &&CpuState| {
        let (least, most) = (state.frequency_khz_least?, state.frequency_khz_most?);
        (least > 0).then(|| most as f64 / least as f64)
    };
    let ratio = states.iter().filter_map(ratio).fold(0.0, f64::max);
    let cost = match ratio > 1.0 {
        true => format!("up to {ratio:.1} times as long after a pause, until the clock has risen"),
        false => "longer after each pause, until the clock has risen".to_owned(),
    };
    let file = |cpu: u32| format!("{CPU}/cpu{cpu}/cpufreq/scaling_governor");
    let files: Vec<_> = states
        .iter()
        .map(|state| {
            let old = state.governor.clone().unwrap_or_default();
            (file(state.cpu), "performance".to_owned(), old)
        })
        .collect();
    let finding =
        Finding::of_warning(warning).costs(cost, "this host's cpufreq limits").writes(&files);
    vec![finding.advice("cpupower frequency-set -g performance")]
}

pub(super) fn turbo(examined: &Examined) -> Vec<Finding> {
    if examined.environment.processor.turbo != Some(true) {
        return Vec::new();
    }
    let intel = format!("{CPU}/intel_pstate/no_turbo");
    let change = match examined.tree.text(&intel) {
        Some(_) => (intel, "1".to_owned(), "0".to_owned()),
        None => (format!("{CPU}/cpufreq/boost"), "0".to_owned(), "1".to_owned()),
    };
    let finding =
        Finding::new(Note, "", "turbo is on: the clock depends on heat and on neighbours")
            .costs("runs differ; medians are lower with it", "kernel documentation, admin-guide/pm")
            .writes(&[change]);
    vec![finding]
}

pub(super) fn idle_states(examined: &Examined) -> Vec<Finding> {
    let Some(warning) = examined.warned("deep_idle").filter(|_| examined.wanted.blocks) else {
        return Vec::new();
    };
    let limit = crate::warnings::DEEP_IDLE_US;
    let mut files = Vec::new();
    let mut latest = 0;
    for state in &examined.environment.cpus {
        for (number, idle) in state.idle_states.iter().enumerate() {
            if !idle.disabled && idle.exit_latency_us > limit {
                latest = latest.max(idle.exit_latency_us);
                let file = format!("{CPU}/cpu{}/cpuidle/state{number}/disable", state.cpu);
                files.push((file, "1".to_owned(), "0".to_owned()));
            }
        }
    }
    let finding = Finding::of_warning(warning)
        .costs(format!("up to {latest} us for each wake-up"), "this host's idle driver")
        .writes(&files);
    vec![finding.advice(format!("cpupower idle-set -D {limit}"))]
}

/// The bytes of a request of a number of 32 bits.
fn requested_us(examined: &Examined) -> Option<i32> {
    let bytes = examined.tree.bytes("/dev/cpu_dma_latency", 4)?;
    Some(i32::from_ne_bytes(bytes.try_into().ok()?))
}

pub(super) fn pm_qos(examined: &Examined) -> Vec<Finding> {
    let has_deep = examined.warned("deep_idle").is_some() && examined.wanted.blocks;
    let Some(us) = requested_us(examined).filter(|us| has_deep && *us >= NO_REQUEST_US) else {
        return Vec::new();
    };
    let finding = Finding::new(
        Note,
        "",
        format!(
            "no program limits wake-ups (/dev/cpu_dma_latency holds {us} us, which is no limit)"
        ),
    )
    .costs(
        "no change of the one-way median over InfiniBand was seen with 0 us",
        "D. Potter, thesis, RWTH Aachen 2018, Evaluation",
    )
    .advice("hold it: tuned's force_latency, or a program that keeps 0 written to it");
    vec![finding]
}

pub(super) fn tuned(examined: &Examined) -> Vec<Finding> {
    let Some(profile) = examined.tree.text("/etc/tuned/active_profile") else {
        return Vec::new();
    };
    if !examined.runs("tuned") {
        return Vec::new();
    }
    let source = "D. Potter, thesis, RWTH Aachen 2018, Optimized environment";
    let forced = examined
        .tree
        .text(&format!("/etc/tuned/{profile}/tuned.conf"))
        .or_else(|| examined.tree.text(&format!("/usr/lib/tuned/{profile}/tuned.conf")))
        .is_some_and(|text| text.lines().any(|line| line.trim().starts_with("force_latency")));
    if PROFILES.contains(&profile.as_str()) && forced {
        let finding =
            Finding::new(Note, "", format!("tuned's profile {profile} has force_latency"))
                .costs(
                    "medians rose by 700 ns, and a timerfd missed up to 15 % of its steps",
                    source,
                )
                .advice("compare with a copy of the profile without force_latency");
        return vec![finding];
    }
    if PROFILES.contains(&profile.as_str()) {
        return Vec::new();
    }
    let is_plain = profile.chars().all(|c| c.is_ascii_alphanumeric() || "-_. ".contains(c));
    let finding = Finding::new(Warning, "", format!("tuned's profile {profile} saves power"))
        .costs("what governor and idle_states cost, which it sets", "tuned's profiles");
    vec![match is_plain {
        true => finding
            .change("tuned-adm profile network-latency", format!("tuned-adm profile {profile}")),
        false => finding.advice("tuned-adm profile network-latency"),
    }]
}

pub(super) fn aspm(examined: &Examined) -> Vec<Finding> {
    const LINK: [&str; 3] = ["l1_aspm", "l0s_aspm", "l1_1_aspm"];
    let mut found = Vec::new();
    for adapter in &examined.adapters {
        let files = LINK.iter().map(|name| format!("{}/link/{name}", adapter.device));
        let on: Vec<String> = files.filter(|file| examined.tree.flag(file) == Some(true)).collect();
        if on.is_empty() {
            continue;
        }
        let files: Vec<_> =
            on.iter().map(|file| (file.clone(), "0".to_owned(), "1".to_owned())).collect();
        let name = adapter.interface.name.clone();
        let finding = Finding::new(Note, name, "its PCIe link may sleep between messages (ASPM)")
            .costs(
                "no change of the one-way median over InfiniBand was seen without it",
                "D. Potter, thesis, RWTH Aachen 2018, Evaluation",
            )
            .writes(&files);
        found.push(finding);
    }
    let policy = examined.tree.text("/sys/module/pcie_aspm/parameters/policy").unwrap_or_default();
    let is_on = ["[powersave]", "[powersupersave]"].iter().any(|word| policy.contains(word));
    if found.is_empty() && is_on && !examined.cpus.is_empty() {
        let file = "/sys/module/pcie_aspm/parameters/policy".to_owned();
        let old = policy.split(['[', ']']).nth(1).unwrap_or("default").to_owned();
        let sentence = format!("the policy of PCIe links is {old}: they sleep between messages");
        let finding = Finding::new(Warning, named(&examined.cpus), sentence)
            .costs("up to 64 us to wake from L1, as a device states it", "PCI Express, LnkCap")
            .writes(&[(file, "performance".to_owned(), old)]);
        found.push(Finding { subject: String::new(), ..finding });
    }
    found
}
