//! Reading `/proc` and `/sys` below a root, so that a test can show another machine.

use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest file read. `/proc/cpuinfo` of 1024 CPUs has some 2 MiB.
const FILE_BYTES_MOST: u64 = 16 << 20;
/// The most entries of a folder that are listed: more than a kernel's interrupts or interfaces.
const ENTRIES_MOST: usize = 65_536;

/// Where `/proc` and `/sys` are.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
}

impl Default for Tree {
    /// This machine.
    fn default() -> Tree {
        Tree::at("/")
    }
}

impl Tree {
    /// The tree below `root`, which stands for `/`.
    pub fn at(root: impl Into<PathBuf>) -> Tree {
        Tree { root: root.into() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A file's text without white space at its ends. `None` where it is missing, unreadable or
    /// empty: the kernel has several ways of saying that there is nothing to say.
    pub fn text(&self, path: &str) -> Option<String> {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(self.path(path)).ok()?;
        file.take(FILE_BYTES_MOST).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_string())
    }

    /// The first bytes of a file that is no text; `None` where it has fewer.
    pub fn bytes(&self, path: &str, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        std::fs::File::open(self.path(path)).ok()?.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }

    /// A file that holds one number.
    pub fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// A file that holds 0 or another number.
    pub fn flag(&self, path: &str) -> Option<bool> {
        self.number::<u32>(path).map(|number| number != 0)
    }

    /// A file that holds a list of CPUs: `0-3,8`.
    pub fn cpus(&self, path: &str) -> Option<Vec<u32>> {
        parse_cpus(&self.text(path)?)
    }

    /// A folder's names, sorted. Empty if the folder is missing.
    pub fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(path)) else { return Vec::new() };
        let names = entries.flatten().take(ENTRIES_MOST);
        let mut names: Vec<String> =
            names.filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The numbers of a folder's entries called `prefix` and a number (`cpu0`), sorted.
    pub fn numbered(&self, path: &str, prefix: &str) -> Vec<u32> {
        let names = self.names(path);
        let mut numbers: Vec<u32> =
            names.iter().filter_map(|n| n.strip_prefix(prefix)?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The last part of what a symbolic link points to: `mlx5_core` of
    /// `driver -> ../../bus/pci/drivers/mlx5_core`.
    pub fn link_name(&self, path: &str) -> Option<String> {
        let target = std::fs::read_link(self.path(path)).ok()?;
        Path::new(&target).file_name()?.to_str().map(str::to_string)
    }

    /// The value of `key` in a file of lines `key<separator>value`; the first that matches.
    pub fn value(&self, path: &str, key: &str, separator: char) -> Option<String> {
        value_of(&self.text(path)?, key, separator)
    }
}

/// The value of `key` in lines `key<separator>value`; the first that matches.
pub fn value_of(text: &str, key: &str, separator: char) -> Option<String> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(separator));
    let value = pairs.find(|(k, _)| k.trim() == key)?.1.trim();
    (!value.is_empty()).then(|| value.to_string())
}

/// CPUs in the kernel's notation (`0-3,8`), ascending. `None` where it is not in that notation.
///
/// Limit: CPU numbers below 65 536, each expanded once, so that no text can ask for gigabytes.
pub fn parse_cpus(text: &str) -> Option<Vec<u32>> {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for part in text.trim().split(',').filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        ranges.push((first.trim().parse().ok()?, last.trim().parse().ok()?));
    }
    ranges.sort_unstable();
    let mut cpus: Vec<u32> = Vec::new();
    for (first, last) in ranges {
        let next = cpus.last().map_or(0, |last| last + 1);
        cpus.extend(next.max(first.into())..=last.into());
    }
    Some(cpus)
}

#[cfg(test)]
pub(super) mod fake {
    use super::Tree;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    static NEXT: AtomicU32 = AtomicU32::new(0);

    /// A tree of files in the temporary folder; goes when it is dropped.
    pub struct Fake {
        root: PathBuf,
        pub tree: Tree,
    }

    impl Fake {
        pub fn new(files: &[(&str, &str)]) -> Fake {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("wiregauge-tree-{}-{number}", std::process::id());
            let root = std::env::temp_dir().join(name);
            let fake = Fake { tree: Tree::at(&root), root };
            std::fs::create_dir_all(&fake.root).unwrap();
            for (path, text) in files {
                fake.file(path, text);
            }
            fake
        }

        pub fn file(&self, path: &str, text: &str) {
            self.raw(path, text.as_bytes());
        }

        pub fn raw(&self, path: &str, bytes: &[u8]) {
            let path = self.root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }

        pub fn remove(&self, folder: &str) {
            std::fs::remove_dir_all(self.root.join(folder)).unwrap();
        }

        pub fn link(&self, path: &str, target: &str) {
            let path = self.root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(target, path).unwrap();
        }

        /// CPUs `0..cores * threads`, numbered as Linux does: siblings are `cores` apart.
        pub fn with_cores(self, cores: u32, threads: u32, nodes: u32) -> Fake {
            let total = cores * threads;
            self.file("sys/devices/system/cpu/online", &format!("0-{}\n", total - 1));
            for cpu in 0..total {
                let core = cpu % cores;
                let siblings: Vec<u32> = (0..threads).map(|t| core + t * cores).collect();
                let folder = format!("sys/devices/system/cpu/cpu{cpu}");
                let siblings = wiregauge_base::units::format_cpus(&siblings);
                self.file(&format!("{folder}/topology/thread_siblings_list"), &siblings);
                self.file(&format!("{folder}/topology/core_id"), &core.to_string());
                let node = core * nodes / cores;
                self.file(&format!("{folder}/topology/physical_package_id"), &node.to_string());
                self.file(&format!("{folder}/node{node}/cpulist"), "");
            }
            self
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_base::units::format_cpus;

    #[test]
    fn lists_of_cpus_are_read_and_written_in_the_kernels_notation() {
        for (text, cpus) in
            [("0-3,8", vec![0, 1, 2, 3, 8]), ("5", vec![5]), ("0,2-3", vec![0, 2, 3]), ("", vec![])]
        {
            assert_eq!(parse_cpus(text), Some(cpus.clone()));
            assert_eq!(format_cpus(&cpus), text);
        }
    }

    #[test]
    fn what_is_no_list_of_cpus_is_none_and_never_huge() {
        for text in ["a", "1-", "-3", "0-99999999999", "1;2", "(null)"] {
            assert_eq!(parse_cpus(text), None, "{text}");
        }
        assert_eq!(parse_cpus("3-1"), Some(vec![]));
        assert_eq!(parse_cpus("2-4,0-3,8,3,8-8"), Some(vec![0, 1, 2, 3, 4, 8]));
        // Each range once more would take 65,536 times 30,000 numbers.
        let repeated = "0-65535,".repeat(30_000);
        assert_eq!(parse_cpus(&repeated).map(|cpus| cpus.len()), Some(65_536));
    }

    #[test]
    fn what_is_not_there_is_none() {
        let fake = fake::Fake::new(&[("proc/empty", "\n"), ("proc/word", "word\n")]);
        assert_eq!(fake.tree.text("/proc/none"), None);
        assert_eq!(fake.tree.text("/proc/empty"), None);
        assert_eq!(fake.tree.number::<u32>("/proc/word"), None);
        assert_eq!(fake.tree.names("/proc/none"), Vec::<String>::new());
        assert_eq!(fake.tree.link_name("/proc/word"), None);
    }
}
