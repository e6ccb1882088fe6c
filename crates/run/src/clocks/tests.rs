//! Clocks whose offsets are known, and what a round says of them.

use super::*;
use wiregauge_clock::Timebase;
use wiregauge_sample::{Flags, Sample};

/// So many exchanges, one a second, with a clock that is ahead by 5 us at second 1 and gains.
fn exchanges(count: u32, round_trip_ns: f64, gains_ppm: f64) -> Vec<Exchange> {
    let exchange = |second: u32| {
        let sent = f64::from(second) * 1e9;
        let middle = sent + round_trip_ns / 2.0;
        let other = LocalNs(middle + 5000.0 + gains_ppm * f64::from(second - 1) * 1e3);
        Exchange {
            sent: LocalNs(sent),
            reached: other,
            answered: other,
            heard: LocalNs(sent + round_trip_ns),
        }
    };
    (1..=count).map(exchange).collect()
}

/// Messages that came at these seconds.
fn samples(seconds: &[f64]) -> RoundSamples {
    let none = f64::NAN;
    let sample =
        |at: &f64| Sample::new(0, 8, [none, none, none, *at * 1e9, none], Flags::default());
    RoundSamples { samples: seconds.iter().map(sample).collect(), ..Default::default() }
}

fn of_round(
    client: Option<&RemoteClock>,
    server: Option<&RemoteClock>,
    seconds: &[f64],
) -> Option<ClockOffset> {
    offset_for_round(client, server, &samples(seconds), std::iter::empty())
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-6 * expected.abs().max(1.0)
}

#[test]
fn the_offset_of_a_round_is_that_of_the_sample_with_the_widest_bound() {
    let fitted = RemoteClock::of(exchanges(5, 2000.0, 10.0), None).unwrap();
    let at = |second: f64| fitted.model.offset_at(LocalNs(second * 1e9));
    // The bound grows with the distance from the exchanges, which ended at second 5.
    assert!(at(9.0).bound_ns > at(7.0).bound_ns && at(7.0).bound_ns > at(3.0).bound_ns);
    let found = of_round(None, Some(&fitted), &[3.0, 9.0, 7.0, f64::NAN]).unwrap();
    assert_eq!((found.offset_ns, found.bound_ns), (at(9.0).ns, at(9.0).bound_ns));
    assert!((found.offset_ns - 85_000.0).abs() <= found.bound_ns, "10 us a second for 8 s");
    assert!((found.drift_ppm - 10.0).abs() <= found.drift_bound_ppm);
    assert_eq!((found.exchanges, found.steps, found.by.as_str()), (5, 0, "exchanges"));
    assert!(near(found.shortest_round_trip_ns, 2000.0) && found.exchanged.is_none());
    assert_eq!(of_round(None, Some(&fitted), &[f64::NAN]), None, "nothing arrived");
    assert_eq!(of_round(None, None, &[3.0]), None);
}

#[test]
fn between_two_remote_hosts_offsets_are_subtracted_and_bounds_added() {
    let client = RemoteClock::of(exchanges(4, 2000.0, 4.0), None).unwrap();
    let server = RemoteClock::of(exchanges(6, 3000.0, 10.0), None).unwrap();
    let [to_client, to_server] =
        [&client, &server].map(|host| of_round(None, Some(host), &[4.0]).unwrap());
    let both = of_round(Some(&client), Some(&server), &[4.0]).unwrap();
    assert_eq!(both.offset_ns, to_server.offset_ns - to_client.offset_ns);
    // (10 - 4) us a second, 3 s after both were ahead by as much.
    assert!((both.offset_ns - 18_000.0).abs() <= both.bound_ns, "{both:?}");
    assert_eq!(both.bound_ns, to_server.bound_ns + to_client.bound_ns);
    assert_eq!(both.drift_ppm, to_server.drift_ppm - to_client.drift_ppm);
    assert!((both.drift_ppm - 6.0).abs() <= both.drift_bound_ppm);
    assert_eq!(both.drift_bound_ppm, to_server.drift_bound_ppm + to_client.drift_bound_ppm);
    assert_eq!(both.exchanges, 4, "the fewer");
    assert!(near(both.shortest_round_trip_ns, 3000.0), "the longer");
    // Of a client alone the signs are the other way round.
    let back = of_round(Some(&client), None, &[4.0]).unwrap();
    assert_eq!((back.offset_ns, back.drift_ppm), (-to_client.offset_ns, -to_client.drift_ppm));
    assert_eq!((back.bound_ns, back.exchanges), (to_client.bound_ns, 4));
}

#[test]
fn clocks_that_were_set_are_counted_together() {
    let stepped = |seconds: &[u32]| {
        let mut all = exchanges(9, 2000.0, 0.0);
        for exchange in &mut all {
            let second = (exchange.sent.0 / 1e9) as u32;
            // By 10 ms each time.
            let more = 1e7 * seconds.iter().filter(|at| **at <= second).count() as f64;
            exchange.reached.0 += more;
            exchange.answered.0 += more;
        }
        RemoteClock::of(all, None).unwrap()
    };
    let (once, twice) = (stepped(&[5]), stepped(&[3, 7]));
    let steps = |client, server| of_round(client, server, &[4.0]).unwrap().steps;
    assert_eq!((steps(None, Some(&once)), steps(None, Some(&twice))), (1, 2));
    assert_eq!(steps(Some(&once), Some(&twice)), 3);
    // What two clocks say of themselves knows of none: the exchanges do.
    let stated = Some(Offset { ns: 5000.0, bound_ns: 100.0 });
    let kept = RemoteClock::of(once.exchanges.clone(), stated).unwrap();
    assert_eq!(steps(None, Some(&kept)), 1);
}

#[test]
fn what_clocks_say_of_themselves_is_checked_by_exchanges_at_the_first_widest_sample() {
    let stated = |ns, gains_ppm| {
        let offset = Some(Offset { ns, bound_ns: 50.0 });
        RemoteClock::of(exchanges(5, 2000.0, gains_ppm), offset).unwrap()
    };
    let (client, server) = (stated(5000.0, 0.0), stated(5100.0, 10.0));
    // A stated bound is the same at all times: 50 ns, and 0.1 for rounding.
    let found = of_round(None, Some(&server), &[2.0, 4.0]).unwrap();
    assert_eq!((found.offset_ns, found.by.as_str()), (5100.0, "ptp"));
    assert!(near(found.bound_ns, 50.1), "{found:?}");
    let fitted = Model::fit(&server.exchanges).unwrap().offset_at(LocalNs(2e9));
    let to_server = found.exchanged.unwrap();
    assert_eq!(to_server.least_ns, Some(fitted.ns - fitted.bound_ns), "10 us less than at 4 s");
    assert_eq!(to_server.most_ns, Some(fitted.ns + fitted.bound_ns));
    // 15 us by the exchanges, which leave some 1 us each way.
    assert!((to_server.beyond_ns - 8_900.0).abs() < 500.0, "{to_server:?}");
    let to_client = of_round(None, Some(&client), &[2.0]).unwrap().exchanged.unwrap();
    let back = of_round(Some(&client), None, &[2.0]).unwrap();
    assert_eq!(back.offset_ns, -5000.0);
    let [least, most] = [to_client.least_ns.unwrap(), to_client.most_ns.unwrap()];
    let turned = back.exchanged.unwrap();
    assert_eq!((turned.least_ns, turned.most_ns), (Some(-most), Some(-least)));
    let both = of_round(Some(&client), Some(&server), &[2.0]).unwrap();
    let between = both.exchanged.unwrap();
    assert_eq!(both.offset_ns, 100.0);
    assert_eq!(between.least_ns, Some(to_server.least_ns.unwrap() - most));
    assert_eq!(between.most_ns, Some(to_server.most_ns.unwrap() - least));
    assert_eq!(between.beyond_ns, to_server.beyond_ns, "the more of both");
    assert!(RemoteClock::of(Vec::new(), None).is_err());
}

#[test]
fn of_several_clocks_the_one_that_was_cut_short_is_known_least_by_the_end() {
    let known = |count, round_trip_ns| RemoteClock::of(exchanges(count, round_trip_ns, 0.0), None);
    let cut = |known: RemoteClock| RemoteClock { cut: Some(Fault::new("gone")), ..known };
    // The exchanges of the first are shorter, and ended at second 3 of 60.
    let all = || vec![known(3, 2000.0).map(cut), known(60, 4000.0)];
    let least = known_least(all()).unwrap().unwrap();
    assert_eq!((least.exchanges.len(), least.cut.is_some()), (3, true));
    // Where another is known less, that one was cut stays known.
    let all = vec![known(59, 2000.0).map(cut), known(60, 400_000.0)];
    let least = known_least(all).unwrap().unwrap();
    assert_eq!((least.exchanges.len(), least.cut.is_some()), (60, true));
    let unknown = vec![known(60, 4000.0), Err(Fault::new("none"))];
    assert!(known_least(unknown).unwrap().is_err());
    assert!(known_least(Vec::new()).is_none());
}

#[test]
fn messages_are_those_that_arrived_in_the_time_of_this_host() {
    let row = |submit: u64, receive: u64| Row {
        submit: Ticks(submit),
        receive: Ticks(receive),
        ..Row::default()
    };
    let client = [row(100, 900), row(200, 0), row(300, 950), row(0, 0)];
    let server = [row(0, 5500), row(0, 5600), row(0, 0), row(0, 5700)];
    let time = Timebase::nanoseconds(Ticks(0));
    let ahead = Model::stated(Offset { ns: 5000.0, bound_ns: 10.0 });
    let own = End { time: &time, offset: None };
    let there = End { offset: Some(&ahead), ..own };
    let times = Times { client: own, server: there, nodes: &[], apart: true, compared: true };
    let found: Vec<Message> = messages(&client, &server, times).collect();
    let sent_and_reached: Vec<_> = found.iter().map(|one| (one.sent.ns, one.reached.ns)).collect();
    assert_eq!(sent_and_reached, [(100.0, 500.0), (200.0, 600.0)]);
    assert_eq!(found[0].sent.bound_ns, 0.0, "this host's own");
    assert!(near(found[0].reached.bound_ns, 10.1));
    let heard = found.iter().map(|one| one.heard.map(|heard| heard.ns));
    assert_eq!(heard.collect::<Vec<_>>(), [Some(900.0), None]);
    // By the estimate each took 400 ns there, and the answer of one 400 ns back: the offset is by
    // no more than that larger, or smaller.
    let clock = RemoteClock::of(exchanges(5, 2000.0, 0.0), None).unwrap();
    let round = offset_for_round(None, Some(&clock), &samples(&[2.0]), found.into_iter()).unwrap();
    let traffic = round.traffic.unwrap();
    assert!(near(traffic.most_ns.unwrap(), round.offset_ns + 400.0), "{traffic:?}");
    assert!(near(traffic.least_ns.unwrap(), round.offset_ns - 400.0), "{traffic:?}");
}

#[test]
fn a_comparison_costs_the_datagrams_of_both_hosts() {
    let of = |remote| {
        let ClockCost { length_ns, exchanges: count, datagrams, bytes, server_cpu_ns, .. } =
            cost(&exchanges(3, 2000.0, 0.0), Cost { sent: 7, cpu_ns: 5.0, remote });
        assert_eq!((length_ns, count, bytes), (2e9 + 2000.0, 3, datagrams * LENGTH as u64));
        (datagrams, server_cpu_ns)
    };
    assert_eq!(of(Some((4, 9.0))), (11, Some(9.0)));
    assert_eq!(of(None), (7, None));
    let nothing = cost(&[], Cost { sent: 1, cpu_ns: 0.0, remote: None });
    assert_eq!((nothing.length_ns, nothing.exchanges), (0.0, 0));
}

#[test]
fn cases_begin_together_where_their_group_has_several() {
    let mut request = wiregauge_patterns::latency::request(Default::default());
    request.sizes = vec![
        wiregauge_base::units::Bytes(8),
        wiregauge_base::units::Bytes(64),
        wiregauge_base::units::Bytes(80),
    ];
    let mut plan = request.plan().unwrap();
    plan.concurrent = vec![vec![0, 2], vec![1]];
    let sizes: Vec<u32> = together(&plan).iter().map(|case| case.size.0 as u32).collect();
    assert_eq!(sizes, [8, 80]);
}

#[test]
fn a_clock_is_compared_for_one_way_times_and_for_rounds_that_begin_together() {
    let of = |request: wiregauge_plan::Request, client, server| {
        let mut case = request.plan().unwrap().cases.remove(0);
        (case.topology.ranks[0].host, case.topology.ranks[1].host) = (client, server);
        case
    };
    let one_way = || wiregauge_patterns::oneway::request(Default::default());
    let ping_pong = || wiregauge_patterns::latency::request(Default::default());
    let mut plan = one_way().plan().unwrap();
    plan.cases = vec![
        of(ping_pong(), None, Some(1)),
        of(ping_pong(), None, Some(0)),
        of(one_way(), None, Some(0)),
        of(one_way(), Some(2), Some(2)),
        of(one_way(), Some(3), None),
        of(ping_pong(), None, Some(4)),
    ];
    plan.concurrent = vec![vec![0, 1], vec![2], vec![3], vec![4], vec![5]];
    let found = |host| {
        let (case, is_needed) = compared_for(&plan, host, false)?;
        Some((plan.cases.iter().position(|own| own == case)?, is_needed))
    };
    assert_eq!(
        (found(0), found(1), found(3)),
        (Some((2, true)), Some((0, false)), Some((4, true)))
    );
    // Both ends on one host have one clock; round trips one after another need none.
    assert_eq!((found(2), found(4), found(5)), (None, None, None));
    assert!(names_own_interface(&plan, &plan.cases[0]));
    assert!(!names_own_interface(&plan, &plan.cases[4]));
    plan.pairs = Some(wiregauge_plan::Pairs::First);
    assert!(names_own_interface(&plan, &plan.cases[4]), "each pair has the same names");
}

#[test]
fn what_is_known_now_is_what_the_clocks_say_of_themselves_where_nothing_is_compared() {
    let offset = Offset { ns: 5000.0, bound_ns: 50.0 };
    let comparisons = Comparisons { running: vec![None, None], stated: vec![Some(offset), None] };
    assert_eq!(comparisons.now(), [Some(Model::stated(offset)), None]);
    assert_eq!(comparisons.end(), [None, None], "and costs nothing");
}

#[test]
fn clocks_that_are_kept_right_are_off_by_their_epochs_within_the_errors_of_both() {
    let kept = |max_error_ns, ptp_offset_ns| Discipline {
        synchronized: Some(true),
        max_error_ns: Some(max_error_ns),
        ptp_offset_ns,
        ..Discipline::default()
    };
    let (own, other) = (kept(300.0, None), kept(200.0, Some(-50.0)));
    let stated = |source, other: &Discipline| {
        stated_by(source, (Ticks(1000), &own), (Ticks(400), other)).ok()
    };
    let offset = Offset { ns: 600.0, bound_ns: 550.0 };
    assert_eq!(stated(Source::Ptp, &other), Some(Some(offset)));
    assert_eq!(stated(Source::Tsc, &other), Some(None), "nobody keeps that one right");
    assert_eq!(stated(Source::Ptp, &Discipline::default()), None, "refused");
}
