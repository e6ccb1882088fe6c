//! `--memory`: which memory payloads lie in.

use crate::per_end::PerEnd;
use crate::{Role, Settings};
use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// Which memory payloads lie in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryKind {
    /// The host's main memory.
    #[default]
    Host,
    /// The RDMA adapter's own (`ibv_alloc_dm`).
    Device,
    /// An NVIDIA GPU's, by its CUDA device number.
    Cuda(u8),
    /// An AMD GPU's, by its HIP device number.
    Rocm(u8),
}

impl FromStr for MemoryKind {
    type Err = String;

    fn from_str(text: &str) -> Result<MemoryKind, String> {
        let (kind, number) = text.split_once(':').unwrap_or((text, "0"));
        match (kind, number.parse()) {
            ("host", _) if text == kind => Ok(MemoryKind::Host),
            ("device", _) if text == kind => Ok(MemoryKind::Device),
            ("cuda", Ok(number)) => Ok(MemoryKind::Cuda(number)),
            ("rocm", Ok(number)) => Ok(MemoryKind::Rocm(number)),
            _ => Err(format!(
                "invalid memory '{text}': use host, device, cuda, rocm, a GPU's number such as \
                 cuda:1, or the client's and the server's such as cuda:0,host"
            )),
        }
    }
}

impl Display for MemoryKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            MemoryKind::Host => f.write_str("host"),
            MemoryKind::Device => f.write_str("device"),
            MemoryKind::Cuda(number) => write!(f, "cuda:{number}"),
            MemoryKind::Rocm(number) => write!(f, "rocm:{number}"),
        }
    }
}

impl MemoryKind {
    /// The memory of one end.
    pub fn of(settings: &Settings, role: Role) -> MemoryKind {
        let asked = settings.get::<PerEnd<MemoryKind>>("memory");
        asked.map_or(MemoryKind::Host, |both| *both.of(role))
    }

    /// The option by which the CPU neither reads nor writes payloads, as it is typed: memory that
    /// is not main memory, or one buffer for all messages.
    pub fn unread(settings: &Settings) -> Option<String> {
        let foreign = MemoryKind::foreign(settings).map(|kind| format!("--memory {kind}"));
        foreign.or_else(|| settings.flag("same-buffer").then(|| "--same-buffer".into()))
    }

    /// The memory of the client, else of the server, that is not main memory.
    pub fn foreign(settings: &Settings) -> Option<MemoryKind> {
        let both = [Role::Client, Role::Server].map(|role| MemoryKind::of(settings, role));
        both.into_iter().find(|kind| *kind != MemoryKind::Host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_a_memory_and_a_gpu_has_a_number() {
        let both: PerEnd<MemoryKind> = "cuda:1,host".parse().unwrap();
        assert_eq!((both.client, both.server), (MemoryKind::Cuda(1), MemoryKind::Host));
        for (text, kind) in [("rocm", MemoryKind::Rocm(0)), ("device", MemoryKind::Device)] {
            assert_eq!(text.parse(), Ok(kind));
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        for text in ["", "gpu", "host:1", "device:0", "cuda:", "cuda:-1", "cuda:300", "cuda:1:2"] {
            let refused = text.parse::<MemoryKind>().unwrap_err();
            assert!(refused.contains("use host, device, cuda, rocm"), "{refused}");
        }
    }
}
