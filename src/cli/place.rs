//! Where the ends are to be: hosts by name, in a list or in a file.

use super::values;
use crate::host;
use crate::options::{Given, UsageError, refuse, refuse_found};
use crate::plan::pairs::{AtOnce, HERE, MOST_HOSTS};
use crate::plan::{HostSpec, Pairs, Place};
use crate::remote::job;
use crate::remote::job::rank::{self, Rank, RankOptions};
use std::path::Path;

/// Longest file of hosts that is read: room for `MOST_HOSTS` names.
const LONGEST_FILE: u64 = 4 << 20;

/// The place that was asked for, and which process of a job this is.
pub fn place(given: &Given) -> Result<(Place, Option<Rank>), UsageError> {
    let (rank, mut which) = (rank_of(given)?, pairs(given));
    match &rank {
        None if which != Pairs::First && !names_hosts(given) => {
            let option = if given.flag("all-pairs") { "--all-pairs" } else { "--bisection" };
            return refuse(format!("{option} needs several hosts: use --hosts A,B,C"));
        }
        // Nobody has to name hosts in a job, so nobody has to say that all are meant.
        Some(own) if own.ranks != 2 && which == Pairs::First => {
            which = Pairs::All { at_once: AtOnce::default() };
        }
        _ => {}
    }
    Ok((Place { nodes: nodes(given, rank.as_ref())?, which }, rank))
}

/// Whether another host is named.
fn names_hosts(given: &Given) -> bool {
    ["to", "hosts", "hosts-file"].iter().any(|name| given.is_given(name))
}

fn pairs(given: &Given) -> Pairs {
    match (given.flag("all-pairs"), given.count32("bisection")) {
        (true, _) => Pairs::All { at_once: given.choice("at-once").unwrap_or_default() },
        (false, Some(matchings)) => Pairs::Bisection { matchings },
        (false, None) => Pairs::First,
    }
}

/// Which process of a job this is, where it is one; hosts are not named then.
fn rank_of(given: &Given) -> Result<Option<Rank>, UsageError> {
    let job = RankOptions {
        rank: given.count32("rank"),
        ranks: given.count32("ranks"),
        leader: given.read("leader", values::leader),
    };
    let found = rank::find(&job, &|name| std::env::var(name).ok()).map_err(UsageError)?;
    refuse_found(found.as_ref().filter(|_| names_hosts(given)), |Rank { rank, ranks, .. }| {
        format!(
            "hosts are named, but this is rank {rank} of {ranks} of a job: name no hosts, or use \
             --ranks 1"
        )
    })?;
    Ok(found)
}

/// The other hosts of a command that measures no pairs, and which process of a job this is.
pub fn others(given: &Given, command: &str) -> Result<(Vec<HostSpec>, Option<Rank>), UsageError> {
    let rank = rank_of(given)?;
    let nodes = nodes(given, rank.as_ref())?;
    ensure!(!nodes.is_empty(), "{command} needs remote hosts: use --to HOST or --hosts A,B");
    Ok((nodes.into_iter().flatten().collect(), rank))
}

/// The hosts that are named, `None` being this one; an empty list where none is. Those of a job are
/// its ranks; where they are is known when they have come.
fn nodes(given: &Given, rank: Option<&Rank>) -> Result<Vec<Option<HostSpec>>, UsageError> {
    if let Some(own) = rank {
        let spec = |rank| HostSpec { host: job::name(rank), ..HostSpec::default() };
        return Ok((0..own.ranks).map(|rank| (rank > 0).then(|| spec(rank))).collect());
    }
    let of_ssh = ["remote-binary", "push", "ssh"].into_iter().find(|name| given.is_given(name));
    refuse_found(of_ssh.filter(|_| !names_hosts(given)), |option| {
        format!("--{option} needs a remote host: use --to HOST or --hosts A,B")
    })?;
    let to = given.read("to", values::host);
    let hosts = match given.text("hosts-file") {
        Some(path) => of_file(Path::new(path))?,
        None => given.read_list("hosts", values::host),
    };
    let has_agents = to.iter().chain(&hosts).all(|host| host.agent.is_some());
    refuse_found(of_ssh.filter(|_| has_agents), |option| {
        format!("--{option} is for hosts that ssh reaches, and an agent daemon runs there already")
    })?;
    let ssh = given.read("ssh", values::ssh).unwrap_or_else(|| vec!["ssh".into()]);
    let binary: Option<String> = given.get("remote-binary");
    let spec = |host: HostSpec| {
        let push = given.flag("push") && host.agent.is_none();
        HostSpec { ssh: ssh.clone(), binary: binary.clone(), push, ..host }
    };
    let is_here = |host: &HostSpec| host.host == HERE && host.agent.is_none();
    Ok(match to {
        Some(host) => vec![None, Some(spec(host))],
        None => hosts.into_iter().map(|one| (!is_here(&one)).then(|| spec(one))).collect(),
    })
}

/// The hosts of a file: the first word of each line, `#` begins a comment.
fn of_file(path: &Path) -> Result<Vec<HostSpec>, UsageError> {
    let shown = path.display();
    let cannot = |error: std::io::Error| {
        UsageError(format!("--hosts-file: cannot read '{shown}' ({error})"))
    };
    let text = host::read_text(path, LONGEST_FILE).map_err(cannot)?;
    hosts(&text, &shown.to_string())
}

/// The hosts of a text, for refusals that name the file.
pub fn hosts(text: &str, file: &str) -> Result<Vec<HostSpec>, UsageError> {
    let mut hosts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let place = format!("--hosts-file: {file}:{}", number + 1);
        ensure!(words.next().is_none(), "{place}: a line has one host");
        hosts.push(values::host(name).map_err(|why| UsageError(format!("{place}: {why}")))?);
    }
    let many = hosts.len();
    ensure!(many > 0, "--hosts-file: {file} names no host: use one per line");
    let fits = many <= MOST_HOSTS;
    ensure!(fits, "--hosts-file: {file} names {many} hosts; at most {MOST_HOSTS} are allowed");
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_host_a_line() {
        let text = "# rack 1\nnode1\n\n  user@node2   # the slow one\nhere\n";
        let names: Vec<String> =
            hosts(text, "f").unwrap().into_iter().map(|host| host.host).collect();
        assert_eq!(names, ["node1", "user@node2", "here"]);
    }

    #[test]
    fn what_is_wrong_in_a_file_has_its_line() {
        let refused = |text: &str| hosts(text, "f").unwrap_err().0;
        assert!(refused("a\nb c\n").starts_with("--hosts-file: f:2: a line has one host"));
        assert!(refused("a\n-b\n").starts_with("--hosts-file: f:2: invalid host '-b'"));
        assert!(refused("# none\n").contains("names no host"));
        let many = "n\n".repeat(MOST_HOSTS + 1);
        assert!(refused(&many).contains("at most 10000 are allowed"));
    }
}
