//! What the files of published figures promise, and figures of them that are known.

use super::*;

fn shipped(name: &str) -> Publication {
    let text = shipped::text(&shipped::REFERENCES, name);
    parse(&format!("{name}.toml"), text).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn asked(table: &str, column: &str, row: Option<&str>) -> ReferenceAsked {
    let text = |text: &str| (text.to_string(), 0..0);
    ReferenceAsked {
        file: text("gamess"),
        table: text(table),
        column: text(column),
        row: row.map(text),
        beside: None,
        place: 0..0,
    }
}

fn value(publication: &Publication, table: &str, column: &str, size: u64) -> Option<f64> {
    let table = publication.tables.iter().find(|known| known.name == table).unwrap();
    let at = table.columns.iter().position(|known| known == column).unwrap();
    let row = table.rows.iter().find(|row| row.key == Key::Size(Bytes(size))).unwrap();
    row.values[at]
}

#[test]
fn figures_are_those_that_were_published() {
    let gamess = shipped("gamess");
    for (table, column, size, figure) in [
        ("send-latency-rc", "SDR", 4, 0.92),
        ("send-latency-rc", "FDR", 32_768, 7.73),
        ("send-latency-rc", "FDR", 8 << 20, 1428.55),
        ("send-latency-uc", "FDR", 32_768, 7.54),
        ("send-latency-uc", "QDR", 8 << 20, 2130.79),
        ("send-latency-ud", "SDR", 4096, 6.92),
        ("send-latency-ud", "FDR", 4096, 3.39),
        ("ipoib-udp-throughput-datagram", "Hpcbench", 32_768, 10_446.27),
        ("ipoib-udp-throughput-connected", "Netperf", 4, 11.76),
        ("ipoib-latency-datagram", "UDP Hpcbench", 4, 7.37),
        ("ipoib-latency-connected", "TCP Qperf", 32_768, 53.13),
    ] {
        assert_eq!(value(&gamess, table, column, size), Some(figure), "{table} {column} {size}");
    }
    assert_eq!(value(&gamess, "ipoib-udp-throughput-datagram", "Hpcbench", 4), None);
    let potter = shipped("potter");
    for (table, column, figure) in [
        ("event-polling", "RC", 3608.0),
        ("event-polling", "UD", 3389.0),
        ("event-polling-other", "UD", 3521.0),
        ("busy-polling", "UC", 1251.0),
        ("submit-against-send-copy", "send", 726.0),
        ("inline", "inline", 906.0),
        ("unsignalled", "unsignalled", 786.0),
    ] {
        assert_eq!(value(&potter, table, column, 32), Some(figure), "{table} {column}");
    }
}

fn machine(link_rate: Result<String, String>) -> Machine {
    Machine { link_rate, ipoib_mode: Err("no IPoIB interface is measured".into()) }
}

#[test]
fn figures_of_rows_with_names_come_in_our_units_and_at_their_quantile() {
    let nothing = machine(Err("no link".to_owned()));
    for (name, table, column, row, metric, quantile, figure) in [
        ("villas", "missed-by-timer", "missed", "timerfd", "missed", 0.5, 0.0068),
        ("villas", "missed-at-low-rates", "missed", "100 Hz", "missed", 0.5, 0.08),
        ("villas", "node-types", "median", "shmem", "one_way", 0.5, 300.0),
        ("ramcloud", "throughput", "highest", "all pools", "message_rate", 0.5, 390_217.0),
        ("ramcloud", "completions", "mean", "all pools", "completions_per_poll", 0.5, 3.0),
        ("homa", "short-p50", "Homa", "W2", "short", 0.5, 30_900.0),
        ("homa", "short-p99", "DCTCP", "W3", "short", 0.99, 6_361_700.0),
        ("homa", "short-p99", "TCP", "W5", "short", 0.99, 4_360_700.0),
        ("homa", "best-slowdown", "TCP", "W5", "slowdown", 0.5, 15.27),
        ("homa", "c6620-short-p99", "W4", "TCP, no qdisc", "short", 0.99, 1_271_600.0),
    ] {
        let found = shipped(name).figures(&asked(table, column, Some(row)), metric, &nothing);
        let found = found.unwrap().unwrap();
        assert_eq!((found.quantile, found.points.len()), (quantile, 1), "{name} {table}");
        assert!((found.points[0].value / figure - 1.0).abs() < 1e-12, "{name} {table} {row}");
    }
}

#[test]
fn tables_rise_with_the_size_and_are_whole() {
    for (name, tables, figures) in [
        ("dabc", 3, 88),
        ("gamess", 10, 452),
        ("gsi-mpi", 6, 7),
        ("homa", 11, 82),
        ("potter", 14, 53),
        ("ramcloud", 3, 4),
        ("villas", 10, 15),
    ] {
        let publication = shipped(name);
        assert_eq!(publication.tables.len(), tables, "{name}");
        let all = publication.tables.iter().flat_map(|table| &table.rows);
        let count = all.flat_map(|row| &row.values).flatten().count();
        assert_eq!(count, figures, "{name}");
        for table in &publication.tables {
            let sizes: Vec<u64> = table
                .rows
                .iter()
                .filter_map(|row| match &row.key {
                    Key::Size(size) => Some(size.0),
                    Key::Name(_) => None,
                })
                .collect();
            assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]), "{name} {}", table.name);
            assert!(sizes.is_empty() || sizes.len() == table.rows.len(), "{name} {}", table.name);
        }
    }
}

#[test]
fn figures_come_in_our_units_from_the_column_of_the_link() {
    let gamess = shipped("gamess");
    let link = |rate: &str| machine(Ok(rate.to_owned()));
    let wanted = asked("send-latency-rc", LINK_RATE, None);
    let found = gamess.figures(&wanted, "half_rtt", &link("QDR")).unwrap().unwrap();
    assert_eq!(found.name, "Gamess 2016, Table 2 QDR");
    assert_eq!(found.points.len(), 22);
    assert_eq!(found.points[0], Point { size: Some(Bytes(4)), value: 0.82 * 1e3 });
    let none = gamess.figures(&wanted, "half_rtt", &link("EDR")).unwrap().unwrap_err();
    assert_eq!(none, "Gamess 2016, Table 2 is not drawn: it has no column for a link of EDR");
    let why = machine(Err("this machine has no RDMA link".to_owned()));
    let none = gamess.figures(&wanted, "half_rtt", &why).unwrap().unwrap_err();
    assert_eq!(none, "Gamess 2016, Table 2 is not drawn: this machine has no RDMA link");
    let peak = gamess.figures(&asked("peak-bandwidth", "FDR", Some("RC")), "bandwidth", &why);
    let point = peak.unwrap().unwrap().points[0];
    assert_eq!(point, Point { size: None, value: 50.18 * 1e9 / 8.0 });
}

#[test]
fn what_a_study_asks_wrongly_is_refused_with_what_is_allowed() {
    let gamess = shipped("gamess");
    let refusal = |wanted: ReferenceAsked, metric: &str| {
        gamess.figures(&wanted, metric, &machine(Ok("FDR".to_owned()))).unwrap_err().0
    };
    for (wanted, metric, says) in [
        (asked("x", "FDR", None), "rtt", "unknown table 'x': use signal-rates, data-"),
        (asked("send-latency-rc", "EDR", None), "half_rtt", "unknown column 'EDR': use SDR, DDR"),
        (asked("send-latency-rc", "FDR", None), "one_way", "has half_rtt, the graph shows one_way"),
        (asked("send-latency-rc", "FDR", Some("x")), "half_rtt", "unknown row 'x': use none"),
        (asked("peak-bandwidth", "FDR", None), "bandwidth", "have names: set row to one of RC"),
        (asked("signal-rates", "FDR", None), "bandwidth", "has no metric of wiregauge"),
    ] {
        let sentence = refusal(wanted, metric);
        assert!(sentence.contains(says), "{sentence}");
    }
}

#[test]
fn a_file_is_read_strictly() {
    let good = "name = \"n\"\nsource = \"s\"\nplace = \"p\"\nsystem = \"y\"\n[[table]]\n\
                name = \"t\"\nat = \"a\"\nwhat = \"w\"\nunit = \"us\"\ncolumns = [\"c\", \"d\"]\n\
                rows = [[4, 1.5, nan]]\n";
    assert_eq!(parse("r.toml", good).unwrap().tables[0].rows[0].values, [Some(1.5), None]);
    for (from, to, says) in [
        ("unit = \"us\"", "unit = \"ms\"", "r.toml:9:8: unknown unit 'ms': use ns, us"),
        ("[[4, 1.5, nan]]", "[[4, 1.5]]", "r.toml:11:9: a row has 1 figures, and the table 2"),
        ("[[4, 1.5, nan]]", "[]", "r.toml:11:8: a table has columns and 1 to 1000 rows"),
        ("[[4, 1.5, nan]]", "[[4.5, 1, 1]]", "a size is a whole number of bytes"),
        ("[[4, 1.5, nan]]", "[[4, -1, 1]]", "a figure is above 0, or nan if it is missing"),
        ("[[4, 1.5, nan]]", "[[4, inf, 1]]", "a figure is above 0, or nan if it is missing"),
        ("what = \"w\"\n", "", "r.toml:5:1: a table needs 'what'"),
        ("what = \"w\"\n", "what = \"w\"\nwhy = \"w\"\n", "r.toml:9:1: a table has no key 'why'"),
    ] {
        let sentence = parse("r.toml", &good.replace(from, to)).unwrap_err().to_string();
        assert!(sentence.contains(says), "{sentence}");
    }
}
