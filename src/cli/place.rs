//! Where the ends are to be: hosts by name, in a list or in a file.

use super::values;
use crate::host;
use crate::options::{Given, OptionDef, UsageError, refuse_found};
use crate::plan::pairs::{AtOnce, HERE, MOST_HOSTS};
use crate::plan::{HostSpec, Pairs, Place, Rails};
use crate::remote::job;
use crate::remote::job::rank::{self, Rank, RankOptions};
use crate::transport::definitions::DEFINITIONS;
use std::collections::BTreeMap;
use std::path::Path;

/// Longest file of hosts that is read: room for `MOST_HOSTS` names.
const LONGEST_FILE: u64 = 4 << 20;
/// Options of pairs of hosts, which measurements in which all hosts take part refuse.
pub const OF_PAIRS: [&str; 6] =
    ["to", "all-pairs", "at-once", "bisection", "client-hosts", "rails"];
/// Options of ssh.
const OF_SSH: [&str; 3] = ["remote-binary", "push", "ssh"];

/// The place that was asked for, and which process of a job this is.
pub fn place(given: &Given) -> Result<(Place, Option<Rank>), UsageError> {
    let (rank, mut which) = (rank_of(given)?, pairs(given));
    let has_rails = given.definition("rails").is_some();
    let at_once = has_rails.then(|| given.choice("rails")).flatten();
    let needed = match which {
        Pairs::All { .. } => Some("--all-pairs needs several hosts: use --hosts A,B,C"),
        Pairs::Bisection { .. } => Some("--bisection needs several hosts: use --hosts A,B,C"),
        Pairs::First | Pairs::Ranks => at_once.map(|_| "--rails needs another host: use --to HOST"),
    };
    match &rank {
        None if !names_hosts(given) => refuse_found(needed, str::to_owned)?,
        // Nobody has to name hosts in a job, so nobody has to say that all are meant.
        Some(own) if own.ranks != 2 && which == Pairs::First => {
            which = Pairs::All { at_once: AtOnce::default() };
        }
        _ => {}
    }
    if given.is_given("client-hosts") {
        return Ok((clients(given)?, rank));
    }
    let (nodes, own_here) = nodes(given, rank.as_ref())?;
    let rails = at_once.map(Rails::new);
    Ok((Place { nodes, which, own_here, rails, ..Place::default() }, rank))
}

/// The same hosts as ranks that all do the same.
///
/// # Errors
/// Pairs of them were asked for.
pub fn ranks(place: Place, given: &Given) -> Result<Place, UsageError> {
    refuse_found(OF_PAIRS.into_iter().find(|name| given.is_given(name)), |option| {
        format!(
            "--{option} measures pairs, and here all hosts take part at once: use --hosts A,B,C, \
             or --nodes for processes on this host"
        )
    })?;
    let hosts = place.all_nodes().count();
    ensure!(
        hosts != 1,
        UsageError(
            "one host is named: use --hosts A,B,C, or --nodes for processes on this one".into()
        )
    );
    Ok(Place { which: Pairs::Ranks, ..place })
}

/// Refuses another number of nodes than those that a command has, where each host is one. A study
/// says so instead.
pub fn refuse_other_nodes(place: &Place, given: &Given) -> Result<(), UsageError> {
    let ranks = place.all_nodes().count() as u32;
    let typed = given.definition("nodes").map(|_| given.counts32("nodes")).unwrap_or_default();
    let other = typed.into_iter().find(|nodes| ranks > 0 && *nodes != ranks);
    refuse_found(other, |nodes| {
        format!("--nodes {nodes}: this job has {ranks} ranks, which all take part: leave it out")
    })
}

/// Whether another host is named.
fn names_hosts(given: &Given) -> bool {
    ["to", "hosts", "hosts-file", "client-hosts"].iter().any(|name| given.is_given(name))
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

/// The hosts of a command that measures no pairs.
pub struct Others {
    /// The other hosts.
    pub hosts: Vec<HostSpec>,
    /// The settings that this host has of its own.
    pub own_here: BTreeMap<String, String>,
    /// Which process of a job this is.
    pub rank: Option<Rank>,
}

/// Returns the other hosts of a command that measures no pairs.
pub fn others(given: &Given, command: &str) -> Result<Others, UsageError> {
    let rank = rank_of(given)?;
    let (nodes, own_here) = nodes(given, rank.as_ref())?;
    ensure!(!nodes.is_empty(), "{command} needs remote hosts: use --to HOST or --hosts A,B");
    Ok(Others { hosts: nodes.into_iter().flatten().collect(), own_here, rank })
}

/// The hosts that a command is about, `None` being this one; none where it is about this one alone.
pub fn nodes_if_named(given: &Given) -> Result<(Vec<Option<HostSpec>>, Option<Rank>), UsageError> {
    let rank = rank_of(given)?;
    let (nodes, _) = nodes(given, rank.as_ref())?;
    Ok((nodes, rank))
}

/// The hosts of `--hosts` or `--hosts-file`, `None` being this one, outside of a job.
pub fn named_hosts(given: &Given) -> Result<Vec<Option<HostSpec>>, UsageError> {
    let of_one = ["to", "client-hosts"].into_iter().find(|name| given.is_given(name));
    refuse_found(of_one, |option| format!("--{option} names no congestors: use --hosts A,B,C,D"))?;
    Ok(nodes(given, None)?.0)
}

/// Hosts, `None` being this one, and the settings that this one has of its own.
type Nodes = (Vec<Option<HostSpec>>, BTreeMap<String, String>);

/// The hosts that are named; an empty list where none is. Those of a job are its ranks; where they
/// are is known when they have come.
fn nodes(given: &Given, rank: Option<&Rank>) -> Result<Nodes, UsageError> {
    if let Some(own) = rank {
        let spec = |rank| HostSpec { host: job::name(rank), ..HostSpec::default() };
        let nodes = (0..own.ranks).map(|rank| (rank > 0).then(|| spec(rank)));
        return Ok((nodes.collect(), BTreeMap::new()));
    }
    let of_ssh = OF_SSH.into_iter().find(|name| given.is_given(name));
    refuse_found(of_ssh.filter(|_| !names_hosts(given)), |option| {
        format!("--{option} needs a remote host: use --to HOST or --hosts A,B")
    })?;
    let to = given.read("to", values::one_host);
    let hosts = match given.text("hosts-file") {
        Some(path) => of_file(Path::new(path))?,
        None => named_in_list(given, "hosts")?,
    };
    check_reach(given, to.iter().chain(&hosts))?;
    let spec = |host: HostSpec| reached(given, host);
    let own_here = hosts.iter().find(|host| is_here(host)).map(|here| here.own.clone());
    let nodes = match to {
        Some(host) => vec![None, Some(spec(host))],
        None => hosts.into_iter().map(|one| (!is_here(&one)).then(|| spec(one))).collect(),
    };
    Ok((nodes, own_here.unwrap_or_default()))
}

/// The clients of one server, and where that is.
fn clients(given: &Given) -> Result<Place, UsageError> {
    let to = given.read("to", values::one_host);
    let hosts = named_in_list(given, "client-hosts")?;
    check_reach(given, to.iter().chain(&hosts))?;
    let at = |host: HostSpec| (!is_here(&host)).then(|| reached(given, host));
    Ok(Place::clients(hosts.into_iter().map(at).collect(), to.and_then(at)))
}

/// Whether it is this host.
fn is_here(host: &HostSpec) -> bool {
    host.host == HERE && host.agent.is_none()
}

/// Refuses options of ssh where all of these hosts have agent daemons.
fn check_reach<'a>(
    given: &Given,
    mut hosts: impl Iterator<Item = &'a HostSpec>,
) -> Result<(), UsageError> {
    let has_agents = hosts.all(|host| host.agent.is_some());
    let of_ssh = OF_SSH.into_iter().find(|name| given.is_given(name));
    refuse_found(of_ssh.filter(|_| has_agents), |option| {
        format!("--{option} is for hosts that ssh reaches, and an agent daemon runs there already")
    })
}

/// A host with the options by which it is reached.
fn reached(given: &Given, host: HostSpec) -> HostSpec {
    let ssh = given.read("ssh", values::ssh).unwrap_or_else(|| vec!["ssh".into()]);
    let push = given.flag("push") && host.agent.is_none();
    HostSpec { ssh, binary: given.get("remote-binary"), push, ..host }
}

/// The hosts of a file: one a line, with what it has of its own (`device=mlx5_1`); `#` begins a
/// comment.
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
    // Editors of other systems put a mark of byte order in front.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut hosts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let place = format!("--hosts-file: {file}:{}", number + 1);
        let wrong = |why| UsageError(format!("{place}: {why}"));
        let named = values::hosts(name).map_err(wrong)?;
        let own: BTreeMap<_, _> =
            words.map(own_setting).collect::<Result<_, _>>().map_err(wrong)?;
        hosts.extend(named.into_iter().map(|host| HostSpec { own: own.clone(), ..host }));
        check_number(&hosts, &format!("--hosts-file: {file}"))?;
    }
    ensure!(!hosts.is_empty(), "--hosts-file: {file} names no host: use one per line");
    Ok(hosts)
}

/// The hosts of an option that takes a list of them.
fn named_in_list(given: &Given, option: &'static str) -> Result<Vec<HostSpec>, UsageError> {
    let mut hosts = Vec::new();
    for named in given.read_list(option, values::hosts) {
        hosts.extend(named);
        check_number(&hosts, &format!("--{option}"))?;
    }
    Ok(hosts)
}

/// Refuses more hosts than a run may have; `who` names them.
fn check_number(hosts: &[HostSpec], who: &str) -> Result<(), UsageError> {
    let many = hosts.len();
    ensure!(many <= MOST_HOSTS, "{who} names {many} hosts; at most {MOST_HOSTS} are allowed");
    Ok(())
}

/// The options of which each end may have its own value.
fn per_end() -> impl Iterator<Item = &'static OptionDef> {
    DEFINITIONS.iter().copied().filter(|one| one.is_per_end)
}

/// A setting that a host has of its own: one of those that each end may have.
fn own_setting(word: &str) -> Result<(String, String), String> {
    let allowed = || {
        let names: Vec<String> = per_end().map(|own| format!("{}=", own.name)).collect();
        let names = names.join(", ");
        format!("a line has one host, and what it has of its own: '{word}' is none of {names}")
    };
    let (name, value) = word.split_once('=').ok_or_else(allowed)?;
    let definition = per_end().find(|own| own.name == name).ok_or_else(allowed)?;
    ensure!(!value.contains(','), "{name}={value}: a host has one {name}");
    definition.check(value).map_err(|why| format!("{name}: {why}"))?;
    Ok((name.to_owned(), value.to_owned()))
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
    fn a_line_with_brackets_names_several_hosts_with_the_same_settings() {
        let found = hosts("node[01-02,07] device=mlx5_0\nagent:[::1]:7500\n", "f").unwrap();
        let own: Vec<String> =
            found.iter().map(|host| format!("{} {}", host.host, host.own.len())).collect();
        assert_eq!(own, ["node01 1", "node02 1", "node07 1", "[::1]:7500 0"]);
    }

    #[test]
    fn a_host_may_have_devices_of_its_own() {
        let found = hosts("node1 device=mlx5_0 port=2\nhere interface=ib0\n", "f").unwrap();
        let own: Vec<Vec<(&str, &str)>> = found
            .iter()
            .map(|host| host.own.iter().map(|(name, value)| (&**name, &**value)).collect())
            .collect();
        assert_eq!(own, [vec![("device", "mlx5_0"), ("port", "2")], vec![("interface", "ib0")]]);
        let marked = hosts("\u{feff}node1\r\nnode2\r\n", "f").unwrap();
        let names: Vec<&str> = marked.iter().map(|host| &*host.host).collect();
        assert_eq!(names, ["node1", "node2"]);
    }

    #[test]
    fn what_is_wrong_in_a_file_has_its_line() {
        let refused = |text: &str| hosts(text, "f").unwrap_err().0;
        assert!(refused("a\nb c\n").starts_with("--hosts-file: f:2: a line has one host"));
        assert!(refused("a size=8\n").contains("'size=8' is none of interface=,"));
        assert!(refused("a\nb port=0\n").starts_with("--hosts-file: f:2: port: '0' is out of"));
        assert!(refused("a device=x,y\n").contains("a host has one device"));
        assert!(refused("a\n-b\n").starts_with("--hosts-file: f:2: invalid host '-b'"));
        assert!(refused("# none\n").contains("names no host"));
        let refusal = refused("a\nn[1-\n");
        assert!(refusal.starts_with("--hosts-file: f:2: invalid hosts 'n[1-'"), "{refusal}");
        assert!(refused("n[1-6000]\nm[1-6000]\n").contains("names 12000 hosts; at most 10000"));
        let many = "n\n".repeat(MOST_HOSTS + 1);
        assert!(refused(&many).contains("at most 10000 are allowed"));
    }
}
