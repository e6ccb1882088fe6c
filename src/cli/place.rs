//! Where the ends are to be: hosts by name, in a list or in a file.

use super::host_args::{PlacementArguments, RankArguments, ReachArguments};
use super::values::{self, Host, Ssh};
use crate::plan::pairs::{AtOnce, HERE, MOST_HOSTS, Node};
use crate::plan::{HostSpec, Pairs, Place, Refusal};
use crate::remote::job;
use crate::remote::job::rank::{self, Rank, RankOptions};
use std::io::Read;
use std::path::Path;

/// Longest file of hosts that is read: room for `MOST_HOSTS` names.
const LONGEST_FILE: u64 = 4 << 20;

/// The place that was asked for, and which process of a job this is.
pub fn place(typed: PlacementArguments) -> Result<(Place, Option<Rank>), Refusal> {
    let pairs = typed.pairs()?;
    if let Some(found) = rank_of(&typed.job, &typed.reach)? {
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
    if pairs != Pairs::First && !typed.reach.names_hosts() {
        let option = if typed.all_pairs { "--all-pairs" } else { "--bisection" };
        return refuse(format!("{option} needs several hosts; write --hosts A,B,C"));
    }
    Ok((of(typed.reach, pairs)?, None))
}

/// Which process of a job this is, where it is one; hosts are not named then.
fn rank_of(job: &RankArguments, reach: &ReachArguments) -> Result<Option<Rank>, Refusal> {
    let RankArguments { rank, ranks, leader } = job;
    let job = RankOptions { rank: *rank, ranks: *ranks, leader: leader.clone() };
    let found = rank::find(&job, &|name| std::env::var(name).ok()).map_err(Refusal)?;
    match &found {
        Some(found) if reach.names_hosts() => refuse(format!(
            "hosts are named, and this is rank {} of the {} that a launcher has started; leave the \
             names out, or write --ranks 1",
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
pub fn others(
    typed: ReachArguments,
    job: &RankArguments,
    command: &str,
) -> Result<(Vec<HostSpec>, Option<Rank>), Refusal> {
    if let Some(found) = rank_of(job, &typed)? {
        return Ok((ranks_beside(&found), Some(found)));
    }
    Ok((named(typed, command)?, None))
}

fn named(typed: ReachArguments, command: &str) -> Result<Vec<HostSpec>, Refusal> {
    let spec = |node: Node| match node {
        Node::Here => None,
        Node::Remote(spec) => Some(spec),
    };
    match of(typed, Pairs::First)? {
        Place::Here => {
            refuse(format!("{command} needs other hosts; write --to HOST or --hosts A,B"))
        }
        Place::To(spec) => Ok(vec![spec]),
        Place::Hosts(nodes, _) => Ok(nodes.into_iter().filter_map(spec).collect()),
    }
}

fn of(typed: ReachArguments, pairs: Pairs) -> Result<Place, Refusal> {
    if let Some(option) = typed.means_nothing()? {
        return refuse(format!("{option} needs another host; write --to HOST or --hosts A,B"));
    }
    let of_ssh = typed.of_ssh();
    let ReachArguments { to, hosts, hosts_file, remote_binary, push, ssh } = typed;
    let hosts = match &hosts_file {
        Some(path) => of_file(path)?,
        None => hosts,
    };
    if push && remote_binary.is_some() {
        return refuse(
            "--push copies this program, and --remote-binary names another one; write one of the \
             two",
        );
    }
    if let Some(option) =
        of_ssh.filter(|_| to.iter().chain(&hosts).all(|host| host.agent.is_some()))
    {
        return refuse(format!(
            "{option} is for hosts that ssh reaches; an agent that stands is there already"
        ));
    }
    let ssh = ssh.map_or_else(|| vec!["ssh".into()], |Ssh(words)| words);
    let spec = |Host { name, agent }: Host| {
        let (ssh, binary) = (ssh.clone(), remote_binary.clone());
        let push = push && agent.is_none();
        HostSpec { host: name, agent, ssh, binary, push, key: None }
    };
    let node = |host: Host| match host.name == HERE && host.agent.is_none() {
        true => Node::Here,
        false => Node::Remote(spec(host)),
    };
    Ok(match to {
        Some(host) => Place::To(spec(host)),
        None if hosts.is_empty() => Place::Here,
        None => Place::Hosts(hosts.into_iter().map(node).collect(), pairs),
    })
}

impl ReachArguments {
    /// Whether another host is named.
    pub fn names_hosts(&self) -> bool {
        self.to.is_some() || !self.hosts.is_empty() || self.hosts_file.is_some()
    }

    /// An option that means nothing without another host, where none is named.
    fn means_nothing(&self) -> Result<Option<&'static str>, Refusal> {
        let places = [
            ("--to", self.to.is_some()),
            ("--hosts", !self.hosts.is_empty()),
            ("--hosts-file", self.hosts_file.is_some()),
        ];
        let given: Vec<&str> =
            places.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
        if let [first, second, ..] = given.as_slice() {
            return refuse(format!("{first} and {second} both name hosts; write one of the two"));
        }
        Ok(self.of_ssh().filter(|_| given.is_empty()))
    }

    /// An option that only ssh knows.
    fn of_ssh(&self) -> Option<&'static str> {
        let asked = [
            ("--remote-binary", self.remote_binary.is_some()),
            ("--push", self.push),
            ("--ssh", self.ssh.is_some()),
        ];
        asked.into_iter().find(|(_, asked)| *asked).map(|(name, _)| name)
    }
}

impl PlacementArguments {
    fn pairs(&self) -> Result<Pairs, Refusal> {
        let several = self.all_pairs || self.bisection.is_some();
        if several && self.reach.to.is_some() {
            return refuse("--to names one host, which has no pairs; write --hosts A,B,C");
        }
        match (self.all_pairs, self.at_once, self.bisection) {
            (true, _, Some(_)) => {
                refuse("--all-pairs and --bisection are two questions; write one of the two")
            }
            (false, Some(_), _) => refuse("--at-once needs --all-pairs; write both"),
            (true, at_once, None) => Ok(Pairs::All { at_once: at_once.unwrap_or_default() }),
            (false, None, Some(matchings)) => Ok(Pairs::Bisection { matchings }),
            (false, None, None) => Ok(Pairs::First),
        }
    }
}

/// The hosts of a file: the first word of each line, `#` begins a comment.
fn of_file(path: &Path) -> Result<Vec<Host>, Refusal> {
    let shown = path.display();
    let cannot = |error: std::io::Error| {
        Refusal(format!("--hosts-file: '{shown}' cannot be read ({error})"))
    };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(LONGEST_FILE + 1).read_to_string(&mut text).map_err(cannot)?;
    if text.len() as u64 > LONGEST_FILE {
        return refuse(format!("--hosts-file: '{shown}' is longer than {LONGEST_FILE} B"));
    }
    hosts(&text, &shown.to_string())
}

fn hosts(text: &str, file: &str) -> Result<Vec<Host>, Refusal> {
    let mut hosts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let place = format!("--hosts-file: {file}:{}", number + 1);
        if words.next().is_some() {
            return refuse(format!("{place}: a line has one host; write it alone"));
        }
        hosts.push(values::host(name).map_err(|why| Refusal(format!("{place}: {why}")))?);
    }
    match hosts.len() {
        0 => refuse(format!("--hosts-file: {file} names no host; write one a line")),
        many if many > MOST_HOSTS => refuse(format!(
            "--hosts-file: {file} names {many} hosts; at most {MOST_HOSTS} are allowed"
        )),
        _ => Ok(hosts),
    }
}

fn refuse<T>(sentence: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(sentence.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_host_a_line() {
        let text = "# rack 1\nnode1\n\n  user@node2   # the slow one\nhere\n";
        let names: Vec<String> =
            hosts(text, "f").unwrap().into_iter().map(|host| host.name).collect();
        assert_eq!(names, ["node1", "user@node2", "here"]);
    }

    #[test]
    fn what_is_wrong_in_a_file_has_its_line() {
        let refused = |text: &str| hosts(text, "f").unwrap_err().0;
        assert!(refused("a\nb c\n").starts_with("--hosts-file: f:2: a line has one host"));
        assert!(refused("a\n-b\n").starts_with("--hosts-file: f:2: '-b' is not allowed"));
        assert!(refused("# none\n").contains("names no host"));
        let many = "n\n".repeat(MOST_HOSTS + 1);
        assert!(refused(&many).contains("at most 10000 are allowed"));
    }
}
