//! The CPUs of the threads of a case.

use std::collections::BTreeSet;
use wiregauge_host::CpuPair;

/// The CPU pair of a thread. Threads share the pairs in turn if there are fewer.
pub fn pair_of(cpus: &[CpuPair], thread: usize) -> Option<CpuPair> {
    cpus.iter().cycle().nth(thread).copied()
}

/// The different CPUs of each end.
pub fn sides(pairs: &[CpuPair]) -> [BTreeSet<u32>; 2] {
    [pairs.iter().map(|pair| pair.client).collect(), pairs.iter().map(|pair| pair.server).collect()]
}

/// The CPUs of the threads of a case, and how many different ones each end has at least.
pub fn of_case(pairs: &[CpuPair], threads: u32) -> (Vec<CpuPair>, usize) {
    let of: Vec<CpuPair> = (0..threads as usize).filter_map(|n| pair_of(pairs, n)).collect();
    let [clients, servers] = sides(&of);
    (of, clients.len().min(servers.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(all: &[(u32, u32)]) -> Vec<CpuPair> {
        all.iter().map(|&(client, server)| CpuPair { client, server }).collect()
    }

    #[test]
    fn threads_take_turns_where_there_are_fewer_cpus() {
        let four = pairs(&[(0, 1), (2, 3), (4, 5), (6, 7)]);
        assert_eq!(of_case(&four, 2), (pairs(&[(0, 1), (2, 3)]), 2));
        assert_eq!(of_case(&four[..2], 3), (pairs(&[(0, 1), (2, 3), (0, 1)]), 2));
        assert_eq!(of_case(&[], 3), (vec![], 0));
    }
}
