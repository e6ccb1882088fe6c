//! Where the ends are to be: hosts by name, in a list or in a file.

use super::values;
use crate::options::{Given, UsageError};
use crate::plan::pairs::{AtOnce, HERE, MOST_HOSTS, Node};
use crate::plan::{HostSpec, Pairs, Place};
use crate::remote::job;
use crate::remote::job::rank::{self, Rank, RankOptions};
use std::io::Read;
use std::path::Path;

/// Longest file of hosts that is read: room for `MOST_HOSTS` names.
const LONGEST_FILE: u64 = 4 << 20;

/// The place that was asked for, and which process of a job this is.
pub fn place(given: &Given) -> Result<(Place, Option<Rank>), UsageError> {
    let pairs = pairs(given);
    if let Some(found) = rank_of(given)? {
        let mut others = ranks_beside(&found);
        let place = match (found.ranks, pairs) {
            (2, Pairs::First) => Place::To(others.remove(0)),
            (_, pairs) => {
                // Nobody has to name hosts here, so nobody has to say that all are meant.
                let all = Pairs::All { at_once: AtOnce::default() };
                let pairs = if pairs == Pairs::First { all } else { pairs };
                let others = others.into_iter().map(Node::Remote);
                Place::Hosts([Node::Here].into_iter().chain(others).collect(), pairs)
            }
        };
        return Ok((place, Some(found)));
    }
    if pairs != Pairs::First && !names_hosts(given) {
        let option = if given.flag("all-pairs") { "--all-pairs" } else { "--bisection" };
        return refuse(format!("{option} needs several hosts: use --hosts A,B,C"));
    }
    Ok((of_hosts(given, pairs)?, None))
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
    match &found {
        Some(found) if names_hosts(given) => refuse(format!(
            "hosts are named, but this is rank {} of {} of a job: name no hosts, or use --ranks 1",
            found.rank, found.ranks
        )),
        _ => Ok(found),
    }
}

/// The other processes of a job as hosts; where they are is known when they have come.
fn ranks_beside(own: &Rank) -> Vec<HostSpec> {
    (1..own.ranks).map(|rank| HostSpec { host: job::name(rank), ..HostSpec::default() }).collect()
}

/// The other hosts of a command that measures no pairs, and which process of a job this is.
pub fn others(given: &Given, command: &str) -> Result<(Vec<HostSpec>, Option<Rank>), UsageError> {
    if let Some(found) = rank_of(given)? {
        return Ok((ranks_beside(&found), Some(found)));
    }
    let spec = |node: Node| match node {
        Node::Here => None,
        Node::Remote(spec) => Some(spec),
    };
    match of_hosts(given, Pairs::First)? {
        Place::Here => {
            refuse(format!("{command} needs remote hosts: use --to HOST or --hosts A,B"))
        }
        Place::To(spec) => Ok((vec![spec], None)),
        Place::Hosts(nodes, _) => Ok((nodes.into_iter().filter_map(spec).collect(), None)),
    }
}

fn of_hosts(given: &Given, pairs: Pairs) -> Result<Place, UsageError> {
    let of_ssh = ["remote-binary", "push", "ssh"].into_iter().find(|name| given.is_given(name));
    if let Some(option) = of_ssh.filter(|_| !names_hosts(given)) {
        return refuse(format!("--{option} needs a remote host: use --to HOST or --hosts A,B"));
    }
    let to = given.read("to", values::host);
    let hosts = match given.text("hosts-file") {
        Some(path) => of_file(Path::new(path))?,
        None => given.read_list("hosts", values::host),
    };
    if let Some(option) =
        of_ssh.filter(|_| to.iter().chain(&hosts).all(|host| host.agent.is_some()))
    {
        return refuse(format!(
            "--{option} is for hosts that ssh reaches, and an agent daemon runs there already"
        ));
    }
    let ssh = given.read("ssh", values::ssh).unwrap_or_else(|| vec!["ssh".into()]);
    let binary: Option<String> = given.get("remote-binary");
    let spec = |host: HostSpec| {
        let push = given.flag("push") && host.agent.is_none();
        HostSpec { ssh: ssh.clone(), binary: binary.clone(), push, ..host }
    };
    let node = |host: HostSpec| match host.host == HERE && host.agent.is_none() {
        true => Node::Here,
        false => Node::Remote(spec(host)),
    };
    Ok(match to {
        Some(host) => Place::To(spec(host)),
        None if hosts.is_empty() => Place::Here,
        None => Place::Hosts(hosts.into_iter().map(node).collect(), pairs),
    })
}

/// The hosts of a file: the first word of each line, `#` begins a comment.
fn of_file(path: &Path) -> Result<Vec<HostSpec>, UsageError> {
    let shown = path.display();
    let cannot = |error: std::io::Error| {
        UsageError(format!("--hosts-file: cannot read '{shown}' ({error})"))
    };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(LONGEST_FILE + 1).read_to_string(&mut text).map_err(cannot)?;
    if text.len() as u64 > LONGEST_FILE {
        return refuse(format!("--hosts-file: '{shown}' is longer than {LONGEST_FILE} B"));
    }
    hosts(&text, &shown.to_string())
}

fn hosts(text: &str, file: &str) -> Result<Vec<HostSpec>, UsageError> {
    let mut hosts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let place = format!("--hosts-file: {file}:{}", number + 1);
        if words.next().is_some() {
            return refuse(format!("{place}: a line has one host"));
        }
        hosts.push(values::host(name).map_err(|why| UsageError(format!("{place}: {why}")))?);
    }
    match hosts.len() {
        0 => refuse(format!("--hosts-file: {file} names no host: use one per line")),
        many if many > MOST_HOSTS => refuse(format!(
            "--hosts-file: {file} names {many} hosts; at most {MOST_HOSTS} are allowed"
        )),
        _ => Ok(hosts),
    }
}

fn refuse<T>(sentence: impl Into<String>) -> Result<T, UsageError> {
    Err(UsageError(sentence.into()))
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
