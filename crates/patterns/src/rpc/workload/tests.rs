//! Distributions whose draws are known, and files that are wrong.

use super::*;
use proptest::prelude::*;

/// The length of a draw of \[0, 1).
fn draw(workload: &Workload, u: f64) -> u64 {
    let at = workload.steps.partition_point(|(_, cumulative)| *cumulative < u);
    workload.steps[at.min(workload.steps.len() - 1)].0.0
}

#[test]
fn the_shipped_workloads_offer_the_load_of_the_full_tables() {
    // Mean bytes of the full tables, as published with them.
    let means =
        [("w1", 189.2), ("w2", 441.6), ("w3", 2927.7), ("w4", 127_796.6), ("w5", 2_564_689.7)];
    assert_eq!(Workload::names(), means.map(|(name, _)| name));
    for (name, mean) in means {
        let workload = Workload::shipped(name).unwrap();
        // The means of the rows are rounded to bytes, most of them of a few bytes.
        assert!((workload.mean() / mean - 1.0).abs() < 1e-3, "{name}: {}", workload.mean());
        assert_eq!(workload.steps.last().unwrap().1, 1.0);
        assert!(workload.largest >= workload.steps.last().unwrap().0);
    }
    assert_eq!(Workload::shipped("w6"), None);
}

#[test]
fn a_draw_is_the_first_length_that_reaches_it() {
    let workload = Workload::of_file("f", "8 0.25\n100 0.5\n1000 1\n").unwrap();
    let drawn = [0.0, 0.25, 0.2500001, 0.5, 0.75, 0.999].map(|u| draw(&workload, u));
    assert_eq!(drawn, [8, 8, 100, 100, 1000, 1000]);
    assert_eq!(workload.mean(), 0.25 * 8.0 + 0.25 * 100.0 + 0.5 * 1000.0);
}

#[test]
fn a_file_may_begin_with_its_mean_and_have_comments() {
    let text = "187.77\n# sizes\n1 0.5\n\n2 0.5\n3\t0.9999  # rounded\n";
    let workload = Workload::of_file("f", text).unwrap();
    assert_eq!(workload.steps, [(Bytes(1), 0.5), (Bytes(3), 1.0)]);
}

#[test]
fn lines_of_one_size_are_one_length() {
    let workload = Workload::of_file("f", "15 0.4\n16 0.5\n16 0.5\n16 0.75\n20 1\n").unwrap();
    assert_eq!(workload.steps, [(Bytes(15), 0.4), (Bytes(16), 0.75), (Bytes(20), 1.0)]);
    let unused = Workload::of_file("f", "15 0.5\n16 0.5\n16 1\n").unwrap();
    assert_eq!(unused.steps, [(Bytes(15), 0.5), (Bytes(16), 1.0)]);
}

#[test]
fn what_is_wrong_in_a_file_has_its_line_and_column() {
    let wrong = |text: &str| Workload::of_file("cdf", text).unwrap_err().to_string();
    assert!(wrong("1 0.5\n  x 1\n").starts_with("cdf:2:3: invalid size 'x'"));
    assert!(wrong("1 0.5\n2 1.5\n").starts_with("cdf:2:3: invalid fraction '1.5'"));
    assert!(wrong("2 0.5\n1 1\n").starts_with("cdf:2:1: 1 B is less"));
    assert!(wrong("1 0.5\n2 0.4\n").starts_with("cdf:2:3: 0.4 is less"));
    assert!(wrong("1 0.5\n2\n").starts_with("cdf:2:1: expected a size and a fraction"));
    assert!(wrong("1 0.5 7\n").starts_with("cdf:1:7: a line has only a size and a fraction"));
    assert!(wrong("1 0.5\n2 0.9\n").contains("the last fraction is 0.9; it must be 1"));
    assert!(wrong("# nothing\n").contains("the file has no lengths"));
    assert!(wrong("1.5 1\n").contains("whole bytes"));
    assert!(wrong("1 nan\n").contains("invalid fraction"));
}

#[test]
fn what_a_transport_cannot_carry_is_cut_to_what_it_can() {
    let workload = Workload::of_file("f", "1 0.2\n4 0.4\n100 0.6\n1000 1\n").unwrap();
    let cut = workload.within(Bytes(4), Bytes(100));
    assert_eq!(cut.steps, [(Bytes(4), 0.4), (Bytes(100), 1.0)]);
    assert_eq!(Workload::fixed(Bytes(7)).within(Bytes(8), Bytes(100)).steps, [(Bytes(8), 1.0)]);
}

proptest! {
    #[test]
    fn any_text_is_a_distribution_or_a_refusal(text in "[0-9. \n#ex-]{0,60}") {
        if let Ok(workload) = Workload::of_file("f", &text) {
            let rises = |two: &[(Bytes, f64)]| two[0].0 < two[1].0 && two[0].1 < two[1].1;
            prop_assert!(workload.steps.windows(2).all(rises));
            prop_assert_eq!(workload.steps.last().unwrap().1, 1.0);
        }
    }

    #[test]
    fn lengths_are_drawn_as_often_as_their_fraction(a in 0.05f64..0.95) {
        let text = format!("10 {a}\n20 1\n");
        let workload = Workload::of_file("f", &text).unwrap();
        let draws = 10_000;
        let small = (0..draws).filter(|k| draw(&workload, f64::from(*k) / f64::from(draws)) == 10);
        prop_assert!((small.count() as f64 / f64::from(draws) - a).abs() < 2e-4);
    }
}
