//! What a result depends on, as far as this host shows it.

use super::container::rlimits;
use super::network::sysctls;
use super::processor::flags;
use super::tree::value_of;
use super::{Container, CpuState, Discipline, Interface, Node, Processor, Tree};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The program's version, with the commit of which a release is made (`0.1.0 (1a2b3c4)`).
pub const TOOL_VERSION: &str = match option_env!("WIREGAUGE_VERSION") {
    Some(of_release) => of_release,
    None => env!("CARGO_PKG_VERSION"),
};

/// What a result depends on. What the host does not show is `None` or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// Host name.
    pub host: String,
    /// Release of the kernel: `6.8.0-45-generic`.
    pub kernel: Option<String>,
    /// Build of the kernel: `#1 SMP PREEMPT_DYNAMIC ...`.
    pub kernel_build: Option<String>,
    /// Words of the kernel's command line that bear on latency; the others are not kept, since
    /// they may name what is nobody's business.
    pub kernel_options: Vec<String>,
    /// Name of the distribution.
    pub system: Option<String>,
    /// Vendor and product (DMI).
    pub machine: Option<String>,
    /// The hypervisor below this virtual machine. `None` on bare metal.
    pub hypervisor: Option<String>,
    /// The processor as a whole.
    pub processor: Processor,
    /// The CPUs that measure.
    pub cpus: Vec<CpuState>,
    /// NUMA nodes.
    pub nodes: Vec<Node>,
    /// Memory, and how the kernel hands it out.
    pub memory: Memory,
    /// Limits by control groups and of the process.
    pub container: Container,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// Clock sources that it could use.
    pub clock_sources: Vec<String>,
    /// How CLOCK_REALTIME is kept right.
    pub discipline: Discipline,
    /// Network interfaces, at most 64.
    pub interfaces: Vec<Interface>,
    /// Settings of the kernel that change what sockets do: name, value.
    pub sysctls: BTreeMap<String, String>,
    /// Load averages over 1, 5 and 15 minutes when the environment was read.
    pub load_average: Option<[f64; 3]>,
    /// Versions of what measured: `wiregauge`, and the libraries that were loaded.
    pub versions: BTreeMap<String, String>,
}

/// What the kernel calls this boot, a random number: hosts that have the same share one kernel.
pub fn boot() -> Option<String> {
    let text = super::read_text("/proc/sys/kernel/random/boot_id".as_ref(), 64).ok()?;
    Some(text.trim().to_owned()).filter(|boot| !boot.is_empty())
}

/// Memory, and how the kernel hands it out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// All of it, in bytes.
    pub total_bytes: Option<u64>,
    /// What could be had without swapping, in bytes.
    pub available_bytes: Option<u64>,
    /// Pages set aside as huge pages of the default size.
    pub huge_pages: Option<u64>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// How much a process may lock (RLIMIT_MEMLOCK, soft): bytes or `unlimited`.
    pub lock_limit: Option<String>,
}

impl Environment {
    /// Reads this host's; `cpus` are those that measure.
    pub fn read(cpus: &[u32]) -> Environment {
        let mut found = Environment::read_from(&Tree::default(), cpus);
        found.hypervisor = hypervisor_vendor().or(found.hypervisor);
        found.discipline = Discipline::read();
        found
    }

    /// The same from another tree of files.
    pub fn read_from(tree: &Tree, cpus: &[u32]) -> Environment {
        const KERNEL: &str = "/proc/sys/kernel";
        const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0";
        let clocks = tree.text(&format!("{CLOCKS}/available_clocksource")).unwrap_or_default();
        let tool = ("wiregauge".to_string(), TOOL_VERSION.to_string());
        Environment {
            host: tree.text(&format!("{KERNEL}/hostname")).unwrap_or_default(),
            kernel: tree.text(&format!("{KERNEL}/osrelease")),
            kernel_build: tree.text(&format!("{KERNEL}/version")),
            kernel_options: tree.text("/proc/cmdline").map(|c| options(&c)).unwrap_or_default(),
            system: tree
                .value("/etc/os-release", "PRETTY_NAME", '=')
                .map(|name| name.trim_matches('"').to_string()),
            machine: machine(tree),
            hypervisor: hypervisor(tree),
            processor: Processor::read(tree),
            cpus: CpuState::read_all(tree, cpus),
            nodes: Node::read_all(tree),
            memory: Memory::read(tree),
            container: Container::read_from(tree),
            clock_source: tree.text(&format!("{CLOCKS}/current_clocksource")),
            clock_sources: clocks.split_whitespace().map(str::to_string).collect(),
            discipline: Discipline::read_from(tree),
            interfaces: Interface::read_all(tree),
            sysctls: sysctls(tree),
            load_average: tree.text("/proc/loadavg").and_then(|text| {
                let numbers = text.split_whitespace().take(3).map(|number| number.parse().ok());
                numbers.collect::<Option<Vec<f64>>>()?.try_into().ok()
            }),
            versions: BTreeMap::from([tool]),
        }
    }
}

/// The words of a kernel command line that bear on latency. What follows `--` is for init.
fn options(command_line: &str) -> Vec<String> {
    const EXACT: &str = "isolcpus nohz nohz_full rcu_nocbs rcu_nocb_poll irqaffinity kthread_cpus \
        mitigations nosmt idle maxcpus nr_cpus clocksource tsc skew_tick nowatchdog nosoftlockup \
        preempt threadirqs numa_balancing transparent_hugepage hugepages hugepagesz \
        default_hugepagesz iommu intel_iommu amd_iommu";
    const BEGINNINGS: &str = "processor. intel_idle. intel_pstate amd_pstate cpufreq. cpuidle \
        haltpoll. nmi_watchdog";
    let relevant = |word: &&str| {
        let key = word.split('=').next().unwrap_or(word);
        EXACT.split(' ').any(|name| name == key)
            || BEGINNINGS.split(' ').any(|begin| key.starts_with(begin))
    };
    let words = command_line.split_whitespace().take_while(|word| *word != "--");
    words.filter(relevant).map(str::to_string).collect()
}

fn machine(tree: &Tree) -> Option<String> {
    let part = |name: &str| tree.text(&format!("/sys/class/dmi/id/{name}"));
    let parts: Vec<String> = ["sys_vendor", "product_name"].into_iter().filter_map(part).collect();
    // Arm boards without DMI name themselves in the device tree, with a final NUL.
    let board = || tree.text("/proc/device-tree/model").map(|m| m.trim_end_matches('\0').into());
    if parts.is_empty() { board() } else { Some(parts.join(" ")) }
}

fn hypervisor(tree: &Tree) -> Option<String> {
    let info = tree.text("/proc/cpuinfo").unwrap_or_default();
    let named = tree.text("/sys/hypervisor/type");
    named.or_else(|| flags(&info).any(|f| f == "hypervisor").then(|| "unknown".to_string()))
}

/// What the hypervisor calls itself in CPUID leaf 0x40000000, where the hypervisor bit is set.
#[cfg(target_arch = "x86_64")]
fn hypervisor_vendor() -> Option<String> {
    use core::arch::x86_64::__cpuid;
    const HYPERVISOR: u32 = 1 << 31;
    if __cpuid(1).ecx & HYPERVISOR == 0 {
        return None;
    }
    let leaf = __cpuid(0x4000_0000);
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].map(u32::to_le_bytes).concat();
    let text: String = bytes.iter().map(|b| *b as char).filter(|c| c.is_ascii_graphic()).collect();
    let name = match text.as_str() {
        "KVMKVMKVM" => "KVM",
        "MicrosoftHv" => "Microsoft Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "TCGTCGTCGTCG" => "QEMU TCG (emulation)",
        "" => "unknown",
        other => other,
    };
    Some(name.to_string())
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor_vendor() -> Option<String> {
    None
}

/// Bytes of a row of `/proc/meminfo`.
fn memory_of(info: &str, key: &str) -> Option<u64> {
    let kib = value_of(info, key, ':')?;
    kib.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Bytes that processes may still take without swapping, as the kernel estimates it.
pub fn available_memory(tree: &Tree) -> Option<u64> {
    memory_of(&tree.text("/proc/meminfo")?, "MemAvailable")
}

impl Memory {
    fn read(tree: &Tree) -> Memory {
        let info = tree.text("/proc/meminfo").unwrap_or_default();
        let bytes = |key: &str| memory_of(&info, key);
        let huge = tree.text("/sys/kernel/mm/transparent_hugepage/enabled");
        Memory {
            total_bytes: bytes("MemTotal"),
            available_bytes: bytes("MemAvailable"),
            huge_pages: value_of(&info, "HugePages_Total", ':').and_then(|n| n.parse().ok()),
            // The word in brackets: `always [madvise] never`.
            transparent_huge_pages: huge
                .and_then(|text| Some(text.split_once('[')?.1.split_once(']')?.0.to_string())),
            lock_limit: rlimits(tree).remove("memlock"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::fake::Fake;
    use super::*;

    #[test]
    fn an_empty_tree_gives_an_empty_environment() {
        let found = Environment::read_from(&Fake::new(&[]).tree, &[]);
        let versions = found.versions.clone();
        assert_eq!(versions.keys().collect::<Vec<_>>(), ["wiregauge"]);
        assert_eq!(found, Environment { versions, ..Environment::default() });
    }

    #[test]
    fn what_the_host_shows_is_kept() {
        let fake = Fake::new(&[
            ("proc/sys/kernel/hostname", "node07\n"),
            ("proc/sys/kernel/osrelease", "6.8.0\n"),
            ("etc/os-release", "NAME=\"D\"\nPRETTY_NAME=\"Debian 12\"\n"),
            ("sys/class/dmi/id/sys_vendor", "Acme\n"),
            ("sys/class/dmi/id/product_name", "R1\n"),
            ("proc/cpuinfo", "flags : tsc hypervisor\n"),
            ("proc/meminfo", "MemTotal:  1000 kB\nHugePages_Total:   12\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
            ("proc/self/limits", "Max locked memory         8388608   unlimited   bytes\n"),
            ("proc/loadavg", "1.54 1.33 0.69 2/98 19277\n"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
            ("sys/devices/system/node/node0/cpulist", "0-3\n"),
            ("sys/devices/system/node/node0/distance", "10 21\n"),
        ]);
        let found = Environment::read_from(&fake.tree, &[0, 1]);
        assert_eq!((found.host.as_str(), found.kernel.as_deref()), ("node07", Some("6.8.0")));
        assert_eq!(found.system.as_deref(), Some("Debian 12"));
        assert_eq!(found.machine.as_deref(), Some("Acme R1"));
        assert_eq!(found.hypervisor.as_deref(), Some("unknown"));
        let memory = &found.memory;
        assert_eq!((memory.total_bytes, memory.huge_pages), (Some(1_024_000), Some(12)));
        assert_eq!(memory.transparent_huge_pages.as_deref(), Some("always"));
        assert_eq!(memory.lock_limit.as_deref(), Some("8388608"));
        assert_eq!(found.load_average, Some([1.54, 1.33, 0.69]));
        assert_eq!(found.clock_source.as_deref(), Some("hpet"));
        assert_eq!((found.nodes[0].cpus.len(), found.nodes[0].distances[1]), (4, 21));
        assert_eq!(found.cpus.len(), 2);
    }

    #[test]
    fn only_words_that_bear_on_latency_are_kept_of_the_command_line() {
        let line = "root=/dev/sda1 isolcpus=2,3 nohz_full=2,3 password=x intel_idle.max_cstate=1 \
            quiet tsc=reliable -- mitigations=off";
        let kept = ["isolcpus=2,3", "nohz_full=2,3", "intel_idle.max_cstate=1", "tsc=reliable"];
        assert_eq!(options(line), kept);
    }

    #[test]
    fn strange_contents_are_none() {
        for load in ["1.0 x 2.0", "1.0"] {
            let fake = Fake::new(&[
                ("proc/loadavg", load),
                ("sys/kernel/mm/transparent_hugepage/enabled", "always\n"),
                ("proc/self/limits", "Max locked memory\n"),
            ]);
            let found = Environment::read_from(&fake.tree, &[]);
            assert_eq!((found.load_average, found.memory), (None, Memory::default()));
        }
    }

    #[test]
    fn this_host_is_read_and_survives_its_own_json() {
        let found = Environment::read(&[0]);
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Environment>(&text).unwrap(), found);
    }

    #[test]
    fn a_record_of_an_older_build_is_still_read() {
        let found: Environment = serde_json::from_str(r#"{"host":"a"}"#).unwrap();
        assert_eq!(found, Environment { host: "a".to_string(), ..Environment::default() });
    }
}
