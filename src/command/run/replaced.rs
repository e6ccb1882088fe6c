//! A study over another transport, or in another wait mode, than it is written for: where a
//! target lacks the study's own.

use crate::cli::{StudyOptions, entry};
use crate::options::{UsageError, each_once};
use crate::plan::study::file::{Entry, StudyFile, Word, WordValue};
use crate::plan::written::Written;
use crate::plan::{HostSpec, Place, Wait};
use crate::transport::TransportKind;
use crate::transport::definitions::DEFINITIONS;

/// Puts what was typed in the place of the study's own words, in the entries of these series
/// (none: of all); what was changed, in a sentence.
pub(super) fn replace(
    parsed: &mut StudyFile,
    asked: &StudyOptions,
) -> Result<Option<String>, UsageError> {
    let is_of_job = asked.place.all_nodes().flatten().any(HostSpec::is_rank);
    ensure!(
        !is_of_job || asked.mpirun.is_none(),
        UsageError(
            "--mpirun: the ranks are those of this job, which are started: leave it out".into()
        )
    );
    let words = Words {
        transport: asked.transport,
        wait: asked.wait,
        rate: asked.rate.as_deref(),
        mpirun: asked.mpirun.as_deref(),
    };
    words.put(parsed, &asked.only)
}

/// What was typed.
#[derive(Clone, Copy, Default)]
struct Words<'a> {
    transport: Option<TransportKind>,
    wait: Option<Wait>,
    rate: Option<&'a str>,
    mpirun: Option<&'a str>,
}

impl Words<'_> {
    fn put(self, parsed: &mut StudyFile, only: &[String]) -> Result<Option<String>, UsageError> {
        let Words { transport, wait, rate, mpirun } = self;
        let StudyFile { written, entries, .. } = parsed;
        let is_meant = |entry: &&mut Entry| only.is_empty() || only.contains(&entry.series);
        let mut changes = Vec::new();
        let mut lost = Vec::new();
        let texts = [
            ("transport", transport.map(|one| one.name().to_owned())),
            ("wait", wait.map(|one| one.name().to_owned())),
            ("rate", rate.map(str::to_owned)),
            ("mpirun", mpirun.map(str::to_owned)),
        ];
        for (key, text) in texts {
            let Some(text) = text else { continue };
            let mut own = Vec::new();
            // A series without a rate is not given one: that would make it another measurement.
            let has_it = |entry: &&mut Entry| match key {
                "rate" => entry.words.iter().any(|word| word.key == key),
                "mpirun" => has_launcher(written, entry),
                _ => true,
            };
            for entry in entries.iter_mut().filter(is_meant).filter(has_it) {
                own.push(put(entry, key, &text));
            }
            let own = each_once(own);
            ensure!(
                !own.is_empty(),
                UsageError(format!("--{key}: no series of this study has one"))
            );
            // Series that differ in it would have names that are not true.
            ensure!(
                own.len() <= 1,
                UsageError(format!(
                    "--{key}: series of this study differ in it ({}): use --only for the others",
                    own.join("; ")
                ))
            );
            changes.push(format!("{key} {text} instead of {}", own.join("; ")));
            if let ("transport", Some(transport)) = (key, transport) {
                lost = without_foreign(entries.iter_mut().filter(is_meant), transport);
            }
        }
        if !lost.is_empty() {
            changes.push(format!("without {}, which it does not have", lost.join(", ")));
        }
        Ok((!changes.is_empty())
            .then(|| format!("not as the study is written: {}", changes.join(", "))))
    }
}

/// Whether a launcher starts the ends of an entry. What is wrong with one is said when it is read.
fn has_launcher(written: &Written, entry: &Entry) -> bool {
    let request = entry::request(written, entry);
    request.is_ok_and(|request| request.transports.iter().all(|one| one.has_setting("mpirun")))
}

/// With how many nodes entries of these series (none: of all) run that are written for others, in
/// words: all hosts of a run are the nodes.
pub(super) fn other_nodes(parsed: &StudyFile, only: &[String], place: &Place) -> Option<String> {
    let here = place.all_nodes().count().to_string();
    let is_meant = |entry: &&Entry| {
        (only.is_empty() || only.contains(&entry.series)) && entry.part.places.is_none()
    };
    let words = parsed.entries.iter().filter(is_meant).flat_map(|entry| &entry.words);
    let written = words.filter(|word| word.key == "nodes").filter_map(|word| match &word.value {
        WordValue::Text(nodes) => Some(nodes.as_str()),
        WordValue::Switch(_) => None,
    });
    let written = written.flat_map(|nodes| nodes.split(',')).map(str::trim);
    let others = each_once(written.filter(|nodes| *nodes != here));
    (here != "0" && !others.is_empty())
        .then(|| format!("{here} nodes run instead of {}", others.join(", ")))
}

/// Sets a word; what it was.
fn put(entry: &mut Entry, key: &str, text: &str) -> String {
    let value = WordValue::Text(text.to_owned());
    match entry.words.iter_mut().find(|word| word.key == key) {
        Some(word) => match std::mem::replace(&mut word.value, value) {
            WordValue::Text(own) => own,
            WordValue::Switch(on) => on.to_string(),
        },
        None => {
            let place = entry.place.clone();
            let word = Word { key: key.into(), value, key_place: place.clone(), place };
            entry.words.push(word);
            "the default".into()
        }
    }
}

/// Drops the options of other transports; their names, each once.
fn without_foreign<'a>(
    entries: impl Iterator<Item = &'a mut Entry>,
    transport: TransportKind,
) -> Vec<String> {
    let is_foreign = |key: &str| {
        DEFINITIONS.iter().any(|option| option.name == key) && !transport.has_setting(key)
    };
    let mut lost = Vec::new();
    for entry in entries {
        lost.extend(entry.words.iter().map(|word| word.key.clone()).filter(|key| is_foreign(key)));
        entry.words.retain(|word| !is_foreign(&word.key));
    }
    each_once(lost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::registry;
    use crate::plan::study::file;
    use crate::shipped::{STUDIES, text};

    fn shipped(name: &str) -> StudyFile {
        let text = text(&STUDIES, name);
        file::parse(&registry::names(), name, text).unwrap()
    }

    #[test]
    fn a_study_of_verbs_runs_over_tcp_without_the_options_of_verbs_and_says_so() {
        let mut study = shipped("dabc/chaotic");
        let (transport, wait) = (Some(TransportKind::Tcp), Some(Wait::Block));
        let words = Words { transport, wait, ..Words::default() };
        let said = words.put(&mut study, &[]).unwrap().unwrap();
        assert!(said.contains("transport tcp instead of verbs"), "{said}");
        assert!(said.contains("wait block instead of the default"), "{said}");
        assert!(said.contains("without operation"), "{said}");
        for own in &study.entries {
            let request = entry::request(&study.written, own).unwrap();
            assert_eq!(request.transports, [TransportKind::Tcp]);
            assert_eq!(request.waits, [Wait::Block]);
            request.plan().unwrap();
        }
    }

    #[test]
    fn a_rate_is_put_where_one_is_and_nowhere_else() {
        let words = Words { rate: Some("400mbit"), ..Words::default() };
        let mut study = shipped("dabc/scheduled-or-chaotic");
        let said = words.put(&mut study, &[]).unwrap().unwrap();
        assert!(said.contains("rate 400mbit instead of 8gbit"), "{said}");
        let of = |entry: &Entry| entry.words.iter().any(|word| word.key == "rate");
        assert_eq!(study.entries.iter().map(of).collect::<Vec<_>>(), [true, false]);
        let refused = words.put(&mut shipped("dabc/chaotic"), &[]).unwrap_err();
        assert!(refused.0.contains("no series"), "{}", refused.0);
    }

    #[test]
    fn a_launcher_is_put_where_ranks_are_launched_and_nowhere_else() {
        let words = Words { mpirun: Some("mpirun.mpich"), ..Words::default() };
        let mut study = shipped("mpi/presta-collectives");
        let said = words.put(&mut study, &[]).unwrap().unwrap();
        assert!(said.contains("mpirun mpirun.mpich instead of the default"), "{said}");
        for own in &study.entries {
            let request = entry::request(&study.written, own).unwrap();
            assert_eq!(request.settings.text("mpirun"), Some("mpirun.mpich"));
        }
        let refused = words.put(&mut shipped("dabc/chaotic"), &[]).unwrap_err();
        assert!(refused.0.contains("no series"), "{}", refused.0);
    }

    #[test]
    fn a_study_of_four_nodes_says_so_where_it_runs_with_two() {
        let study = shipped("mpi/presta-collectives");
        let of = |nodes: usize| {
            let place = Place { nodes: vec![None; nodes], ..Place::default() };
            other_nodes(&study, &[], &place)
        };
        let said = of(2).unwrap();
        assert_eq!(said, "2 nodes run instead of 4");
        assert_eq!((of(4), of(0)), (None, None));
    }

    #[test]
    fn series_that_differ_in_their_transport_keep_it() {
        let mut study = shipped("villas/node-types");
        let words = Words { transport: Some(TransportKind::Tcp), ..Words::default() };
        let refused = words.put(&mut study, &[]).unwrap_err();
        assert!(refused.0.contains("use --only"), "{}", refused.0);
    }

    #[test]
    fn without_anything_typed_a_study_is_as_it_is_written() {
        let mut study = shipped("dabc/chaotic");
        assert_eq!(Words::default().put(&mut study, &[]).unwrap(), None);
        assert!(study.entries[0].words.iter().any(|word| word.key == "operation"));
    }
}
