//! `docs/options.md` is made from the tables of options: `UPDATE_DOCS=1 cargo test --test
//! options_doc` writes it again.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use wiregauge::cli::COMMON_OPTIONS;
use wiregauge::options::OptionDef;
use wiregauge::pattern::registry;
use wiregauge::transport::TransportKind;

const HEAD: &str = "\
# Options

Made from the tables of options (`UPDATE_DOCS=1 cargo test --test it options_doc::` writes it
again). `wiregauge help NAME` prints the same for a command or a transport. In a study
([studies.md](studies.md)) an option is the same word without dashes.

";

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)
}

/// A row of the table: what it takes, the default, what it means.
fn row(option: &OptionDef) -> String {
    let values = match (option.choices(), option.shown_limits()) {
        (Some(names), _) => names.join(", "),
        (None, Some(limits)) => format!("{}: {limits}", option.metavar),
        (None, None) => option.metavar.to_string(),
    };
    let list = if option.is_list { "; list" } else { "" };
    let default = option.default.or(option.default_note).unwrap_or_default();
    let escaped = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
    let cells = [&*(values + list), default, option.help].map(escaped);
    let cells: String = cells.iter().map(|cell| format!(" {cell} |")).collect();
    format!("| `--{}` |{cells}\n", option.name)
}

fn table<'a>(title: &str, about: &str, options: impl Iterator<Item = &'a OptionDef>) -> String {
    let rows: String = options.filter(|option| !option.is_hidden).map(row).collect();
    match rows.as_str() {
        "" => format!("### {title}\n\n{about}. It has no options of its own.\n\n"),
        rows => format!(
            "### {title}\n\n{about}.\n\n| option | value | default | meaning |\n|---|---|---|---|\n\
             {rows}\n"
        ),
    }
}

fn document() -> String {
    let mut text = HEAD.to_string();
    text.push_str("## Commands that measure\n\n");
    let common = COMMON_OPTIONS.iter().copied().flatten();
    text.push_str(&table(
        "All of them",
        "Beside their own options and those of transports",
        common,
    ));
    for pattern in registry::all() {
        text.push_str(&table(pattern.name(), pattern.about(), pattern.options().iter()));
    }
    text.push_str("## Transports\n\n");
    for transport in TransportKind::ALL {
        let descriptor = transport.descriptor();
        text.push_str(&table(transport.name(), descriptor.about, descriptor.settings.iter()));
    }
    text.truncate(text.trim_end().len());
    writeln!(text).unwrap();
    text
}

#[test]
fn the_page_of_options_is_that_of_the_definitions() {
    let path = file("options.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, document()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == document(), "docs/options.md differs: UPDATE_DOCS=1 writes it again");
}

/// The options in a page's sentences are options that there are.
#[test]
fn pages_name_no_option_that_there_is_not() {
    let text = document();
    let known: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("| `--")?.split('`').next()).collect();
    for page in ["transports.md", "rdma.md", "load.md", "rpc.md", "stream.md", "threads.md"] {
        let text = std::fs::read_to_string(file(page)).unwrap();
        // Options of other programs stand on lines that name those, or beside ours in a table.
        let lines = text
            .lines()
            .filter(|line| ["perftest", "--use", "cargo"].iter().all(|of| !line.contains(of)))
            .map(|line| match line.strip_prefix('|') {
                Some(row) => row.split('|').next().unwrap_or_default(),
                None => line,
            });
        for word in lines.flat_map(|line| line.split(['`', ' ', '(', ')', ',', '=', '\''])) {
            let Some(name) = word
                .strip_prefix("--")
                .map(|name| name.trim_end_matches(|c: char| !c.is_alphanumeric()))
            else {
                continue;
            };
            let is_name = name.starts_with(|c: char| c.is_ascii_lowercase());
            assert!(!is_name || known.contains(name), "{page}: there is no option --{name}");
        }
    }
}
