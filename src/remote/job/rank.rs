//! Which of how many processes a launcher has made of this one, as its environment says. Pure.

use super::nodelist;
use crate::plan::host_spec::address;
use std::net::IpAddr;

/// Most processes of one job.
pub const MOST_RANKS: u32 = 65_536;
/// The first port at which a leader is looked for, and how many there are: below those that the
/// kernel gives away by itself (32768 on).
const FIRST_PORT: u16 = 20_000;
const PORTS: u64 = 12_000;
/// The port where a leader is named and no port.
pub const PORT: u16 = 7426;

/// Who has started this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// Whoever has said rank, ranks and leader: a person, or a manifest of Kubernetes.
    Named,
    /// srun.
    Slurm,
    /// mpirun of Open MPI.
    OpenMpi,
    /// mpirun of MPICH, or another with its process manager Hydra.
    Hydra,
}

/// Where rank 0 is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leader {
    /// At one of these names or addresses, at this port or one of the next.
    At(Vec<String>, u16),
    /// At the node of this name, whose address Slurm knows; and this port.
    Node(String, u16),
    /// The launcher's own channel says it.
    Told,
}

/// One process of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Which, from 0.
    pub rank: u32,
    /// Of how many.
    pub ranks: u32,
    /// Which of those on this host.
    pub local_rank: u32,
    /// Where rank 0 is.
    pub leader: Leader,
    /// What tells this job from others.
    pub run: String,
    /// Who has started it.
    pub launcher: Launcher,
}

/// What was typed, which goes before what a launcher says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Typed {
    /// Which, from 0.
    pub rank: Option<u32>,
    /// Of how many.
    pub ranks: Option<u32>,
    /// A host's name or address, with or without a port.
    pub leader: Option<(String, u16)>,
}

/// The place of this process; `None`: nobody has started it as one of several.
pub fn find(
    typed: &Typed,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Rank>, String> {
    let found = named(typed, environment)?.map_or_else(
        || {
            let all = [slurm, open_mpi, hydra];
            all.iter().find_map(|one| one(environment).transpose()).transpose()
        },
        |named| Ok(Some(named)),
    )?;
    let Some(mut place) = found.filter(|_| typed.ranks != Some(1)) else { return Ok(None) };
    if let Some((host, port)) = &typed.leader {
        place.leader = Leader::At(vec![host.clone()], *port);
    }
    if place.ranks > MOST_RANKS || place.rank >= place.ranks {
        return Err(format!(
            "rank {} of {} is not allowed; ranks are 0 to one less than their number, which is at \
             most {MOST_RANKS}",
            place.rank, place.ranks
        ));
    }
    Ok((place.ranks > 1).then_some(place))
}

type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A number, where there is one of that name.
fn number(environment: Environment<'_>, name: &str) -> Result<Option<u32>, String> {
    match environment(name) {
        None => Ok(None),
        Some(text) => match text.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(format!("{name} is '{}', and no number", text.escape_default())),
        },
    }
}

/// One that must be there where another one is.
fn needed(environment: Environment<'_>, name: &str, beside: &str) -> Result<u32, String> {
    number(environment, name)?.ok_or_else(|| format!("{beside} is set, and {name} is not"))
}

/// A port for a job that agrees on none: the same on all its hosts.
fn port_of(run: &str) -> u16 {
    // FNV-1a: every process computes the same.
    let hash = run.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    FIRST_PORT + (hash % PORTS) as u16
}

fn named(typed: &Typed, environment: Environment<'_>) -> Result<Option<Rank>, String> {
    let rank = typed.rank.map_or_else(|| number(environment, "WIREGAUGE_RANK"), |r| Ok(Some(r)))?;
    let ranks =
        typed.ranks.map_or_else(|| number(environment, "WIREGAUGE_RANKS"), |r| Ok(Some(r)))?;
    // Of an Indexed Job of Kubernetes the controller says which pod this is.
    let rank = match (rank, ranks) {
        (None, Some(2..)) => number(environment, "JOB_COMPLETION_INDEX")?,
        (rank, _) => rank,
    };
    let (rank, ranks) = match (rank, ranks) {
        (Some(rank), Some(ranks)) => (rank, ranks),
        // One process alone needs no number.
        (None, Some(1)) => (0, 1),
        (None, None) => return Ok(None),
        _ => return Err("--rank and --ranks go together: which process this is of how many".into()),
    };
    let told = || environment("WIREGAUGE_LEADER").and_then(|text| address(&text, PORT));
    let leader = match typed.leader.clone().or_else(told) {
        Some((host, port)) => Leader::At(vec![host], port),
        None if ranks == 1 => Leader::Told,
        None => return Err("--ranks needs --leader HOST: where rank 0 runs".into()),
    };
    let run = environment("WIREGAUGE_RUN").unwrap_or_default();
    Ok(Some(Rank { rank, ranks, local_rank: 0, leader, run, launcher: Launcher::Named }))
}

/// srun sets SLURM_STEP_ID; a batch script, which is one process, has none.
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
    let list = list.ok_or("SLURM_STEP_ID is set, and SLURM_STEP_NODELIST is not")?;
    let first = nodelist::first(&list)
        .ok_or_else(|| format!("'{}' is no list of nodes", list.escape_default()))?;
    let run = format!("slurm {job}.{step}");
    let leader = Leader::Node(first, port_of(&run));
    let local_rank = number(environment, "SLURM_LOCALID")?.unwrap_or(0);
    Ok(Some(Rank { rank, ranks, local_rank, leader, run, launcher: Launcher::Slurm }))
}

/// mpirun of Open MPI, whose own addresses are the only ones that it tells.
fn open_mpi(environment: Environment<'_>) -> Result<Option<Rank>, String> {
    let Some(rank) = number(environment, "OMPI_COMM_WORLD_RANK")? else { return Ok(None) };
    let ranks = needed(environment, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")?;
    let local_rank = number(environment, "OMPI_COMM_WORLD_LOCAL_RANK")?.unwrap_or(0);
    let job = environment("OMPI_MCA_ess_base_jobid").or_else(|| environment("PMIX_NAMESPACE"));
    let run = format!("open mpi {}", job.unwrap_or_default());
    let uri = environment("OMPI_MCA_orte_hnp_uri").unwrap_or_default();
    let leader = Leader::At(addresses(&uri), port_of(&run));
    Ok(Some(Rank { rank, ranks, local_rank, leader, run, launcher: Launcher::OpenMpi }))
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

/// Hydra's processes have a channel on which they put and get words (PMI-1).
fn hydra(environment: Environment<'_>) -> Result<Option<Rank>, String> {
    let Some(rank) = number(environment, "PMI_RANK")? else { return Ok(None) };
    let ranks = needed(environment, "PMI_SIZE", "PMI_RANK")?;
    let local_rank = number(environment, "MPI_LOCALRANKID")?.unwrap_or(0);
    if environment("PMI_FD").is_none() {
        return Ok(None);
    }
    let (leader, launcher) = (Leader::Told, Launcher::Hydra);
    Ok(Some(Rank { rank, ranks, local_rank, leader, run: "hydra".into(), launcher }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn placed(typed: &Typed, words: &str) -> Result<Option<Rank>, String> {
        let all: BTreeMap<&str, &str> =
            words.split_whitespace().filter_map(|word| word.split_once('=')).collect();
        find(typed, &|name| all.get(name).map(|value| value.to_string()))
    }

    fn place(words: &str) -> Rank {
        placed(&Typed::default(), words).unwrap().unwrap()
    }

    const SLURM: &str = "SLURM_JOB_ID=12 SLURM_STEP_ID=0 SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=4 \
                         SLURM_LOCALID=1 SLURM_STEP_NODELIST=n[07-08] SLURM_NTASKS=9";
    const OPEN_MPI: &str = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=1 \
                            OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_MCA_ess_base_jobid=816447489 \
                            OMPI_MCA_orte_hnp_uri=8164.0;tcp://192.0.2.2,198.19.2.9:4032;\
                            tcp6://[fd00::2]:56703";

    #[test]
    fn each_launcher_says_which_of_how_many() {
        let slurm = place(SLURM);
        assert_eq!((slurm.rank, slurm.ranks, slurm.local_rank), (3, 4, 1));
        let Leader::Node(node, port) = &slurm.leader else { panic!("{slurm:?}") };
        assert!(node == "n07" && (20_000..32_000).contains(port), "{slurm:?}");
        let other = place(&SLURM.replace("STEP_ID=0", "STEP_ID=1"));
        assert_ne!(other.leader, slurm.leader, "another step has another port");

        let open = place(OPEN_MPI);
        assert_eq!((open.rank, open.ranks, open.launcher), (1, 2, Launcher::OpenMpi));
        let Leader::At(hosts, _) = open.leader else { panic!() };
        assert_eq!(hosts, ["192.0.2.2", "198.19.2.9", "fd00::2"]);

        let hydra = place("PMI_RANK=1 PMI_SIZE=2 PMI_FD=6 MPI_LOCALRANKID=1");
        assert_eq!((hydra.rank, hydra.leader, hydra.local_rank), (1, Leader::Told, 1));

        let pod = place("JOB_COMPLETION_INDEX=2 WIREGAUGE_RANKS=4 WIREGAUGE_LEADER=wg-0.wg");
        assert_eq!((pod.rank, pod.launcher), (2, Launcher::Named));
        assert_eq!(pod.leader, Leader::At(vec!["wg-0.wg".into()], PORT));

        let named = place("WIREGAUGE_RANK=1 WIREGAUGE_RANKS=2 WIREGAUGE_LEADER=10.0.0.7:80");
        assert_eq!(named.leader, Leader::At(vec!["10.0.0.7".into()], 80));
    }

    #[test]
    fn what_is_typed_goes_before_what_a_launcher_says() {
        let leader = Some(("n1".to_string(), 80));
        let typed = Typed { leader: leader.clone(), ..Typed::default() };
        let found = placed(&typed, OPEN_MPI).unwrap().unwrap();
        assert_eq!((found.rank, found.leader), (1, Leader::At(vec!["n1".into()], 80)));
        let typed = Typed { rank: Some(0), ranks: Some(3), leader };
        assert_eq!(placed(&typed, SLURM).unwrap().unwrap().launcher, Launcher::Named);
        // One alone is as if nobody had launched it.
        let typed = Typed { ranks: Some(1), ..Typed::default() };
        assert_eq!(placed(&typed, SLURM), Ok(None));
    }

    #[test]
    fn one_process_is_no_job_and_a_batch_script_is_none() {
        assert_eq!(placed(&Typed::default(), ""), Ok(None));
        assert_eq!(placed(&Typed::default(), "PMI_RANK=0 PMI_SIZE=1 PMI_FD=6"), Ok(None));
        let script = "SLURM_JOB_ID=12 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_NODELIST=n1";
        assert_eq!(placed(&Typed::default(), script), Ok(None));
    }

    #[test]
    fn what_makes_no_sense_is_a_sentence() {
        for (words, says) in [
            ("PMI_RANK=x PMI_SIZE=2 PMI_FD=6", "PMI_RANK is 'x', and no number"),
            ("PMI_RANK=2 PMI_SIZE=2 PMI_FD=6", "rank 2 of 2 is not allowed"),
            ("OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE is not"),
            ("WIREGAUGE_RANK=1", "go together"),
            ("WIREGAUGE_RANK=1 WIREGAUGE_RANKS=2", "--ranks needs --leader HOST"),
            ("WIREGAUGE_RANK=1 WIREGAUGE_RANKS=99999999 WIREGAUGE_LEADER=a", "is not allowed"),
            ("JOB_COMPLETION_INDEX=1 WIREGAUGE_RANKS=2", "--ranks needs --leader HOST"),
        ] {
            let wrong = placed(&Typed::default(), words).unwrap_err();
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
            let found = find(&Typed::default(), &|name| values.get(name).cloned());
            if let Ok(Some(place)) = found {
                prop_assert!(place.rank < place.ranks && place.ranks > 1);
            }
        }
    }
}
