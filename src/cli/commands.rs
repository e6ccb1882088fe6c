//! The commands that measure no pattern: what each takes, and what it asks for.

use super::ab::AB;
use super::command_def::{CommandDef, Group, Typed};
use super::common_options::{self as common, CLOCK, CPUS, DRAW, JSON, JUDGE, RANK, REACH, RECORD};
use super::display::{ALL_FIGURES, DISPLAY, Display, OF_REPORT};
use super::doctor;
use super::explain::EXPLAIN;
use super::impact::IMPACT;
use super::place::Others;
use super::study::RUN;
use super::{ClockOptions, Command, HostsOptions, RunOptions, place, testbed, values};
use crate::host::{self, ip_network::Network};
use crate::options::{Given, OptionDef, UsageError, names, refuse, refuse_found, under};
use crate::plan::Place;
use crate::remote::daemon::caps::Caps;
use crate::report::export::{Format, MOST_MESSAGES, Observable};
use crate::report::markup::Markup;
use crate::report::several::MOST_RECORDS;
use crate::stats::limit::Figure;
use crate::transport::{TransportKind, settings};
use crate::units::{InjectedClockError, MessageRate};
use std::path::Path;

/// All of them but the survey.
pub const OTHERS: &[CommandDef] = &[
    RUN,
    LIST,
    REPORT,
    RECOVER,
    EXPORT,
    AB,
    EXPLAIN,
    IMPACT,
    COMPARE,
    HISTORY,
    SELFTEST,
    CLOCKS,
    HOSTS,
    AGENT,
    PAIR,
    NOISE,
    doctor::DOCTOR,
    testbed::TESTBED,
];

/// Those that wiregauge itself starts.
pub const INTERNAL: &[CommandDef] = &[RUN_ROLE, DIAL_AGENT];

/// The same as no command.
pub const SURVEY: CommandDef = CommandDef {
    group: Group::Measure,
    about: "Measure every transport that works on this machine (the same as no command)",
    tables: &[CPUS, DRAW, RECORD, JUDGE],
    ..CommandDef::new("survey", |typed| {
        Ok(Command::Survey {
            cpus: common::cpus(&typed.given, &Place::default())?,
            seed: common::seed(&typed.given),
            options: common::run_options(&typed.given, None)?,
        })
    })
};

const LIST: CommandDef = CommandDef {
    group: Group::Check,
    about: "List transports, what each can do, and why one is not available",
    tables: &[&[JSON], DISPLAY],
    ..CommandDef::new("list", |typed| Ok(Command::List(typed)))
};

const REPORT: CommandDef = CommandDef {
    about: "Print tables and write the HTML page again, of one record or several together",
    examples: "
  wiregauge report wiregauge-runs/*-latency
  wiregauge report wiregauge-runs/20261121T055243Z-latency --svg figures
  wiregauge report before after --table latex

Several records are compared with the first, in one page; at most 8.",
    operands: &[OptionDef::path("DIR", "Run directories").required().list()],
    tables: &[
        &[
            OptionDef::flag("no-html", "Do not write the HTML page"),
            OptionDef::path("svg", "Directory for every plot of the page as an SVG file"),
            OptionDef::choice::<Markup>("table", "Print the result tables alone, as")
                .metavar("FORMAT"),
            OptionDef::path("out", "Page of several records")
                .default_note("comparison.html in the first directory"),
        ],
        OF_REPORT,
    ],
    ..CommandDef::new("report", |typed| {
        let dirs = typed.operands("DIR");
        dirs.iter().try_for_each(|dir| check_run_directory(Path::new(dir)))?;
        ensure!(
            dirs.len() <= MOST_RECORDS,
            UsageError(format!(
                "{} records do not fit one page: name at most {MOST_RECORDS}",
                dirs.len()
            ))
        );
        ensure!(
            dirs.len() > 1 || typed.given.text("out").is_none(),
            UsageError("--out is the page of several records: name two or more".into())
        );
        ensure!(
            !typed.given.flag("no-html") || typed.given.text("out").is_none(),
            UsageError("--out names the page that --no-html leaves out: give one of them".into())
        );
        Ok(Command::Report(typed))
    })
};

const RECOVER: CommandDef = CommandDef {
    about: "Complete the record of a run that was killed, or that ran out of disk space",
    examples: "
  wiregauge recover wiregauge-runs/.20261121T055243Z-latency.partial-4711

Exit codes: 0 the record was written, 2 nothing to recover, or damaged, 3 it could not be written
(DIR can be recovered again) or not be printed (the record is there).",
    operands: &[OptionDef::path("DIR", "Directory that the run left").required()],
    tables: &[OF_REPORT],
    ..CommandDef::new("recover", |typed| Ok(Command::Recover(typed)))
};

const EXPORT: CommandDef = CommandDef {
    about: "Write a run's samples or figures, in a format that other programs read",
    examples: "
  wiregauge export wiregauge-runs/20261121T055243Z-latency --format csv > samples.csv
  wiregauge export DIR --format parquet --out samples.parquet --with-warmup
  wiregauge export DIR --format csv --metric response,service --run 2 --round 0,1
  wiregauge export DIR --format trace --run 0 --around 1000 --out trace.json",
    operands: &[OptionDef::path("DIR", "Run directory").required()],
    tables: &[&[
        OptionDef::choice::<Format>("format", "Format").metavar("FORMAT").required(),
        OptionDef::path("out", "New file to write").default_note("stdout"),
        OptionDef::choice::<Observable>("metric", "Metrics, one row for each value")
            .metavar("NAMES")
            .list()
            .default_note("the main one of each run")
            .excludes(&["stamps"]),
        OptionDef::flag("stamps", "One row for each message, with its raw timestamps"),
        OptionDef::count("run", "Only these runs of the record, by number").list(),
        OptionDef::count("round", "Only these rounds of each run, by number").list(),
        OptionDef::flag("with-warmup", "Include the warm-up, of which no figure is made"),
        OptionDef::count("around", "Only this many messages around the slowest, of a trace")
            .limits(1, MOST_MESSAGES),
    ]],
    ..CommandDef::new("export", |typed| {
        check_run_directory(&typed.path("DIR"))?;
        Ok(Command::Export(typed))
    })
};

const COMPARE: CommandDef = CommandDef {
    about: "Show the difference of two runs, and judge limits by its interval",
    examples: "
  wiregauge compare before after --fail-if 'half_rtt.p99>+10%' --fail-if 'bandwidth<-5%'
  wiregauge compare runs@transport=tcp runs@transport=shm --fail-if 'half_rtt.max>1ms'
  wiregauge compare after --baseline main --fail-if 'half_rtt.p99>+10%'

Exit codes: 0 all limits held, 1 one was exceeded, 3 B is incomplete, 5 inconclusive.",
    operands: &[
        OptionDef::parsed::<String>(
            "A",
            "Baseline run directory, or some of its runs: DIR@transport=tcp,wait=busy,size=64; \
             with --baseline: B",
        )
        .required(),
        OptionDef::parsed::<String>("B", "Run directory to judge, or some of its runs"),
    ],
    tables: &[JUDGE, &[ALL_FIGURES, JSON]],
    ..CommandDef::new("compare", |typed| {
        let is_named = typed.given.is_given("baseline");
        ensure!(
            typed.operands("B").is_empty() == is_named,
            "compare needs two sides: name two run directories, or one and --baseline NAME"
        );
        let json = typed.given.flag("json");
        let judge = common::judge_options(&typed.given)?;
        let display = Display { verbose: typed.given.flag("verbose"), ..Display::default() };
        let options = RunOptions { json, judge, display, ..RunOptions::default() };
        Ok(Command::Compare { options, typed })
    })
};

const HISTORY: CommandDef = CommandDef {
    about: "Show the records of a folder over time, and where the level of a figure changed",
    examples: "
  wiregauge history
  wiregauge history nightly --figure half_rtt.p99,bandwidth",
    operands: &[OptionDef::path("DIR", "Folder of run directories").default_note("wiregauge-runs")],
    tables: &[&[
        OptionDef::parsed::<Figure>(
            "figure",
            "Figures to follow, such as half_rtt.p99 or bandwidth",
        )
        .metavar("FIGURES")
        .list()
        .default_note("p50 and p99 of what answers a run's question, or its rate"),
        ALL_FIGURES,
        JSON,
    ]],
    ..CommandDef::new("history", |typed| Ok(Command::History(typed)))
};

const SELFTEST: CommandDef = CommandDef {
    group: Group::Check,
    about: "Check the instrument itself against known answers",
    tables: &[&[JSON]],
    ..CommandDef::new("selftest", |typed| Ok(Command::Selftest(typed)))
};

/// The interfaces of a command about this host and others.
const INTERFACE: OptionDef = settings::INTERFACE
    .help("Network interface, such as ib0, or this host's and the remote one's: ib0,ib1")
    .default_note("that of the route ssh took");

const CLOCKS: CommandDef = CommandDef {
    group: Group::Hosts,
    about: "Compare this host's clock with remote clocks: offset, drift and their error bounds",
    examples: "
  wiregauge clocks --to node07 --time 100s",
    tables: &[
        REACH,
        RANK,
        &[
            OptionDef::duration("time", "Duration").default("10s").common(),
            INTERFACE,
            CLOCK.help("Clock of both hosts"),
            OptionDef::parsed::<InjectedClockError>(
                "injected-clock-error",
                "Inject a known error into the remote clock, to test that it is detected",
            )
            .metavar("SPEC")
            .hidden(),
        ],
        RECORD,
    ],
    ..CommandDef::new("clocks", |Typed { given, .. }| {
        let Others { hosts, rank, .. } = place::others(&given, "clocks")?;
        let place = hosts.first().cloned().map_or_else(Place::default, Place::to);
        Ok(Command::Clocks(Box::new(ClockOptions {
            hosts,
            time: given.time("time").unwrap_or_default(),
            interface: common::interfaces(&given, &place, rank.as_ref(), None)?,
            injected_error: given.get("injected-clock-error"),
            options: common::run_options(&given, rank)?,
        })))
    })
};

const HOSTS: CommandDef = CommandDef {
    group: Group::Hosts,
    about: "Check remote hosts before a run: reachable, data path, version, clock, transports",
    examples: "
  wiregauge hosts --hosts node1,node2,node3
  wiregauge hosts --hosts node1,node2 --interface ib0",
    tables: &[REACH, RANK, &[INTERFACE, JSON]],
    ..CommandDef::new("hosts", |Typed { given, .. }| {
        let Others { hosts, own_here, rank } = place::others(&given, "hosts")?;
        let place = hosts.first().cloned().map_or_else(Place::default, Place::to);
        Ok(Command::Hosts(Box::new(HostsOptions {
            hosts,
            interfaces: common::interfaces(&given, &place, rank.as_ref(), None)?,
            own_interface: own_here.get("interface").cloned(),
            json: given.flag("json"),
            rank: rank.map(Box::new),
        })))
    })
};

const LIMITS: &str = "Limits, whatever a controller asks for";

const AGENT: CommandDef = CommandDef {
    group: Group::Hosts,
    about: "Run an agent daemon, for hosts without ssh; only paired controllers can use it",
    examples: "
  wiregauge agent --listen 10.1.0.7 --allow 10.1.0.0/16 --longest-run 10min
  wiregauge agent --pair",
    tables: &[
        &[
            OptionDef::text(
                "listen",
                |text| values::listening(text).map(drop),
                "Address of this host to listen on, such as 10.1.0.7, 10.1.0.7:7425 or [::]:7425",
            )
            .metavar("ADDRESS")
            .default("127.0.0.1:7425"),
            OptionDef::flag(
                "pair",
                "Print a one-time secret, with which a controller can pair for 10 min, and exit",
            ),
            OptionDef::parsed::<Network>(
                "allow",
                "Accept controllers at these addresses and networks only, such as \
                 10.1.0.0/16,10.2.0.7",
            )
            .metavar("NETWORKS")
            .list(),
            OptionDef::path("identity", "Directory of the agent's identity and its controllers")
                .metavar("DIR")
                .default_note(
                    "WIREGAUGE_CONFIG, or wiregauge in the user's configuration directory",
                ),
        ],
        &under(
            LIMITS,
            [
                OptionDef::duration("longest-run", "Maximum duration of a round").default("1h"),
                OptionDef::parsed::<MessageRate>(
                    "highest-rate",
                    "Maximum message rate; rounds without a rate limit are then refused",
                )
                .metavar("RATE")
                .default_note("any"),
                OptionDef::size("most-memory", "Maximum memory of a round").default("2GiB"),
                OptionDef::size("total-memory", "Maximum memory of all rounds that run at once")
                    .default("4GiB"),
                OptionDef::parsed::<Network>(
                    "peers",
                    "Networks that rounds and the pre-flight may reach, such as \
                     10.1.0.9,10.2.0.0/16",
                )
                .metavar("NETWORKS")
                .list()
                .default_note("the controller's address, if it is on another host"),
                OptionDef::parsed::<Network>(
                    "bind",
                    "Addresses here that rounds and the pre-flight may use, such as \
                     10.1.0.7 or 10.1.0.0/16",
                )
                .metavar("NETWORKS")
                .list()
                .default_note("the one that the controller connected to"),
                OptionDef::text(
                    "ports",
                    |text| values::ports(text).map(drop),
                    "Ports of tcp, udp, homa, clock exchanges and the pre-flight, such as \
                     7500-7599",
                )
                .metavar("A-B")
                .default_note("any"),
                OptionDef::choice::<TransportKind>("transports", "Allowed transports")
                    .metavar("NAMES")
                    .list()
                    .default_note("all that work between hosts"),
                OptionDef::flag(
                    "kernel-stamps",
                    "Give controllers stamps of this host's kernel, which carry names of other \
                     processes, for explain and --causes",
                ),
            ],
        ),
    ],
    ..CommandDef::new("agent", |typed| {
        check_transports(&typed.given)?;
        Ok(Command::Agent(typed))
    })
};

const AGENT_ADDRESS: OptionDef = OptionDef::text(
    "HOST[:PORT]",
    |text| values::agent_address(text).map(drop),
    "Agent's host, such as node07, node07:7425 or [2001:db8::7]:7425",
)
.required();

const PAIR: CommandDef = CommandDef {
    group: Group::Hosts,
    about: "Pair with an agent, by the secret that `wiregauge agent --pair` prints there",
    examples: "
  wiregauge pair node07",
    operands: &[AGENT_ADDRESS],
    ..CommandDef::new("pair", |typed| {
        agent_address(&typed).map(|(host, port)| Command::Pair(host, port))
    })
};

const NOISE: CommandDef = CommandDef {
    group: Group::Check,
    about: "Measure CPU noise: the gaps that a spinning core sees; --together: what causes them",
    examples: "
  wiregauge noise --cpus 2,3 --time 10s
  wiregauge noise --together --time 1h

--together watches all CPUs on one time line: which interrupt or task took which CPU, what was
periodic, and what stopped all CPUs at once. It keeps a record with a picture; names need root.",
    tables: &[
        &[
            OptionDef::text(
                "cpus",
                |text| values::cpu_list(text).map(drop),
                "CPUs to measure, such as 0-3,6",
            )
            .metavar("LIST")
            .default_note("all that this process may use"),
            OptionDef::duration("time", "Duration").default("1s"),
            OptionDef::choice::<crate::clock::Source>("clock", "Clock that the loop reads")
                .default_note("tsc where it is invariant"),
            OptionDef::flag("together", "Find the causes of gaps, on all CPUs at the same time")
                .common(),
        ],
        RECORD,
    ],
    ..CommandDef::new("noise", |typed| {
        let given = &typed.given;
        let cpus = given.read("cpus", values::cpu_list).unwrap_or_default();
        host::check_cpus(&cpus).map_err(UsageError::of_option("cpus"))?;
        ensure!(!given.flag("live"), "--live shows rounds, and noise has none: leave it out");
        ensure!(
            given.flag("together") || !given.is_given("out"),
            "--out keeps a record, and only --together makes one: use both, or --json"
        );
        let options = Box::new(common::run_options(given, None)?);
        Ok(Command::Noise { options, typed })
    })
};

const RUN_ROLE: CommandDef = CommandDef {
    about: "Run the roles that the controller assigns (started by wiregauge itself)",
    is_hidden: true,
    ..CommandDef::new("run-role", |_| Ok(Command::RunRole))
};

const DIAL_AGENT: CommandDef = CommandDef {
    about: "Carry a control channel to an agent (started by wiregauge itself)",
    is_hidden: true,
    operands: &[AGENT_ADDRESS],
    ..CommandDef::new("dial-agent", |typed| {
        agent_address(&typed).map(|(host, port)| Command::Dial(host, port))
    })
};

/// Refuses an agent's transports that connect no hosts.
fn check_transports(given: &Given) -> Result<(), UsageError> {
    let reaching = Caps::default().transports;
    let typed = given.choices("transports");
    refuse_found(typed.iter().find(|one| !reaching.contains(one)), |local| {
        format!("--transports: {local} does not connect hosts: use {}", names(&reaching))
    })
}

fn agent_address(typed: &Typed) -> Result<(String, u16), UsageError> {
    let text = typed.operand("HOST[:PORT]").unwrap_or_default();
    values::agent_address(&text).map_err(UsageError)
}

/// Whether a path may be a run directory. Its content is for the reader to judge.
fn check_run_directory(path: &Path) -> Result<(), UsageError> {
    let wrong = match path.metadata() {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => "is not a directory".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        Err(error) => format!("cannot be read ({error})"),
    };
    let path = path.display();
    refuse(format!("'{path}' {wrong}: use a run directory, such as those in wiregauge-runs"))
}
