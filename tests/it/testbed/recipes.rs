//! Commands of the documents that change a machine are followed in an emulated one, by the
//! documents' own words.

use super::{MACHINE_LIMIT, Scratch, said, turn, wiregauge};
use serde_json::Value;
use std::fs;
use std::path::Path;
use wiregauge_test_support::bounded::start;

/// Words that replace a document's: the machine has CPUs 0 and 1, and little time.
const HERE: [(&str, &str); 2] = [
    ("echo 2-3 >", "echo 1 >"),
    (
        "wiregauge latency --transport shm",
        "\"$0\" latency --transport shm --wait block --count 50 --rounds 1 --json >/out/kept.json",
    ),
];

/// Parts of lines that change the machine.
const CHANGES: [&str; 4] = ["> /sys/", "> /proc/", "mkdir /sys/", "sysctl -w"];

/// The blocks of code of a document.
fn blocks(text: &str) -> Vec<String> {
    text.split("```")
        .skip(1)
        .step_by(2)
        .map(|block| block.split_once('\n').unwrap().1.into())
        .collect()
}

/// Returns whether a block changes the machine by other means than wiregauge.
fn is_recipe(block: &str) -> bool {
    let lines = block.lines().filter(|line| !line.starts_with("wiregauge "));
    lines.flat_map(|line| CHANGES.map(|change| line.contains(change))).any(|changes| changes)
}

/// The blocks of all documents that change the machine, each with its document.
fn recipes() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = pages.chain([root.join("README.md"), root.join("METHOD.md")]);
    let pages = pages.filter(|path| path.extension().is_some_and(|kind| kind == "md"));
    let mut found = Vec::new();
    for page in pages {
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        let own = blocks(&fs::read_to_string(&page).unwrap())
            .into_iter()
            .filter(|block| is_recipe(block));
        found.extend(own.map(|block| (name.clone(), block)));
    }
    found.sort();
    found
}

#[test]
fn each_recipe_of_the_documents_that_changes_a_machine_can_be_followed() {
    let recipes = recipes();
    let pages: Vec<&str> = recipes.iter().map(|(page, _)| page.as_str()).collect();
    assert!(pages.contains(&"doctor.md") && pages.contains(&"evidence.md"), "{pages:?}");
    let Some(_turn) = turn() else { return };
    let scratch = Scratch::new("recipes");
    let out = scratch.0.to_str().unwrap();
    let followed = recipes.iter().map(|(page, block)| {
        let block =
            HERE.iter().fold(block.clone(), |block, (words, here)| block.replace(words, here));
        // Each in a shell of its own, as a reader would.
        let block = block.replace('\'', "'\\''");
        format!("echo '== {page}'; sh -exc '{block}' \"$0\"\n")
    });
    let script = format!(
        "set -e\n{}cat /sys/fs/cgroup/measure/cpuset.cpus.partition\n",
        followed.collect::<String>()
    );
    let program = env!("CARGO_BIN_EXE_wiregauge");
    let mut command = wiregauge(&["--timeout", "240s", "--out", out, "--", "sh", "-c"]);
    let ended = start(command.args([&script, program])).end(MACHINE_LIMIT);
    let (stdout, stderr) = said(&ended);
    assert_eq!(ended.status.code(), Some(0), "{stdout}{stderr}");
    assert!(stdout.ends_with("isolated\n"), "{stdout}{stderr}");
    // By the limits of version 2, the shell that measured was in the group.
    let record: Value =
        serde_json::from_slice(&fs::read(scratch.0.join("kept.json")).unwrap()).unwrap();
    assert_eq!(record["environment"]["container"]["cpuset_cpus"], serde_json::json!([1]));
    assert_eq!(record["complete"], Value::Bool(true), "{}", record["faults"]);
}
