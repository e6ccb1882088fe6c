//! What the checks look at: read once, by the readers that a record's environment has.

use super::counters::{Counter, grown};
use crate::ethtool::{Ethtool, qdiscs};
use crate::processor::interrupts_of;
use crate::{Environment, Interface, Tree};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wiregauge_base::warning::RecordedWarning;

/// The most adapters and RDMA ports that are examined.
const MOST: usize = 64;

/// What is to be measured, as far as it decides which settings matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// Whether messages pass the kernel's network stack.
    pub sockets: bool,
    /// Whether an RDMA device carries them.
    pub rdma: bool,
    /// Whether an end sleeps until a message comes.
    pub blocks: bool,
    /// Whether latency is asked for.
    pub latency: bool,
    /// Whether a rate or a bandwidth is.
    pub rate: bool,
    /// The network interface; `None`: all of adapters whose links are up.
    pub interface: Option<String>,
    /// The RDMA device; `None`: all.
    pub device: Option<String>,
}

impl Default for Use {
    /// Everything matters.
    fn default() -> Use {
        Use {
            sockets: true,
            rdma: true,
            blocks: true,
            latency: true,
            rate: true,
            interface: None,
            device: None,
        }
    }
}

/// A network adapter.
#[derive(Clone, Debug, Default)]
pub struct Adapter {
    /// Its interface.
    pub interface: Interface,
    /// What its driver says.
    pub ethtool: Ethtool,
    /// Its queueing disciplines.
    pub qdiscs: Vec<String>,
    /// The folder of its device.
    pub device: String,
    /// Its interrupts.
    pub interrupts: Vec<Interrupt>,
    /// Whether an RDMA device sends through it, by Ethernet.
    pub is_roce: bool,
}

/// An interrupt of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupt {
    pub number: u32,
    /// Where it goes to.
    pub cpus: Vec<u32>,
}

/// A port of an RDMA device.
#[derive(Clone, Debug, Default)]
pub struct Port {
    pub device: String,
    pub number: u32,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: String,
    /// As `100 Gb/sec (4X EDR)`.
    pub rate: Option<String>,
    /// Whether its link is up.
    pub is_active: bool,
    /// Version of the firmware.
    pub firmware: Option<String>,
    /// The board, by the vendor's number.
    pub board: Option<String>,
    /// NUMA node of the device.
    pub node: Option<u32>,
}

impl Port {
    /// As `mlx5_0/1`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.device, self.number)
    }
}

/// All that the checks look at.
pub struct Examined {
    pub tree: Tree,
    pub environment: Environment,
    /// The CPUs that measure.
    pub cpus: Vec<u32>,
    pub wanted: Use,
    pub adapters: Vec<Adapter>,
    pub ports: Vec<Port>,
    /// Names of all programs that run.
    pub running: Vec<String>,
    /// Counters of errors of RDMA ports that grew while nothing was done.
    pub grown: Vec<Counter>,
    /// Queueing disciplines of the loopback, over which two ends on this host talk.
    pub loopback_qdiscs: Vec<String>,
    /// The loopback interface is up.
    pub is_loopback_up: bool,
}

impl Examined {
    /// Examines this host; counters of RDMA ports are watched for so long.
    pub fn host(cpus: &[u32], wanted: &Use, watched: Duration) -> Examined {
        let environment = Environment::read(cpus);
        let named = qdiscs();
        let qdiscs = |number: u32| {
            let own = named.iter().filter(|one| one.interface == number);
            own.map(|one| one.kind.clone()).collect()
        };
        let tree = Tree::default();
        let before = super::counters::read(&tree, wanted.device.as_deref());
        if !before.is_empty() {
            std::thread::sleep(watched);
        }
        let after = super::counters::read(&tree, wanted.device.as_deref());
        let examined = Examined::of(tree, environment, wanted, Ethtool::read, qdiscs);
        let is_loopback_up = crate::check_loopback().is_ok();
        Examined { cpus: cpus.to_vec(), grown: grown(&before, &after), is_loopback_up, ..examined }
    }

    /// The same of a tree of files and of what drivers say.
    pub(crate) fn of(
        tree: Tree,
        environment: Environment,
        wanted: &Use,
        ethtool: impl Fn(&str) -> Ethtool,
        qdiscs: impl Fn(u32) -> Vec<String>,
    ) -> Examined {
        let ports = ports(&tree, wanted);
        let roce: Vec<String> = ports
            .iter()
            .filter(|port| port.link_layer == "Ethernet")
            .flat_map(|port| {
                tree.names(&format!("/sys/class/infiniband/{}/device/net", port.device))
            })
            .collect();
        let is_meant = |one: &&Interface| match &wanted.interface {
            Some(name) => one.name == *name,
            None => one.driver.is_some() && one.state.as_deref() == Some("up"),
        };
        let adapter = |interface: &Interface| {
            let folder = format!("/sys/class/net/{}", interface.name);
            let device = match interface.driver.as_deref() {
                // The device of virtio is a child of the one with slot and interrupts.
                Some(driver) if driver.starts_with("virtio") => format!("{folder}/device/.."),
                _ => format!("{folder}/device"),
            };
            Adapter {
                interface: interface.clone(),
                ethtool: ethtool(&interface.name),
                qdiscs: tree.number(&format!("{folder}/ifindex")).map(&qdiscs).unwrap_or_default(),
                interrupts: interrupts_of(&tree, &device)
                    .into_iter()
                    .map(|(number, cpus)| Interrupt { number, cpus })
                    .collect(),
                is_roce: roce.contains(&interface.name),
                device,
            }
        };
        let meant = environment.interfaces.iter().filter(is_meant).take(MOST);
        let adapters = meant.map(adapter).collect();
        let comm = |process| tree.text(&format!("/proc/{process}/comm"));
        let running = tree.numbered("/proc", "").into_iter().filter_map(comm).collect();
        let cpus = environment.cpus.iter().map(|state| state.cpu).collect();
        let loopback = tree.number("/sys/class/net/lo/ifindex").map(&qdiscs);
        Examined {
            cpus,
            wanted: wanted.clone(),
            adapters,
            ports,
            running,
            grown: Vec::new(),
            loopback_qdiscs: loopback.unwrap_or_default(),
            is_loopback_up: true,
            tree,
            environment,
        }
    }

    /// What a record measured here would be warned of, by the kind of the warning.
    pub fn warned(&self, kind: &str) -> Option<RecordedWarning> {
        let all = self.environment.warnings(&self.cpus);
        all.iter().map(RecordedWarning::from).find(|warning| warning.kind == kind)
    }

    /// Whether a program of this name runs.
    pub fn runs(&self, program: &str) -> bool {
        self.running.iter().any(|name| name == program)
    }

    /// Adapters whose settings of the network stack matter.
    pub fn socket_adapters(&self) -> impl Iterator<Item = &Adapter> {
        self.adapters.iter().filter(|_| self.wanted.sockets)
    }

    /// A CPU that does not measure, for what must be somewhere else.
    pub fn other_cpus(&self) -> Vec<u32> {
        let online = self.tree.cpus("/sys/devices/system/cpu/online").unwrap_or_default();
        online.into_iter().filter(|cpu| !self.cpus.contains(cpu)).collect()
    }

    /// The value of a word of the kernel's command line.
    pub fn kernel_option(&self, key: &str) -> Option<&str> {
        let value = |word: &'_ String| word.split_once('=').is_some_and(|(name, _)| name == key);
        let word = self.environment.kernel_options.iter().find(|word| value(word))?;
        word.split_once('=').map(|(_, value)| value)
    }
}

fn ports(tree: &Tree, wanted: &Use) -> Vec<Port> {
    const FOLDER: &str = "/sys/class/infiniband";
    let mut ports = Vec::new();
    let devices = tree.names(FOLDER).into_iter().take(MOST);
    let is_meant = |name: &String| wanted.device.as_ref().is_none_or(|own| own == name);
    for device in devices.filter(is_meant).filter(|_| wanted.rdma) {
        let folder = format!("{FOLDER}/{device}");
        let text = |file: &str| tree.text(&format!("{folder}/{file}"));
        for number in tree.numbered(&format!("{folder}/ports"), "").into_iter().take(MOST) {
            let of_port = |file: &str| text(&format!("ports/{number}/{file}"));
            ports.push(Port {
                device: device.clone(),
                number,
                link_layer: of_port("link_layer").unwrap_or_else(|| "InfiniBand".into()),
                rate: of_port("rate"),
                is_active: of_port("state").is_some_and(|state| state.starts_with("4:")),
                firmware: text("fw_ver"),
                board: text("board_id"),
                node: tree.number(&format!("{folder}/device/numa_node")),
            });
        }
    }
    ports
}
