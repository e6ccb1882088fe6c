//! What tells the runs of a report apart, for axes and legends that have no room for whole labels.

use wiregauge_figures::record::schema::Run;
use wiregauge_figures::view::compared::words;

/// What tells each run from the others; where that is nothing, the number of the run. One run
/// alone has its whole label.
pub fn names(runs: &[&Run]) -> Vec<String> {
    if let [run] = runs {
        return vec![run.label.clone()];
    }
    let labels: Vec<&str> = runs.iter().map(|run| run.label.as_str()).collect();
    let numbered = |(run, own): (&&Run, Option<String>)| own.unwrap_or(format!("#{}", run.index));
    runs.iter().zip(own_words(&labels)).map(numbered).collect()
}

/// The words of each run's label that not all share, without numbers and their units, which are on
/// an axis.
pub fn words_apart(runs: &[&Run]) -> Vec<String> {
    apart(&runs.iter().map(|run| run.label.as_str()).collect::<Vec<_>>())
}

fn apart(labels: &[&str]) -> Vec<String> {
    let split: Vec<Vec<&str>> = labels.iter().map(|label| words(label)).collect();
    let is_shared = |word: &&str| split.iter().all(|label| label.contains(word));
    let is_number = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
    let own = |label: &Vec<&str>| {
        let own = label.iter().copied().filter(|word| !is_shared(word) && !is_number(word));
        own.collect::<Vec<_>>().join(" ")
    };
    split.iter().map(own).collect()
}

/// The words of each label that not all labels share, in their order; `None` for a label without
/// such words, or with the same ones as another.
pub fn own_words(labels: &[&str]) -> Vec<Option<String>> {
    let split: Vec<Vec<&str>> = labels.iter().map(|label| words(label)).collect();
    let is_shared = |word: &&str| split.iter().all(|label| label.contains(word));
    let own = |label: &Vec<&str>| -> String {
        let own: Vec<&str> = label.iter().copied().filter(|word| !is_shared(word)).collect();
        // That of a series stands before a colon.
        own.join(" ").trim_end_matches(':').to_owned()
    };
    let own: Vec<String> = split.iter().map(own).collect();
    let is_unique = |name: &String| own.iter().filter(|other| *other == name).count() == 1;
    own.iter().map(|name| (!name.is_empty() && is_unique(name)).then(|| name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_differs() {
        let own = |labels: &[&str]| -> Vec<String> {
            own_words(labels).into_iter().map(Option::unwrap).collect()
        };
        assert_eq!(own(&["latency tcp busy 64 B", "latency tcp block 64 B"]), ["busy", "block"]);
        let sizes = own(&["latency tcp busy 64 B", "latency tcp busy 64 KiB"]);
        assert_eq!(sizes, ["64 B", "64 KiB"], "a number keeps its unit");
        let rates = own(&["oneway shm busy 64 B at 50000/s", "oneway shm busy 64 B at 100000/s"]);
        assert_eq!(rates, ["50000/s", "100000/s"]);
    }

    #[test]
    fn a_series_has_its_name_without_the_colon() {
        let labels = ["untraced: latency tcp", "traced: latency tcp"];
        let own: Vec<String> = own_words(&labels).into_iter().map(Option::unwrap).collect();
        assert_eq!(own, ["untraced", "traced"]);
    }

    #[test]
    fn cases_of_a_series_are_told_apart_without_their_sizes() {
        let labels = ["a: mpi busy barrier of 4 ranks", "a: mpi busy 32 B reduce of 4 ranks"];
        assert_eq!(apart(&labels), ["barrier", "reduce"]);
        assert_eq!(apart(&["a: tcp 1 B", "a: tcp 2 B"]), ["", ""]);
    }

    #[test]
    fn what_cannot_be_told_apart_has_no_name() {
        assert_eq!(own_words(&["a b", "a b", "a c"]), [None, None, Some("c".to_owned())]);
        assert_eq!(own_words(&["a", "a b"]), [None, Some("b".to_owned())]);
    }
}
