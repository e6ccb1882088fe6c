//! What the CI templates of `ci/` run, in a made-up environment: the steps are taken from the files
//! themselves, so that what is tested is what a job does.

use crate::support::Scratch;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use wiregauge_test_support::bounded::output;

const ACTION: &str = include_str!("../../ci/action.yml");
const GITLAB: &str = include_str!("../../ci/gitlab.yml");

/// Columns that a line is indented by.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The lines below the first one that begins with `key`: all that are indented further.
fn below<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let mut lines = text.lines().skip_while(|line| !line.trim_start().starts_with(key));
    let first = lines.next().unwrap_or_else(|| panic!("{key} is missing"));
    lines.take_while(|line| line.trim().is_empty() || indent(line) > indent(first)).collect()
}

/// `key: value` lines.
fn pairs<'a>(lines: &[&'a str]) -> BTreeMap<&'a str, &'a str> {
    let pair = |line: &&'a str| {
        let (key, value) = line.split_once(':')?;
        Some((key.trim(), value.trim().trim_matches(['\'', '"'])))
    };
    lines.iter().filter_map(pair).collect()
}

/// What a job has printed, its exit code, and its summary.
#[derive(Debug)]
struct Job {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    summary: String,
    junit: String,
}

fn job(scratch: &Scratch, script: &str, environment: &[(&str, &str)], summary: &str) -> Job {
    let _ = std::fs::remove_file(scratch.join(summary));
    let mut command = Command::new("bash");
    // As both systems run steps.
    command.args(["-e", "-o", "pipefail", "-c", script]).current_dir(&scratch.0);
    let ended = output(command.envs(environment.iter().copied()));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let read = |name: &str| std::fs::read_to_string(scratch.join(name)).unwrap_or_default();
    Job {
        code: ended.status.code(),
        stdout: text(ended.stdout),
        stderr: text(ended.stderr),
        summary: read(summary),
        junit: read("wiregauge.xml"),
    }
}

/// Simulated round trips of a delay.
fn latency(delay: &str) -> String {
    format!("latency --transport synthetic --synthetic constant({delay}) --count 1000")
}

/// A job of the action with some of its inputs, the others by default.
fn github(scratch: &Scratch, inputs: &[(&str, &str)]) -> Job {
    let given = |name: &str| {
        let typed = inputs.iter().find(|(input, _)| *input == name).map(|(_, value)| *value);
        let declared = pairs(&below(ACTION, &format!("{name}:")));
        typed.or(declared.get("default").copied()).unwrap_or_else(|| panic!("no input {name}"))
    };
    let environment = pairs(&below(ACTION, "env:"));
    assert_eq!(environment.len(), 6, "{environment:?}");
    let value = |text: &str| {
        given(text.trim_start_matches("${{ inputs.").trim_end_matches(" }}")).to_owned()
    };
    let mut environment: Vec<(&str, String)> =
        environment.into_iter().map(|(name, text)| (name, value(text))).collect();
    environment.push(("GITHUB_STEP_SUMMARY", "summary.md".into()));
    let script = below(ACTION, "run: |").join("\n");
    let environment: Vec<(&str, &str)> =
        environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    job(scratch, &script, &environment, "summary.md")
}

#[test]
fn the_action_keeps_a_baseline_and_fails_where_a_limit_is_exceeded() {
    let scratch = Scratch::new();
    let program = env!("CARGO_BIN_EXE_wiregauge");
    let run = |delay: &str, limits: &str, more: &[(&str, &str)]| {
        let command = latency(delay);
        let usual = [("command", command.as_str()), ("limits", limits), ("program", program)];
        github(&scratch, &[&usual, more].concat())
    };
    let limit = "rtt.p50>+10%,rtt.max>1ms";
    let too_early = run("2us", limit, &[]);
    assert_eq!(too_early.code, Some(2), "a branch before there is a baseline: {too_early:?}");
    assert!(too_early.stderr.contains("there is no baseline 'main'"), "{too_early:?}");
    let first = run("2us", limit, &[("save", "true")]);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(first.stdout.contains("::warning title=wiregauge::"), "{first:?}");
    assert!(first.summary.contains("there is no baseline yet"), "{first:?}");
    let same = run("2us", limit, &[]);
    assert_eq!(same.code, Some(0), "{same:?}");
    assert!(same.summary.starts_with("## wiregauge: all limits held\n"), "{same:?}");
    assert!(
        same.junit.contains("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"0\""),
        "{same:?}"
    );
    let slower = run("3us", limit, &[]);
    assert_eq!(slower.code, Some(1), "{slower:?}");
    assert!(slower.summary.starts_with("## wiregauge: a limit was exceeded\n"), "{slower:?}");
    assert!(slower.summary.contains("50 % slower at p50"), "{slower:?}");
    let failure = "name=\"rtt.p50&gt;+10%\"><failure type=\"exceeded\" message=\"exceeded: +50 % ";
    assert!(slower.junit.contains(failure), "{slower:?}");
    // 2000 samples for each of six rounds: too few for p99.99.
    let unknown = run("2us", "rtt.p99.99>+10%", &[]);
    assert_eq!(unknown.code, Some(0), "{unknown:?}");
    assert!(unknown.stdout.contains("::warning title=wiregauge::"), "{unknown:?}");
    assert!(unknown.junit.contains("skipped=\"1\"") && unknown.junit.contains("<skipped "));
    let strict = run("2us", "rtt.p99.99>+10%", &[("strict", "true")]);
    assert_eq!(strict.code, Some(1), "{strict:?}");
    assert!(strict.junit.contains("<failure type=\"inconclusive\""), "{strict:?}");
}

/// A text in which `${{ NAME }}` is filled in.
fn filled(text: &str, values: &[(&str, &str)]) -> String {
    let fill = |text: String, (name, value): &(&str, &str)| {
        text.replace(&format!("${{{{ {name} }}}}"), value)
    };
    let text = values.iter().fold(text.to_owned(), fill);
    assert!(!text.contains("${{"), "{text}");
    text
}

/// GitHub's cache: keys in the order in which they were saved, with the run of each baseline.
#[derive(Default)]
struct Cache(Vec<(String, Option<String>)>);

impl Cache {
    /// The newest one whose key is the wanted one, or else begins so.
    fn found(&self, begin: &str) -> Option<&(String, Option<String>)> {
        let exact = self.0.iter().find(|(key, _)| key == begin);
        exact.or_else(|| self.0.iter().rev().find(|(key, _)| key.starts_with(begin)))
    }

    fn save(&mut self, key: String, baseline: Option<String>) {
        if self.0.iter().all(|(known, _)| *known != key) {
            self.0.push((key, baseline));
        }
    }

    /// The steps of the action about the cache: which run an attempt compares with.
    fn attempt(&mut self, baseline: &str, run: &str, attempt: &str, save: bool) -> Option<String> {
        let values = [
            ("runner.os", "Linux"),
            ("inputs.baseline", baseline),
            ("github.run_id", run),
            ("github.run_attempt", attempt),
        ];
        let keys = |name: &str| -> Vec<String> {
            let values_of = ACTION.lines().filter_map(|line| line.trim().strip_prefix(name));
            values_of.map(|text| filled(text.trim(), &values)).collect()
        };
        let (keys, restore) = (keys("key:"), keys("restore-keys:"));
        let ([wanted, compared, saved], [restore]) = (&keys[..], &restore[..]) else {
            panic!("{keys:?} {restore:?}")
        };
        let found = self.found(wanted).or_else(|| self.found(restore)).cloned();
        let is_hit = found.as_ref().is_some_and(|(key, _)| key == wanted);
        let (_, own) = ACTION.split_once("cache-matched-key,\n        format('").unwrap();
        let (own, names) = own.split_once("', ").unwrap();
        let names = names.split_once("))").unwrap().0.split(", ").enumerate();
        let own = names.fold(own.to_owned(), |own, (at, name)| {
            own.replace(&format!("{{{at}}}"), &filled(&format!("${{{{ {name} }}}}"), &values))
        });
        let restored = found.filter(|(key, _)| !key.starts_with(&own));
        let restored = restored.and_then(|(_, baseline)| baseline);
        let condition = "if: inputs.save == 'true' && steps.baseline.outputs.cache-hit != 'true'";
        assert_eq!(ACTION.matches(condition).count(), 2, "the folder is made and saved");
        if save && !is_hit {
            self.save(compared.clone(), restored.clone());
        }
        if save {
            self.save(saved.clone(), Some(format!("{run}/{attempt}")));
        }
        restored
    }
}

#[test]
fn an_attempt_compares_with_the_newest_baseline_of_its_name_that_is_not_of_its_run() {
    let mut cache = Cache::default();
    assert_eq!(cache.attempt("main", "10", "1", true), None);
    assert_eq!(cache.attempt("main", "10", "2", true), None, "the first run, again");
    let first = Some("10/2".to_owned());
    assert_eq!(cache.attempt("main-tcp", "11", "1", true), None, "another baseline");
    assert_eq!(cache.attempt("main", "12", "1", false), first, "a branch");
    assert_eq!(cache.attempt("main", "13", "1", true), first);
    let second = Some("13/1".to_owned());
    assert_eq!(cache.attempt("main", "130", "1", true), second);
    for attempt in ["2", "3"] {
        assert_eq!(cache.attempt("main", "13", attempt, true), first, "attempt {attempt}");
    }
    assert_eq!(cache.attempt("main", "14", "1", false), Some("13/3".to_owned()), "the newest");
    cache.0.retain(|(key, _)| !key.starts_with("wiregauge-compared/"));
    assert_eq!(cache.attempt("main", "13", "4", true), None, "nothing rather than itself");
    let steps = ACTION.split_once("\n  steps:\n").unwrap().1;
    let first = steps.lines().find(|line| line.trim().starts_with("run:")).unwrap();
    assert_eq!(first.trim(), "run: rm -rf wiregauge-runs/baselines", "of an earlier job");
    assert!(steps.find(first) < steps.find("actions/cache/restore"));
}

#[test]
fn every_branch_reads_the_cache_of_the_template_and_the_default_one_writes_it() {
    let cache = pairs(&below(GITLAB, "cache:"));
    assert_eq!(cache["key"], "wiregauge-$WIREGAUGE_BASELINE", "the same on every branch");
    assert_eq!(cache["unprotect"], "true", "and whether a branch is protected or not");
    assert_eq!(cache["policy"], "$WIREGAUGE_CACHE");
    assert_eq!(pairs(&below(GITLAB, "variables:"))["WIREGAUGE_CACHE"], "pull");
    let rules: Vec<&str> = below(GITLAB, "rules:").iter().map(|line| line.trim()).collect();
    let [default, variables, value, others] = rules[..] else { panic!("{rules:?}") };
    assert_eq!(default, "- if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH");
    assert_eq!((variables, value), ("variables:", "WIREGAUGE_CACHE: pull-push"));
    assert_eq!(others, "- if: $CI_COMMIT_BRANCH || $CI_COMMIT_TAG");
}

#[test]
fn the_template_s_job_has_the_verdict_s_exit_code() {
    let scratch = Scratch::new();
    let program = env!("CARGO_BIN_EXE_wiregauge");
    let script: Vec<&str> = below(GITLAB, "script:");
    // A line that goes on is one command, as YAML folds it.
    let script = script.iter().map(|line| match line.trim().strip_prefix("- ") {
        Some(command) => format!("\n{command}"),
        None => format!(" {}", line.trim()),
    });
    let script: String = script.collect();
    let run = |branch: &str, delay: &str, pipeline: &str| {
        let mut variables = pairs(&below(GITLAB, "variables:"));
        assert_eq!(variables.insert("WIREGAUGE", program), Some("wiregauge"));
        let command = latency(delay);
        variables.insert("WIREGAUGE_COMMAND", &command);
        variables.insert("WIREGAUGE_LIMITS", "rtt.p50>+10%");
        variables.extend([("CI_COMMIT_BRANCH", branch), ("CI_DEFAULT_BRANCH", "main")]);
        variables.insert("CI_PIPELINE_ID", pipeline);
        job(&scratch, &script, &variables.into_iter().collect::<Vec<_>>(), "wiregauge.md")
    };
    assert_eq!(run("main", "2us", "1").code, Some(5), "there is no baseline yet");
    assert_eq!(run("main", "2us", "1").code, Some(5), "nor for a job that is retried");
    assert!(below(GITLAB, "allow_failure:").concat().contains("exit_codes: 5"));
    let branch = run("faster", "1us", "2");
    assert_eq!(branch.code, Some(0), "{branch:?}");
    assert!(branch.summary.contains("all limits held"), "{branch:?}");
    assert_eq!(run("slower", "3us", "3").code, Some(1));
    assert_eq!(run("main", "3us", "4").code, Some(1), "the default branch is judged too");
    assert_eq!(run("main", "3us", "4").code, Some(1), "not by itself when it is retried");
    assert_eq!(run("same", "3us", "5").code, Some(1), "nor is its run the new baseline");
    assert_eq!(run("main", "2us", "6").code, Some(0), "the old one is still there");
    for path in below(GITLAB, "cache:").iter().chain(&below(GITLAB, "artifacts:")) {
        let made = path.trim().strip_prefix("- ").or(path.trim().strip_prefix("junit: "));
        assert!(made.is_none_or(|made| Path::new(&scratch.join(made)).exists()), "{path}");
    }
}
