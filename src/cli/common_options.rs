//! The options that all measuring commands have.

use super::display::{COLOR, COLUMNS, Display, OUTPUT, UNIT, VERBOSE};
use super::place;
use super::values;
use super::{Command, JudgeOptions, RunOptions};
use crate::agent::remote_memory::REPORT;
use crate::clock::Source;
use crate::host::{self, CpuPair, Family};
use crate::options::{Given, OptionDef, OptionTable, UsageError, each_once, refuse_found, under};
use crate::pattern::Pattern;
use crate::pattern::options::MEASUREMENT;
use crate::pattern::registry;
use crate::plan::Bound;
use crate::plan::pairs::AtOnce;
use crate::plan::rails::RailsAtOnce;
use crate::plan::request::{MOST_COUNT, MOST_ROUNDS, MOST_THREADS};
use crate::plan::{FOREVER, Place, Request, Wait};
use crate::record::Baseline;
use crate::remote::job::rank::Rank;
use crate::stats::Limit;
use crate::transport::definitions::DEFINITIONS;
use crate::transport::{Interfaces, Role, Settings, TransportKind, congestion_available};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

const DURATION: &str = "Duration";
/// The heading of where it runs.
pub const PLACEMENT: &str = "Placement and clock";
const HOSTS: &str = "Remote hosts";
const JOB: &str = "Ranks of a job (set by srun, mpirun and such; rank 0 is the controller)";

/// The transports that are measured. Each command offers those that carry its pattern.
const TRANSPORTS: OptionDef =
    OptionDef::choice::<TransportKind>("transport", "Transports to measure")
        .metavar("NAMES")
        .list()
        .default("tcp")
        .common()
        .heading(MEASUREMENT);

/// What is measured over every transport.
pub const WHAT: OptionTable = &under(MEASUREMENT, [
    TRANSPORTS,
    OptionDef::choice::<Wait>("wait", "Wait modes of both ends")
        .metavar("MODES")
        .list()
        .default("busy").common(),
    OptionDef::count(
        "threads",
        "Threads of each end, each with its own endpoint and CPU; --count, --time and --window are \
         per thread; a list is a sweep",
    )
    .limits(1, MOST_THREADS as u64)
    .list()
    .default("1"),
    OptionDef::flag("perturb", "Also measure each size 3 bytes smaller and 3 bytes larger"),
    OptionDef::flag("check", "Fill each payload and verify it at the receiver"),
]);

/// When a round has stalled.
pub const TIMEOUT: OptionDef =
    OptionDef::duration("timeout", "Time without progress after which a round has stalled")
        .default("10s");

/// When a round and a run end.
pub const LENGTH: OptionTable = &under(
    DURATION,
    [
        OptionDef::count("count", "Messages of each round, such as 10000, 10k or 1M")
            .limits(1, MOST_COUNT)
            .default_note("10k for latency and oneway without --time")
            .common(),
        OptionDef::duration(
            "time",
            "Duration of each round; with --count, the first limit ends it",
        )
        .default_note("200ms for bandwidth without --count")
        .common(),
        OptionDef::flag(
            "forever",
            "One round until Ctrl-C or SIGTERM, which ends it as planned (exit code 0); samples \
             beyond the first 4194304 are kept as histograms",
        )
        .excludes(&["count", "time", "rounds", "until"]),
        OptionDef::count(
            "rounds",
            "Rounds of each case, each in new processes; with --until, the maximum",
        )
        .limits(1, MOST_ROUNDS as u64)
        .default_note("6; 30 with --until")
        .common(),
        OptionDef::text(
            "until",
            |text| values::percent(text).map(drop),
            "Target half-width of confidence intervals (of p50 and p99; bandwidth: of the rate), \
             such as 5%; the first 6 rounds determine how many are run",
        )
        .metavar("WIDTH")
        .common(),
        OptionDef::count(
            "warmup",
            "Messages at the start of each round that are recorded but not in the figures",
        )
        .limits(0, MOST_COUNT)
        .default_note(
            "1000 or a tenth of the expected count, whichever is less; ends after a tenth of \
             --time, at most 1 s",
        ),
        TIMEOUT,
        OptionDef::duration(
            "loss-after",
            "Time after which a message counts as lost, on transports that can lose messages",
        )
        .default("100ms"),
    ],
);

/// Which CPUs the ends use.
pub const CPUS: OptionTable = &under(PLACEMENT, [OptionDef::text(
    "cpus",
    |text| values::role_cpus(text).map(drop),
    "CPUs of the client and the server, such as 2,3, or lists for several threads, such as 0-3/4-7",
)
.metavar("A,B")
.default_note("chosen").common()]);

/// The clock.
pub const CLOCK: OptionDef = OptionDef::choice::<Source>("clock", "Timestamp clock")
    .default_note("tsc where it is invariant")
    .heading(PLACEMENT);

/// The clock and the seed.
pub const DRAW: OptionTable = &[
    CLOCK,
    OptionDef::text(
        "seed",
        |text| values::seed(text).map(drop),
        "Random seed of the order of cases, of schedules and of payloads",
    )
    .metavar("N")
    .default("1")
    .heading(PLACEMENT),
];

/// The other hosts, and how they are reached.
pub const REACH: OptionTable = &under(HOSTS, [
    OptionDef::text(
        "to",
        |text| values::one_host(text).map(drop),
        "Run the server on this host, by ssh (user@node07 or a name of ssh's configuration) or by \
         an agent daemon (agent:node07)",
    )
    .metavar("HOST")
    .excludes(&["hosts", "hosts-file", "all-pairs", "bisection"]).common(),
    OptionDef::text(
        "hosts",
        |text| values::hosts(text).map(drop),
        "Hosts to measure between, such as node1,node2 or 'node[01-32]': client on the first, \
         server on the second; 'here' is this host",
    )
    .metavar("HOSTS")
    .bracketed_list()
    .excludes(&["hosts-file"]).common(),
    OptionDef::path("hosts-file", "File with one host, or one such as node[01-32], per line")
        .common(),
    OptionDef::text(
        "client-hosts",
        |text| values::hosts(text).map(drop),
        "Hosts of the clients of one server, such as node1,node2,here or 'node[01-32]' (load and \
         rpc); the server is on this host, or on that of --to",
    )
    .metavar("HOSTS")
    .bracketed_list()
    .excludes(&["hosts", "hosts-file", "all-pairs", "bisection", "rails"]),
    OptionDef::text(
        "remote-binary",
        |text| values::line(text).map(drop),
        "Path of wiregauge on the remote hosts",
    )
    .metavar("PATH")
    .default_note("found by the remote shell")
    .excludes(&["push"]),
    OptionDef::flag("push", "Copy this program to the remote hosts first and remove it afterwards"),
    OptionDef::text(
        "ssh",
        |text| values::ssh(text).map(drop),
        "ssh command with its own options, such as 'ssh -F FILE -p 2222'",
    )
    .metavar("COMMAND")
    .default("ssh"),
]);

/// Which pairs of hosts are measured.
pub const PAIRS: OptionTable = &under(HOSTS, [
    OptionDef::flag("all-pairs", "Measure every pair of --hosts: a matrix, with slow pairs named")
        .excludes(&["bisection"]),
    OptionDef::choice::<AtOnce>(
        "at-once",
        "Pairs that run at the same time: one, a matching (no host in two pairs), or all",
    )
    .metavar("WHICH")
    .default_note("matching")
    .needs(&["all-pairs"]),
    OptionDef::count(
        "bisection",
        "Measure this number of random perfect matchings of --hosts: effective bisection bandwidth",
    )
    .metavar("MATCHINGS")
    .limits(0, u32::MAX as u64),
]);

/// Which ports of hosts are measured.
pub const RAILS: OptionTable = &under(HOSTS, [OptionDef::choice::<RailsAtOnce>(
    "rails",
    "Measure all active RDMA ports of the hosts, or over IP their network interfaces, the first of \
     one host with the first of another, the second with the second, and so on: each by itself, or \
     all at the same time",
)
.metavar("WHICH")
.excludes(&["device", "port", "interface", "cpus"])]);

/// Which process of a job this is. A launcher says it by itself.
pub const RANK: OptionTable = &under(
    JOB,
    [
        OptionDef::count("rank", "Rank of this process, from 0, where no launcher sets it")
            .limits(0, u32::MAX as u64),
        OptionDef::count("ranks", "Number of ranks; 1: ignore the launcher and measure alone")
            .limits(0, u32::MAX as u64),
        OptionDef::text(
            "leader",
            |text| values::leader(text).map(drop),
            "Host of rank 0, such as node01 or 10.1.0.1:7426",
        )
        .metavar("HOST"),
    ],
);

/// What counts as slow.
pub const THRESHOLD: OptionTable = &under(
    OUTPUT,
    [OptionDef::time("threshold", "Count samples above this time as slow").default("10us")],
);

/// Where the output of a run goes.
pub const RECORD: OptionTable = &under(
    OUTPUT,
    [
        OptionDef::path("out", "Run directory to write, which must not exist yet")
            .metavar("DIR")
            .default_note("wiregauge-runs/<UTC time>-<command>")
            .common(),
        OptionDef::flag("json", "Print the record on stdout, and nothing else"),
        OptionDef::flag("live", "Show progress, figures and curves full-screen during the run"),
        OptionDef::flag(
            "yes",
            "Start on a terminal, too, what is expected to take over 10 minutes",
        ),
        COLUMNS,
        UNIT,
        VERBOSE.common(),
        COLOR,
    ],
);

/// What is printed while a round runs.
pub const PERIODS: OptionTable = &under(
    OUTPUT,
    [OptionDef::duration(
        "report-every",
        "Print a line on stdout in each such time of a round, at least 1s: message rate, \
         bandwidth, p50, p99, lost messages; with --json a JSON object, and the record on the last \
         line",
    )
    .excludes(&["live"])],
);

/// What is looked at beside the messages.
pub const TAIL: OptionTable = &under(
    OUTPUT,
    [OptionDef::flag(
        "causes",
        "Name what made messages above p99 slow: tasks, interrupts, SoftIRQs, stops, which needs \
         root or CAP_BPF and CAP_PERFMON; and of TCP what was sent again and full buffers",
    )],
);

/// How a run is judged, and where that goes.
pub const JUDGE: OptionTable = &under(
    "Comparison and limits",
    [
        OptionDef::parsed::<Baseline>("baseline", "Compare with this baseline").metavar("NAME"),
        OptionDef::parsed::<Baseline>(
            "save-baseline",
            "Save the run as a baseline of this name, in place of an older one",
        )
        .metavar("NAME"),
        OptionDef::parsed::<Limit>(
            "fail-if",
            "Judge a limit, such as half_rtt.p99>+10%, bandwidth<-5% or half_rtt.max>1ms: exit \
             with code 1 where it is exceeded, 5 where it is inconclusive; can be repeated",
        )
        .metavar("LIMIT")
        .list(),
        OptionDef::flag("strict", "Exit with code 1 where a limit is inconclusive")
            .needs(&["fail-if"]),
        OptionDef::path("junit", "Write the verdicts as JUnit XML to this file"),
        OptionDef::path(
            "markdown",
            "Append the comparison as Markdown to this file, such as $GITHUB_STEP_SUMMARY",
        ),
    ],
);

/// An option of the commands that print a table.
pub const JSON: OptionDef = OptionDef::flag("json", "Print JSON instead of a table");

/// The tables of all measuring commands.
pub const ALL: &[OptionTable] =
    &[WHAT, LENGTH, CPUS, DRAW, REACH, PAIRS, RAILS, RANK, THRESHOLD, RECORD, PERIODS, TAIL, JUDGE];

/// Returns the options of all measuring commands as a pattern's command has them: with its own
/// transports and defaults, and without those that it refuses.
pub fn of_pattern(pattern: &dyn Pattern) -> OptionTable {
    static TABLES: OnceLock<BTreeMap<&str, OptionTable>> = OnceLock::new();
    // One for each pattern of the program, for as long as it runs.
    let tables = TABLES.get_or_init(|| {
        registry::all().iter().map(|pattern| (pattern.name(), new_table(*pattern))).collect()
    });
    tables.get(pattern.name()).copied().unwrap_or_default()
}

/// A pattern's request without options.
struct Usual {
    bound: Bound,
    has_nodes: bool,
    has_many_clients: bool,
}

fn new_table(pattern: &dyn Pattern) -> OptionTable {
    let given = Given::of_tables([pattern.options()].into_iter().chain(ALL.iter().copied()));
    let usual = pattern.request(&given).ok().map(|request| Usual {
        bound: request.usual_bound,
        has_nodes: request.asked.has_nodes(),
        has_many_clients: request.asked.has_many_clients(),
    });
    let common = ALL.iter().copied().flatten().map(|option| match (option.name, &usual) {
        ("transport", _) => transports_of(pattern, option),
        (_, Some(usual)) => with_defaults(option, usual),
        (_, None) => *option,
    });
    common.collect::<Vec<_>>().leak()
}

/// Returns the option that names the transports: others than those that carry the pattern are in no
/// help, and refused in a sentence that names these.
fn transports_of(pattern: &dyn Pattern, option: &OptionDef) -> OptionDef {
    let (carrying, others): (Vec<TransportKind>, Vec<TransportKind>) =
        TransportKind::ALL.iter().partition(|one| pattern.is_carried_by(one.descriptor()));
    let hidden_names: Vec<&str> = others.iter().map(|one| one.name()).collect();
    let usual = carrying.iter().map(|one| one.name()).find(|name| TRANSPORTS.default == Some(name));
    let default = usual.or_else(|| carrying.first().map(|one| one.name()));
    OptionDef { hidden_names: hidden_names.leak(), default, ..*option }
}

/// Returns an option with the defaults of a pattern, hidden where the pattern refuses it.
fn with_defaults(option: &OptionDef, usual: &Usual) -> OptionDef {
    let option = *option;
    match option.name {
        "count" => {
            let count = usual.bound.count;
            let count = count.map(|count| &*format!("{}k without --time", count / 1000).leak());
            OptionDef { default_note: count, ..option }
        }
        "time" => {
            let time = usual.bound.time.map(|time| time.to_string().replace(' ', ""));
            let time = time.map(|time| &*format!("{time} without --count").leak());
            OptionDef { default_note: time, ..option }
        }
        "client-hosts" => OptionDef { is_hidden: !usual.has_many_clients, ..option },
        "hosts" if usual.has_nodes => OptionDef {
            help: "Hosts that take part, such as node1,node2 or 'node[01-32]'; 'here' is this host",
            ..option
        },
        name if usual.has_nodes && place::OF_PAIRS.contains(&name) => {
            OptionDef { is_hidden: true, ..option }
        }
        _ => option,
    }
}

/// What was asked of a pattern, with the options that all patterns have, and which process of a job
/// this is.
pub fn request(
    pattern: &dyn Pattern,
    given: &Given,
) -> Result<(Request, Option<Rank>), UsageError> {
    let request = pattern.request(given)?;
    let (place, rank) = place::place(given)?;
    let place = if request.asked.has_nodes() { place::ranks(place, given)? } else { place };
    let settings = settings_of(given)?;
    let family = settings.family();
    interfaces(given, &place, rank.as_ref(), family)?;
    if !given.is_given("interface") && !place.is_remote() {
        host::loopback(family).map_err(UsageError::of_option("family"))?;
    }
    let remote = request.injected_clock_error.is_some_and(|error| error.is_remote());
    let fits = !remote || place.is_remote();
    ensure!(fits, "--injected-clock-error needs a remote host: use --to HOST as well");
    let request = Request {
        transports: match given.is_given("transport") {
            true => given.choices("transport"),
            false => request.transports,
        },
        perturb: given.flag("perturb"),
        waits: given.choices("wait"),
        is_wait_chosen: given.is_given("wait"),
        threads: match given.is_given("threads") {
            true => each_once(given.counts32("threads")),
            false => request.threads,
        },
        count: given.count("count"),
        time: given.flag("forever").then_some(FOREVER).or_else(|| given.time("time")),
        warmup: given.count("warmup"),
        rounds: given.flag("forever").then_some(1).or_else(|| given.count32("rounds")),
        until: given.read("until", values::percent),
        timeout: given.time("timeout").unwrap_or_default(),
        loss_after: given.time("loss-after").unwrap_or_default(),
        threshold: given.time("threshold").unwrap_or_default(),
        check: given.flag("check"),
        cpus: cpus(given, &place)?,
        settings,
        place,
        seed: seed(given),
        ..request
    };
    request.clone().plan().map(|_| (request, rank))
}

/// The settings of the transport, but for those of which the command compares several.
fn settings_of(given: &Given) -> Result<Settings, UsageError> {
    let mut settings = Settings::default();
    for option in DEFINITIONS.iter() {
        let is_its_own = given.definition(option.name).is_some_and(|own| own.is_list);
        if given.is_given(option.name) && !is_its_own {
            settings.set(option.name, given.text(option.name).unwrap_or_default())?;
        }
    }
    Ok(settings)
}

/// The seed.
pub fn seed(given: &Given) -> u64 {
    given.read("seed", values::seed).unwrap_or_default()
}

/// The interfaces, which have an address here, of the family that was asked for; other hosts check
/// their own, and so do the other ranks of a job, once rank 0 asks them.
pub fn interfaces(
    given: &Given,
    place: &Place,
    rank: Option<&Rank>,
    family: Option<Family>,
) -> Result<Option<Interfaces>, UsageError> {
    let Some(names) = given.get::<Interfaces>("interface") else { return Ok(None) };
    ensure!(
        place.pairs().is_none() || names.client == names.server,
        "--interface with --all-pairs or --bisection is one name for all hosts: use one such as \
         ib0"
    );
    let is_first = rank.is_none_or(|own| own.rank == 0);
    for name in here(place, &names.client, &names.server).filter(|_| is_first) {
        host::address_of(name, family).map_err(UsageError::of_option("interface"))?;
    }
    Ok(Some(names))
}

/// Of what the client and the server have, that of those that may be on this host.
fn here<T>(place: &Place, client: T, server: T) -> impl Iterator<Item = T> {
    let ends = [(Role::Client, client), (Role::Server, server)];
    ends.into_iter().filter(|(role, _)| place.is_here(*role)).map(|(_, end)| end)
}

/// A pair for each thread; none where they are to be chosen.
pub fn cpus(given: &Given, place: &Place) -> Result<Vec<CpuPair>, UsageError> {
    let pairs = given.read("cpus", values::role_cpus).unwrap_or_default();
    let (clients, servers) = pairs.iter().map(|pair| (pair.client, pair.server)).unzip();
    // Another host checks its own.
    for cpus in here::<Vec<u32>>(place, clients, servers) {
        host::check_cpus(&cpus).map_err(UsageError::of_option("cpus"))?;
    }
    Ok(pairs)
}

/// How a run is made, and where its output goes.
pub fn run_options(given: &Given, rank: Option<Rank>) -> Result<RunOptions, UsageError> {
    let directory = given.text("out").map(PathBuf::from);
    // Only rank 0 of a job writes, and another one may come when it has begun to.
    let writes = rank.as_ref().is_none_or(|rank| rank.rank == 0);
    let taken = directory.as_ref().filter(|path| writes && path.symlink_metadata().is_ok());
    refuse_found(taken, |path| {
        let shown = path.display();
        format!("--out: '{shown}' exists already and is never overwritten: use a new directory")
    })?;
    let (clock, json) = (given.choice("clock"), given.flag("json"));
    let judge = match given.definition("baseline") {
        Some(_) => judge_options(given)?,
        None => JudgeOptions::default(),
    };
    ensure!(
        judge.save_as.is_none() || !json || directory.is_some(),
        "--save-baseline needs a run directory, and --json makes none: use --out DIR as well"
    );
    let (live, display) = (given.flag("live"), Display::of(given));
    let (rank, report_every) = (rank.map(Box::new), None);
    let causes = false;
    let yes = given.flag("yes");
    Ok(RunOptions { clock, directory, json, live, report_every, causes, yes, judge, display, rank })
}

/// Shortest time between two lines of a running round: the controller looks that often without
/// being noticed.
const SHORTEST_PERIOD: Duration = Duration::from_secs(1);

/// Refuses lines of a running round that nobody here could write.
fn check_periods(request: &Request, every: Option<Duration>) -> Result<(), UsageError> {
    let Some(every) = every else { return Ok(()) };
    ensure!(every >= SHORTEST_PERIOD, "--report-every: use 1s or more");
    let plan = request.clone().plan()?;
    let fits = plan.concurrent.is_empty() && request.place.pairs().is_none();
    ensure!(fits, "--report-every shows one case at a time: leave out what runs at the same time");
    refuse_found(request.simulated(), |transport| {
        format!("{transport} simulates time and does not support --report-every: leave it out")
    })?;
    let is_slow = !request.place.is_here(Role::Client) && every < REPORT;
    refuse_found(Some(REPORT.as_secs()).filter(|_| is_slow), |seconds| {
        format!(
            "--report-every: a client on another host reports every {seconds} s: use \
             {seconds}s or more, or run wiregauge there with --to"
        )
    })
}

/// How a run is judged.
///
/// # Errors
/// A file of verdicts has no limit to judge, or cannot be written where it is to be.
pub fn judge_options(given: &Given) -> Result<JudgeOptions, UsageError> {
    let judge = JudgeOptions {
        baseline: given.get("baseline"),
        save_as: given.get("save-baseline"),
        limits: given.read_list("fail-if", |text| text.parse().map(|limit| (text.into(), limit))),
        strict: given.flag("strict"),
        junit: given.text("junit").map(PathBuf::from),
        markdown: given.text("markdown").map(PathBuf::from),
    };
    ensure!(
        judge.junit.is_none() || !judge.limits.is_empty(),
        "--junit: there is no limit to judge, and a file without tests passes: add --fail-if"
    );
    for (option, file) in [("junit", &judge.junit), ("markdown", &judge.markdown)] {
        check_folder(option, file.as_deref())?;
    }
    Ok(judge)
}

/// Refuses a file in a folder that does not exist, before a run whose verdict would be lost.
fn check_folder(option: &str, file: Option<&Path>) -> Result<(), UsageError> {
    let folder = file.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    refuse_found(folder.filter(|folder| !folder.is_dir()), |folder| {
        format!("--{option}: there is no folder '{}': make it, or name another", folder.display())
    })
}

/// The command that measures what was asked of a pattern.
pub fn measure(pattern: &dyn Pattern, given: &Given) -> Result<Command, UsageError> {
    // A wrong request is refused before a wrong place for what it would give.
    let (request, rank) = request(pattern, given)?;
    // Another host has its own, and a study leaves out the cases of those that this kernel lacks.
    if !request.place.is_remote() {
        for name in given.list::<String>("congestion") {
            congestion_available(&name).map_err(UsageError::of_option("congestion"))?;
        }
    }
    place::refuse_other_nodes(&request.place, given)?;
    let report_every = given.time("report-every").map(|every| every.duration());
    check_periods(&request, report_every)?;
    let causes = given.flag("causes");
    let options = RunOptions { report_every, causes, ..run_options(given, rank)? };
    Ok(Command::Measure { request: Box::new(request), options })
}
