//! This process's rank in a job, from the environment that its launcher set. Pure.

use super::nodelist;
use std::net::IpAddr;
use wiregauge_plan::host_spec::address;

/// Most processes of one job.
pub const MOST_RANKS: u32 = 65_536;
/// First port of a leader, and the number of ports: below the kernel's ephemeral ports (from
/// 32768).
const FIRST_PORT: u16 = 20_000;
const PORTS: u64 = 12_000;
/// The default port of a leader.
pub const PORT: u16 = 7426;

/// What started this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// A person or a Kubernetes manifest that gave rank, ranks and leader.
    Manual,
    /// srun.
    Slurm,
    /// mpirun of Open MPI.
    OpenMpi,
    /// mpirun of MPICH, or another one with the Hydra process manager.
    Hydra,
}

/// Where rank 0 is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leader {
    /// At one of these names or addresses, on this port or one of the next.
    Address(Vec<String>, u16),
    /// On this Slurm node, on this port.
    Node(String, u16),
    /// The launcher's own channel gives it.
    FromLauncher,
}

/// One process of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Its rank, from 0.
    pub rank: u32,
    /// The number of ranks.
    pub ranks: u32,
    /// Where rank 0 is.
    pub leader: Leader,
    /// What started it.
    pub launcher: Launcher,
}

/// Rank options of the command line, which override the launcher's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankOptions {
    /// Its rank, from 0.
    pub rank: Option<u32>,
    /// The number of ranks.
    pub ranks: Option<u32>,
    /// A host's name or address, with or without a port.
    pub leader: Option<(String, u16)>,
}

/// Finds this process's rank; `None`: it is not one of several.
pub fn find(
    options: &RankOptions,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Rank>, String> {
    let found = match named(options, environment)? {
        None => {
            let all = [slurm, open_mpi, hydra];
            all.iter().find_map(|one| one(environment).transpose()).transpose()?
        }
        named => named,
    };
    let Some(mut place) = found.filter(|_| options.ranks != Some(1)) else { return Ok(None) };
    if let Some((host, port)) = &options.leader {
        place.leader = Leader::Address(vec![host.clone()], *port);
    }
    let (rank, ranks) = (place.rank, place.ranks);
    ensure!(
        ranks <= MOST_RANKS && rank < ranks,
        "invalid rank {rank} of {ranks}: ranks go from 0 to one less than their number, which is \
         at most {MOST_RANKS}"
    );
    Ok((ranks > 1).then_some(place))
}

type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The number in an environment variable, if it is set.
fn number(environment: Environment<'_>, name: &str) -> Result<Option<u32>, String> {
    let parse = |text: String| {
        let wrong = |_| format!("{name} is '{}': expected a number", text.escape_default());
        text.trim().parse().map_err(wrong)
    };
    environment(name).map(parse).transpose()
}

/// The number in a variable that must be set beside another one.
fn needed(environment: Environment<'_>, name: &str, beside: &str) -> Result<u32, String> {
    number(environment, name)?.ok_or_else(|| format!("{beside} is set but {name} is not"))
}

/// A port derived from the job's name: the same on all its hosts.
fn port_of(run: &str) -> u16 {
    // FNV-1a: every process computes the same.
    let hash = run.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    FIRST_PORT + (hash % PORTS) as u16
}

fn named(options: &RankOptions, environment: Environment<'_>) -> Result<Option<Rank>, String> {
    let given = |option: Option<u32>, name| match option {
        None => number(environment, name),
        given => Ok(given),
    };
    let rank = given(options.rank, "WIREGAUGE_RANK")?;
    let ranks = given(options.ranks, "WIREGAUGE_RANKS")?;
    // Kubernetes numbers the pods of an Indexed Job.
    let rank = match (rank, ranks) {
        (None, Some(2..)) => number(environment, "JOB_COMPLETION_INDEX")?,
        (rank, _) => rank,
    };
    let (rank, ranks) = match (rank, ranks) {
        (Some(rank), Some(ranks)) => (rank, ranks),
        (None, Some(1)) => (0, 1),
        (None, None) => return Ok(None),
        _ => return Err("--rank and --ranks need each other: give both".into()),
    };
    let told = || environment("WIREGAUGE_LEADER").and_then(|text| address(&text, PORT));
    let leader = match options.leader.clone().or_else(told) {
        Some((host, port)) => Leader::Address(vec![host], port),
        None if ranks == 1 => Leader::FromLauncher,
        None => return Err("--ranks needs --leader HOST, the host of rank 0".into()),
    };
    Ok(Some(Rank { rank, ranks, leader, launcher: Launcher::Manual }))
}

/// srun sets SLURM_STEP_ID; a batch script, which is one process, does not have it.
fn slurm(environment: Environment<'_>) -> Result<Option<Rank>, String> {
    let (Some(step), Some(job)) = (environment("SLURM_STEP_ID"), environment("SLURM_JOB_ID"))
    else {
        return Ok(None);
    };
    let Some(rank) = number(environment, "SLURM_PROCID")? else { return Ok(None) };
    let ranks = match number(environment, "SLURM_STEP_NUM_TASKS")? {
        Some(ranks) => ranks,
        None => needed(environment, "SLURM_NTASKS", "SLURM_STEP_ID")?,
    };
    let list = environment("SLURM_STEP_NODELIST").or_else(|| environment("SLURM_JOB_NODELIST"));
    let list = list.ok_or("SLURM_STEP_ID is set but SLURM_STEP_NODELIST is not")?;
    let first = nodelist::first(&list)
        .ok_or_else(|| format!("'{}' is not a list of nodes", list.escape_default()))?;
    let leader = Leader::Node(first, port_of(&format!("slurm {job}.{step}")));
    Ok(Some(Rank { rank, ranks, leader, launcher: Launcher::Slurm }))
}

/// mpirun of Open MPI, which gives only its own addresses.
fn open_mpi(environment: Environment<'_>) -> Result<Option<Rank>, String> {
    let Some(rank) = number(environment, "OMPI_COMM_WORLD_RANK")? else { return Ok(None) };
    let ranks = needed(environment, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")?;
    let job = environment("OMPI_MCA_ess_base_jobid").or_else(|| environment("PMIX_NAMESPACE"));
    let run = format!("open mpi {}", job.unwrap_or_default());
    let uri = environment("OMPI_MCA_orte_hnp_uri").unwrap_or_default();
    let leader = Leader::Address(addresses(&uri), port_of(&run));
    Ok(Some(Rank { rank, ranks, leader, launcher: Launcher::OpenMpi }))
}

/// Of `816447488.0;tcp://192.0.2.2,198.19.2.9:40327;tcp6://[fd00::2]:56703`.
fn addresses(uri: &str) -> Vec<String> {
    let of = |part: &str| {
        let (_, rest) = part.split_once("://")?;
        let (hosts, _port) = rest.rsplit_once(':')?;
        let hosts = hosts.split(',').map(|host| host.trim_matches(['[', ']']));
        let known = hosts.filter_map(|host| host.parse::<IpAddr>().ok());
        Some(known.map(|host| host.to_string()).collect::<Vec<_>>())
    };
    uri.split(';').skip(1).filter_map(of).flatten().collect()
}

/// Hydra's processes share values over a channel (PMI-1).
fn hydra(environment: Environment<'_>) -> Result<Option<Rank>, String> {
    let Some(rank) = number(environment, "PMI_RANK")? else { return Ok(None) };
    let ranks = needed(environment, "PMI_SIZE", "PMI_RANK")?;
    if environment("PMI_FD").is_none() {
        return Ok(None);
    }
    Ok(Some(Rank { rank, ranks, leader: Leader::FromLauncher, launcher: Launcher::Hydra }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn placed(options: &RankOptions, words: &str) -> Result<Option<Rank>, String> {
        let all: BTreeMap<&str, &str> =
            words.split_whitespace().filter_map(|word| word.split_once('=')).collect();
        find(options, &|name| all.get(name).map(|value| value.to_string()))
    }

    fn place(words: &str) -> Rank {
        placed(&RankOptions::default(), words).unwrap().unwrap()
    }

    const SLURM: &str = "SLURM_JOB_ID=12 SLURM_STEP_ID=0 SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=4 \
                         SLURM_STEP_NODELIST=n[07-08] SLURM_NTASKS=9";
    const OPEN_MPI: &str = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=1 \
                            OMPI_MCA_ess_base_jobid=816447489 \
                            OMPI_MCA_orte_hnp_uri=8164.0;tcp://192.0.2.2,198.19.2.9:4032;\
                            tcp6://[fd00::2]:56703";

    #[test]
    fn each_launcher_says_which_of_how_many() {
        let slurm = place(SLURM);
        assert_eq!((slurm.rank, slurm.ranks), (3, 4));
        let Leader::Node(node, port) = &slurm.leader else { panic!("{slurm:?}") };
        assert!(node == "n07" && (20_000..32_000).contains(port), "{slurm:?}");
        let other = place(&SLURM.replace("STEP_ID=0", "STEP_ID=1"));
        assert_ne!(other.leader, slurm.leader, "another step has another port");

        let open = place(OPEN_MPI);
        assert_eq!((open.rank, open.ranks, open.launcher), (1, 2, Launcher::OpenMpi));
        let Leader::Address(hosts, _) = open.leader else { panic!() };
        assert_eq!(hosts, ["192.0.2.2", "198.19.2.9", "fd00::2"]);

        let hydra = place("PMI_RANK=1 PMI_SIZE=2 PMI_FD=6");
        assert_eq!((hydra.rank, hydra.leader), (1, Leader::FromLauncher));

        let pod = place("JOB_COMPLETION_INDEX=2 WIREGAUGE_RANKS=4 WIREGAUGE_LEADER=wg-0.wg");
        assert_eq!((pod.rank, pod.launcher), (2, Launcher::Manual));
        assert_eq!(pod.leader, Leader::Address(vec!["wg-0.wg".into()], PORT));

        let named = place("WIREGAUGE_RANK=1 WIREGAUGE_RANKS=2 WIREGAUGE_LEADER=10.0.0.7:80");
        assert_eq!(named.leader, Leader::Address(vec!["10.0.0.7".into()], 80));
    }

    #[test]
    fn what_is_typed_goes_before_what_a_launcher_says() {
        let leader = Some(("n1".to_string(), 80));
        let options = RankOptions { leader: leader.clone(), ..RankOptions::default() };
        let found = placed(&options, OPEN_MPI).unwrap().unwrap();
        assert_eq!((found.rank, found.leader), (1, Leader::Address(vec!["n1".into()], 80)));
        let options = RankOptions { rank: Some(0), ranks: Some(3), leader };
        assert_eq!(placed(&options, SLURM).unwrap().unwrap().launcher, Launcher::Manual);
        // One alone is as if nobody had launched it.
        let options = RankOptions { ranks: Some(1), ..RankOptions::default() };
        assert_eq!(placed(&options, SLURM), Ok(None));
    }

    #[test]
    fn one_process_is_no_job_and_a_batch_script_is_none() {
        assert_eq!(placed(&RankOptions::default(), ""), Ok(None));
        assert_eq!(placed(&RankOptions::default(), "PMI_RANK=0 PMI_SIZE=1 PMI_FD=6"), Ok(None));
        let script = "SLURM_JOB_ID=12 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_NODELIST=n1";
        assert_eq!(placed(&RankOptions::default(), script), Ok(None));
    }

    #[test]
    fn what_makes_no_sense_is_a_sentence() {
        for (words, says) in [
            ("PMI_RANK=x PMI_SIZE=2 PMI_FD=6", "PMI_RANK is 'x': expected a number"),
            ("PMI_RANK=2 PMI_SIZE=2 PMI_FD=6", "invalid rank 2 of 2"),
            ("OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE is not"),
            ("WIREGAUGE_RANK=1", "need each other"),
            ("WIREGAUGE_RANK=1 WIREGAUGE_RANKS=2", "--ranks needs --leader HOST"),
            ("WIREGAUGE_RANK=1 WIREGAUGE_RANKS=99999999 WIREGAUGE_LEADER=a", "invalid rank"),
            ("JOB_COMPLETION_INDEX=1 WIREGAUGE_RANKS=2", "--ranks needs --leader HOST"),
        ] {
            let wrong = placed(&RankOptions::default(), words).unwrap_err();
            assert!(wrong.contains(says), "{words}: {wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_place_is_one_of_its_job_whatever_the_environment(
            values in prop::collection::btree_map(
                prop::sample::select(vec![
                    "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
                    "SLURM_STEP_NODELIST", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                    "OMPI_MCA_orte_hnp_uri", "PMI_RANK", "PMI_SIZE", "PMI_FD",
                    "JOB_COMPLETION_INDEX", "WIREGAUGE_RANK", "WIREGAUGE_RANKS",
                    "WIREGAUGE_LEADER",
                ]),
                prop_oneof!["[0-9]{1,6}", "[a-z0-9\\[\\],;:/.-]{0,20}"],
                0..12,
            ),
        ) {
            let found = find(&RankOptions::default(), &|name| values.get(name).cloned());
            if let Ok(Some(place)) = found {
                prop_assert!(place.rank < place.ranks && place.ranks > 1);
            }
        }
    }
}
