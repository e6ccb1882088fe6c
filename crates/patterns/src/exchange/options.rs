//! The options of an exchange.

use super::file::LONGEST_FILE;
use super::request::{ExchangeRequest, ListedFile, MAX_NODES};
use super::routes::{self, Network};
use super::slots::Rule;
use super::spec::{Exchange, MOST_QUEUE, MOST_RECEIVE_QUEUE, Spec};
use crate::prelude::*;
use std::path::Path;
use std::sync::Arc;
use wiregauge_base::units::BitRate;

const SLOTS: &str = "Schedule (slots of common time)";
const QUEUES: &str = "Queues";

/// Nodes where nothing else is asked for: those of the source.
const NODES: u32 = 4;
/// Time of a round where nothing else is asked for.
const TIME: Span = Span(500_000_000);

const OPTIONS: OptionTable = &[
    SIZE.default("128KiB"),
    OptionDef::count("nodes", "Nodes, each a process of this host, or a list")
        .limits(2, MAX_NODES)
        .list()
        .default_note("4, or the hosts")
        .excludes(&["hosts", "hosts-file"])
        .common(),
    OptionDef::flag("chaotic", "Keep the queues of all connections full: no slots")
        .excludes(&["rate", "slot", "skip-late"])
        .default_note("without --rate and --slot")
        .common(),
    OptionDef::text(
        "schedule",
        |_| Ok(()),
        "Who sends to whom: round-robin, one-to-all, all-to-one, fixed, shift, even-odd, \
         permutations, incast, a list of them, or a file of slots",
    )
    .metavar("RULE|FILE")
    .list()
    .default("round-robin")
    .common()
    .heading(SLOTS),
    OptionDef::parsed::<BitRate>(
        "rate",
        "Payload of a node per second, such as 1gbit: a slot is as long as a message takes",
    )
    .metavar("RATE")
    .list()
    .common()
    .heading(SLOTS),
    OptionDef::duration("slot", "Length of a slot, such as 100us")
        .excludes(&["rate"])
        .heading(SLOTS),
    OptionDef::flag("skip-late", "Leave a send out whose slot is over or whose queue is full")
        .heading(SLOTS),
    OptionDef::path(
        "routes",
        "File of the network's links ('node0 - switch1' a line, or the output of ibnetdiscover): \
         no two transfers of a slot share one",
    )
    .heading(SLOTS),
    OptionDef::count("degree", "With --schedule incast: senders, or a list")
        .limits(1, MAX_NODES - 1)
        .list()
        .default_note("all other nodes")
        .heading(SLOTS),
    OptionDef::count("queue", "Most messages of a connection posted and not completed, or a list")
        .limits(1, MOST_QUEUE)
        .list()
        .default_note("10, 5 with slots")
        .heading(QUEUES),
    OptionDef::count(
        "receive-queue",
        "Receive buffers of a connection, or a list; sockets have --receive-buffer",
    )
    .limits(1, MOST_RECEIVE_QUEUE)
    .list()
    .default_note("one more than --queue")
    .heading(QUEUES),
    OptionDef::text(
        "spread",
        |text| percent(text).map(drop),
        "How far the length of a message is from --size at most, such as 50%, or a list",
    )
    .metavar("PERCENT")
    .list()
    .default("0%"),
    OptionDef::parsed::<BitRate>(
        "link",
        "Rate of a node's link, such as 1gbit: figures are also given as a share of it",
    )
    .metavar("RATE"),
];

/// A share in per cent.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let share = number.filter(|percent| (0.0..=90.0).contains(percent)).map(|one| one / 100.0);
    share.ok_or_else(|| format!("'{text}' is out of range: use 0% to 90%, such as 50%"))
}

/// What was asked for by default, of a size.
pub fn request(asked: ExchangeRequest) -> Request {
    let bound = Bound { count: None, time: Some(TIME) };
    Request {
        usual_bound: bound,
        is_directed: false,
        ..Request::new(&Exchange, asked, Spec::default().mean)
    }
}

impl PatternOptions for Exchange {
    fn about(&self) -> &'static str {
        "Measure what many nodes give each other: by slots of common time, or as fast as they can"
    }

    fn examples(&self) -> &'static str {
        "
  wiregauge exchange --nodes 4 --transport tcp,shm
  wiregauge exchange --hosts a,b,c,d --schedule round-robin --rate 900mbit --link 1gbit
  wiregauge exchange --nodes 8 --schedule incast --degree 1,2,4,7 --size 64KiB
  wiregauge exchange --chaotic --queue 10 --receive-queue 11 --spread 50% --size 1KiB,16KiB"
    }

    fn options(&self) -> OptionTable {
        OPTIONS
    }

    fn request(&self, given: &Given) -> Result<Request, UsageError> {
        let (rules, file) = rules(given)?;
        let rates: Vec<BitRate> = given.list("rate");
        let slot = given.time("slot");
        let has_slots = slot.is_some() || !rates.is_empty();
        let is_ruled = given.is_given("schedule") && rules != [Rule::Incast];
        ensure!(
            has_slots || given.flag("chaotic") || !is_ruled,
            "--schedule needs the length of a slot: use --rate or --slot, or --chaotic to keep \
             the queues full"
        );
        let needs = ["skip-late"].into_iter().find(|name| given.flag(name) && !has_slots);
        refuse_found(needs, |name| format!("--{name} is for slots: use --rate or --slot as well"))?;
        ensure!(
            !given.is_given("degree") || rules.contains(&Rule::Incast),
            "--degree is the number of senders of an incast: use --schedule incast as well"
        );
        let routes = routes(given, has_slots, &rules)?;
        let mut nodes = each_once(given.counts32("nodes"));
        if nodes.is_empty() {
            nodes.push(NODES);
        }
        let spec = Spec {
            chaotic: !has_slots,
            skip_late: given.flag("skip-late"),
            link: given.get::<BitRate>("link").map(|rate| rate.0),
            ..Spec::default()
        };
        let asked = ExchangeRequest {
            spec,
            nodes,
            rules,
            file,
            routes,
            rates: rates.into_iter().map(|rate| rate.0).collect(),
            slot,
            degrees: each_once(given.counts32("degree")),
            queues: each_once(given.counts32("queue")),
            receive_queues: each_once(given.counts32("receive-queue")),
            spreads: given.read_list("spread", percent),
        };
        Ok(with_sizes(given, request(asked)))
    }
}

/// The rules that are named, and the schedule file: the one word that is not a rule.
fn rules(given: &Given) -> Result<(Vec<Rule>, Option<ListedFile>), UsageError> {
    let words: Vec<String> = given.read_list("schedule", |text| Ok::<_, String>(text.to_string()));
    let named = |word: &String| <Rule as Named>::from_name(word).filter(|rule| *rule != Rule::File);
    let files: Vec<&String> = words.iter().filter(|word| named(word).is_none()).collect();
    let file = match files.as_slice() {
        [] => None,
        [path] => {
            let known = Rule::ALL.iter().filter(|rule| **rule != Rule::File);
            let known = wiregauge_base::options::names(known);
            let unreadable = |why| {
                UsageError(format!(
                    "--schedule: '{path}' is no rule and cannot be read as a file ({why}): use \
                     {known}, or a file of slots"
                ))
            };
            let text =
                wiregauge_host::read_text(Path::new(path), LONGEST_FILE).map_err(unreadable)?;
            Some(ListedFile { name: (*path).clone(), text })
        }
        _ => return Err(UsageError("--schedule: use at most one file of slots".into())),
    };
    let rules = words.iter().map(|word| named(word).unwrap_or(Rule::File)).collect();
    Ok((each_once::<Rule>(rules_of(rules)), file))
}

/// The network whose links no two transfers of a slot may share.
fn routes(
    given: &Given,
    has_slots: bool,
    rules: &[Rule],
) -> Result<Option<Arc<Network>>, UsageError> {
    let Some(path) = given.text("routes") else { return Ok(None) };
    ensure!(has_slots, "--routes arranges slots: use --rate or --slot as well");
    let several = rules.contains(&Rule::Incast);
    ensure!(!several, "--routes does not work with --schedule incast, whose senders share a link");
    let unreadable = |why| UsageError(format!("--routes: cannot read '{path}' ({why})"));
    let text =
        wiregauge_host::read_text(Path::new(path), routes::LONGEST_FILE).map_err(unreadable)?;
    let wrong = |wrong| UsageError(format!("--routes: {wrong}"));
    Ok(Some(Arc::new(Network::parse(path, &text).map_err(wrong)?)))
}

/// The rule of the source where none was named.
fn rules_of(rules: Vec<Rule>) -> Vec<Rule> {
    if rules.is_empty() { vec![Rule::RoundRobin] } else { rules }
}
