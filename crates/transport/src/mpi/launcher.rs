//! The command that starts the ranks, and the library that belongs to it.

use crate::Settings;
use fabric_sys::mpi::{Family, Mpi, Search};
use std::path::{Path, PathBuf};

/// The launcher where none is named.
const MPIRUN: &str = "mpirun";

/// How far up the process of a launcher is looked for: an agent, its rank, and what a launcher puts
/// between.
const MOST_ANCESTORS: usize = 6;

/// The words of a command.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    shlex::split(text).filter(|words| !words.is_empty()).ok_or_else(|| {
        format!("invalid command '{text}': use words such as 'mpirun.mpich -bind-to none'")
    })
}

/// The words of the command by which a round's ranks are started.
pub fn command(settings: &Settings) -> Vec<String> {
    let given = settings.text("mpirun").and_then(|text| words(text).ok());
    given.unwrap_or_else(|| vec![MPIRUN.into()])
}

/// Where a program is that is found as a shell finds it.
fn program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Whose launcher has started this process, by its environment.
fn family(is_set: &dyn Fn(&str) -> bool) -> Option<Family> {
    let any = |names: &[&str]| names.iter().any(|name| is_set(name));
    if any(&["OMPI_COMM_WORLD_RANK", "PRTE_LAUNCHED", "OMPI_MCA_ess"]) {
        return Some(Family::OpenMpi);
    }
    any(&["PMI_FD", "HYDI_CONTROL_FD"]).then_some(Family::Mpich)
}

/// The folders of libraries beside a launcher: Debian's, and one of a folder of its own.
fn folders(launcher: &Path) -> Vec<PathBuf> {
    // A virtual environment's launcher is a link or a script in its own folder.
    let canonical = launcher.canonicalize().ok();
    let beside = |file: &Path| file.parent().and_then(Path::parent).map(Path::to_path_buf);
    let prefixes = [beside(launcher), canonical.as_deref().and_then(beside)];
    let is_own = |prefix: &PathBuf| !["/usr", "/"].iter().any(|system| prefix == Path::new(system));
    let own = prefixes.into_iter().flatten().filter(is_own);
    own.flat_map(|prefix| ["lib", "lib64"].map(|name| prefix.join(name))).collect()
}

/// The programs of the processes above this one, nearest first.
fn ancestors() -> Vec<PathBuf> {
    let parent = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Behind the name, which may have anything in it: state and parent.
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok().filter(|pid| *pid > 1)
    };
    let all = std::iter::successors(Some(std::process::id()), parent).skip(1);
    all.take(MOST_ANCESTORS)
        .filter_map(|pid| std::fs::read_link(format!("/proc/{pid}/exe")).ok())
        .collect()
}

/// Where the library of this process is looked for: that of the launcher which has started it, or
/// which would.
pub fn search(settings: &Settings) -> Search {
    let launcher = command(settings).first().and_then(|name| program(name));
    let own = family(&|name| std::env::var_os(name).is_some());
    let above = if own.is_some() { ancestors() } else { Vec::new() };
    Search {
        file: settings.text("mpi-library").map(PathBuf::from),
        folders: above.iter().chain(&launcher).flat_map(|file| folders(file)).collect(),
        family: own.or_else(|| launcher.as_deref().and_then(family_of_launcher)),
    }
}

/// Whose a launcher is, by the name of its program.
fn family_of_launcher(launcher: &Path) -> Option<Family> {
    let file = launcher.canonicalize().ok()?;
    let name = file.file_name()?.to_str()?;
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["hydra", "mpich"]) {
        return Some(Family::Mpich);
    }
    has(&["orterun", "openmpi", "prterun", "ompi"]).then_some(Family::OpenMpi)
}

/// Which MPI there is, and what starts its ranks.
pub fn found() -> Option<String> {
    let settings = Settings::default();
    let mpi = Mpi::open(&search(&settings)).ok()?;
    let launcher = command(&settings).first().and_then(|name| program(name))?;
    Some(format!("{mpi}, its ranks started by {}", launcher.display()))
}

/// Whether there is a library and what starts the ranks.
pub fn available(settings: &Settings) -> Result<(), String> {
    Mpi::open(&search(settings)).map_err(|error| error.to_string())?;
    let is_rank = family(&|name| std::env::var_os(name).is_some()).is_some();
    let words = command(settings);
    let name = words.first().map_or(MPIRUN, |name| name.as_str());
    ensure!(
        is_rank || program(name).is_some(),
        "{name} is not installed; Debian has mpirun in openmpi-bin and mpich (or name another \
         launcher with --mpirun)"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launcher_of_a_process_tells_whose_library_it_needs() {
        let of = |set: &'static str| family(&move |name| name == set);
        assert_eq!(of("OMPI_COMM_WORLD_RANK"), Some(Family::OpenMpi));
        assert_eq!(of("PMI_FD"), Some(Family::Mpich));
        assert_eq!(of("PATH"), None);
    }

    #[test]
    fn libraries_are_looked_for_beside_a_launcher_of_its_own_folder_alone() {
        let own = folders(Path::new("/opt/mpi/bin/mpirun"));
        assert_eq!(own, [PathBuf::from("/opt/mpi/lib"), PathBuf::from("/opt/mpi/lib64")]);
        assert!(folders(Path::new("/usr/bin/no-such-mpirun")).is_empty());
    }

    #[test]
    fn a_command_is_words() {
        let words = |text| super::words(text).map(|all| all.len());
        assert_eq!(words("mpirun.mpich -bind-to none"), Ok(3));
        assert!(words("").unwrap_err().contains("invalid command"));
        assert!(words("mpirun 'x").is_err());
    }
}
