#!/usr/bin/env python3
"""The harness's own arithmetic: parsers on captured outputs, ratios on known input.

Run: python3 -m unittest discover -s bench
"""

import json
import os
import random
import re
import socket
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from sidebyside import (  # noqa: E402
    build, mpi, openloop, parse, process, ratios, rdma, rounds, rows, stall, subjects,
)
from sidebyside.ratios import Limit  # noqa: E402
from sidebyside.rounds import Measured  # noqa: E402


def captured(name: str) -> str:
    return (HERE / "captured" / f"{name}.txt").read_text(encoding="utf-8")


def record(**changes) -> str:
    """A record of wiregauge with what is read here."""
    quantiles = [{"p": 0.25, "value": 900.0}, {"p": 0.5, "value": 1234.5}]
    value = {
        "instrument": {"recording_ns": 2.5},
        "unavailable": [],
        "faults": [],
        "runs": [
            {
                "figures": [
                    {"metric": "rtt", "summary": {"quantiles": [{"p": 0.5, "value": 2469.0}]}},
                    {"metric": "half_rtt", "summary": {"quantiles": quantiles}},
                ],
                "rates": [
                    {"metric": "bandwidth", "unit": "B/s", "rate": {"value": 3e9}},
                    {"metric": "message_rate", "unit": "msg/s", "rate": {"value": 2e7}},
                ],
            }
        ],
    }
    return json.dumps({**value, **changes})


def measured(**figures) -> dict[str, Measured]:
    """What came out of subjects: a list of figures each, one a round."""
    return {name: Measured(dict(enumerate(values))) for name, values in figures.items()}


def rdma_subjects() -> dict[str, subjects.Subject]:
    return rdma.every_subject(rdma.COUNTS["emulated"], 0, software=True)


OWN = {**subjects.every_subject(), **openloop.every_subject()}


class Parsers(unittest.TestCase):
    def test_sockperf_prints_half_round_trips_in_us(self):
        self.assertAlmostEqual(parse.sockperf_p50_ns(captured("sockperf_tcp_block")), 26504)
        self.assertAlmostEqual(parse.sockperf_p50_ns(captured("sockperf_udp_busy")), 3199)

    def test_sockperf_with_lost_messages_is_refused(self):
        text = captured("sockperf_udp_busy").replace("dropped messages = 0", "dropped messages = 3")
        with self.assertRaisesRegex(parse.Unreadable, "dropped 3"):
            parse.sockperf_p50_ns(text)

    def test_qperf_prints_its_mean_in_ns_and_bandwidth_in_bytes(self):
        self.assertEqual(parse.qperf_latency_ns(captured("qperf_tcp_lat")), 20020)
        self.assertEqual(parse.qperf_latency_ns(captured("qperf_udp_lat")), 9143.94)
        self.assertEqual(parse.qperf_bandwidth(captured("qperf_tcp_bw")), 3521642496)

    def test_iperf3_counts_what_the_receiver_got(self):
        found = parse.iperf3_bandwidth(captured("iperf3_tcp"))
        self.assertAlmostEqual(found, 18908836917.243763 / 8)

    def test_iperf3_says_why_it_failed(self):
        with self.assertRaisesRegex(parse.Unreadable, "unable to connect"):
            parse.iperf3_bandwidth('{"error": "unable to connect to server"}')

    def test_ucx_p50_is_taken_and_not_the_average(self):
        found = parse.ucx_p50_ns(captured("ucx_perftest_tag_lat"))
        self.assertAlmostEqual(found, 175)

    def test_fi_pingpong_has_four_digits_in_its_bandwidth(self):
        found = parse.fi_pingpong_mean_ns(captured("fi_pingpong_shm"))
        self.assertAlmostEqual(found, 8 / 30.93 * 1e3)

    def test_wiregauge_half_rtt_is_taken_and_not_rtt(self):
        self.assertEqual(parse.wiregauge_half_rtt_p50_ns(record()), 1234.5)

    def test_wiregauge_rates_are_told_apart(self):
        self.assertEqual(parse.wiregauge_bandwidth(record()), 3e9)
        self.assertEqual(parse.wiregauge_message_rate(record()), 2e7)

    def test_wiregauge_recording_cost_may_be_nothing(self):
        self.assertEqual(parse.wiregauge_recording_ns(record()), 2.5)
        zero = record(instrument={"recording_ns": 0.0})
        self.assertEqual(parse.wiregauge_recording_ns(zero), 0)

    def test_a_record_without_runs_gives_its_own_reason(self):
        text = record(runs=[], unavailable=[{"transport": "shm", "reason": "no /dev/shm"}])
        with self.assertRaisesRegex(parse.Unreadable, "no /dev/shm"):
            parse.wiregauge_half_rtt_p50_ns(text)

    def test_of_a_stream_what_was_missed_and_what_is_in_its_file_are_told(self):
        periodic = {"schedule": {"periodic": {"rate": 1000.0}}, "size": 500}
        run = {
            "case": periodic,
            "counts": {"sent": 1900, "received": 1890, "lost": 10, "missed_steps": 100},
            "rounds": [{"server": {"final_counters": {"file.samples": "1890"}}}],
        }
        text = record(runs=[run])
        self.assertEqual(parse.wiregauge_missed_percent(text), 5)
        # 2000 steps at 1000 a second are 2 s.
        self.assertEqual(parse.wiregauge_kept_megabytes_per_s(text), 1890 * 500 / 2 / 1e6)
        self.assertEqual(parse.wiregauge_lost(text), 10)
        nothing = record(runs=[{**run, "counts": {"received": 0, "lost": 0}}])
        with self.assertRaises(parse.Unreadable):
            parse.wiregauge_lost(nothing)

    def test_noise_is_a_share_of_the_time(self):
        text = json.dumps([{"cpu": 0, "lost_ns": 3e7, "observed_ns": 2e9}])
        self.assertEqual(parse.wiregauge_noise_percent(text), 1.5)
        quiet = json.dumps([{"cpu": 0, "lost_ns": 0.0, "observed_ns": 2e9}])
        self.assertEqual(parse.wiregauge_noise_percent(quiet), parse.LEAST_NOISE_PERCENT)
        with self.assertRaises(parse.Unreadable):
            parse.wiregauge_noise_percent("[]")

    def test_the_generator_s_cost_is_beyond_a_reading(self):
        line = json.dumps({"clock_reading_ns": 20.0, "message_ns": {"poisson": [31.5, 40.0]}})
        self.assertEqual(parse.generator_bench(line), 11.5)

    def test_bare_loops_print_one_object(self):
        self.assertEqual(parse.bare_p50_ns('{"p50_ns": 55.1, "p99_ns": 65.0, "count": 9}'), 55.1)
        self.assertEqual(parse.bare_msg_per_s('{"msg_per_s": 2e7, "count": 9}'), 2e7)

        told = '{"msg_per_s": 2.0, "bytes_per_s": 3.0, "count": 9}'
        self.assertEqual(parse.bare_bytes_per_s(told), 3)

    def test_netpipe_s_rate_has_more_digits_than_its_time(self):
        found = parse.netpipe_half_rtt_ns(captured("netpipe_openmpi"), 64)
        self.assertAlmostEqual(found, 512 / (31.89 * 2**20) * 1e9)
        with self.assertRaises(parse.Unreadable):
            parse.netpipe_half_rtt_ns(captured("netpipe_openmpi"), 4)

    def test_netpipe_s_megabits_are_of_2_to_the_20(self):
        rates = {"netpipe_openmpi_stream": 59_879.21, "netpipe_mpich_stream": 59_684.53}
        for name, rate in rates.items():
            found = parse.netpipe_bandwidth(captured(name), 65_536)
            self.assertAlmostEqual(found, rate * 131_072)
            # The time of a message, which is printed too, agrees to its digits.
            us = float(captured(name).split("Mbps in")[1].split()[0])
            self.assertAlmostEqual(65_536 / found * 1e6, us, delta=0.005)

    def test_the_best_of_rounds_is_of_all_that_were_asked_for(self):
        rate = {"value": 2e9, "rounds": [1e9, 3e9, 2e9]}
        text = record(runs=[{"rates": [{"metric": "bandwidth", "unit": "B/s", "rate": rate}]}])
        self.assertEqual(parse.wiregauge_best_bandwidth(text, 3), 3e9)
        with self.assertRaisesRegex(parse.Unreadable, "3 rounds and not 4"):
            parse.wiregauge_best_bandwidth(text, 4)

    def test_stats_memory_counts_the_samples_too(self):
        line = '{"summarize_s": 0.7, "extra_memory_over_samples": 0.25}'
        self.assertEqual(parse.stats_bench("noise\n" + line), (0.7, 1.25))

    def test_perftest_median_is_taken_and_not_the_mean(self):
        self.assertAlmostEqual(parse.perftest_typical_ns(captured("perftest_send_lat")), 18260)

    def test_perftest_megabytes_are_of_2_to_the_20(self):
        found = parse.perftest_bandwidth(captured("perftest_read_bw"))
        self.assertAlmostEqual(found, 32.89 * 1048576)
        rate = parse.perftest_message_rate(captured("perftest_send_bw"))
        self.assertAlmostEqual(rate, 53168)

    def test_perftest_whose_clock_stood_still_is_refused(self):
        text = captured("perftest_clock_stands_still")
        for read in (parse.perftest_typical_ns, stall.of_perftest):
            with self.assertRaisesRegex(parse.Unreadable, "inf"):
                read(text)
        nothing = captured("perftest_send_bw").replace("0.41", "0.00")
        with self.assertRaisesRegex(parse.Unreadable, "BW average"):
            parse.perftest_bandwidth(nothing)

    def test_perftest_prints_a_maximum_below_its_own_largest_sample(self):
        told = stall.of_perftest(captured("perftest_send_lat_unsorted"))
        self.assertEqual((told.printed_max, told.printed_sd), ("298.60", "12.82"))
        self.assertEqual(told.sample_max, 5519)
        self.assertAlmostEqual(told.sample_sd, 879.65, places=2)

    def test_every_parser_refuses_what_it_cannot_read(self):
        for name, subject in {**OWN, **rdma_subjects(), **mpi.every_subject()}.items():
            for text in ("", "{}", "[1]", "nonsense\n", '{"p50_ns": -1, "msg_per_s": true}'):
                with self.subTest(name=name, text=text), self.assertRaises(parse.Unreadable):
                    subject.read(text)


class Ratios(unittest.TestCase):
    def test_median_of_odd_and_even(self):
        self.assertEqual(ratios.median([3, 1, 2]), 2)
        self.assertEqual(ratios.median([4, 1, 2, 3]), 2.5)

    def test_interval_has_the_ranks_of_the_sign_test(self):
        # Ranks from tables of the binomial distribution at 1/2, two-sided 5 %.
        known = {6: 1, 7: 1, 8: 1, 9: 2, 11: 2, 12: 3, 15: 4, 20: 6, 25: 8, 30: 10, 50: 18}
        for n, rank in known.items():
            low, high = ratios.median_interval(list(range(1, n + 1)))
            self.assertEqual((low, high), (rank, n + 1 - rank), f"n = {n}")

    def test_no_interval_below_six_rounds(self):
        for n in range(1, 6):
            self.assertIsNone(ratios.median_interval(list(range(n))))

    def test_interval_covers_the_median_as_often_as_it_says(self):
        draw = random.Random(7)
        trials, covered = 4000, 0
        for _ in range(trials):
            low, high = ratios.median_interval([draw.lognormvariate(0, 1) for _ in range(11)])
            covered += low <= 1 <= high
        # 11 rounds, ranks 2 and 10: 98.83 % exactly; 4 standard errors are 0.7 %.
        self.assertAlmostEqual(covered / trials, 0.9883, delta=0.007)

    def test_only_rounds_with_both_figures_are_paired(self):
        self.assertEqual(ratios.paired({0: 2.0, 1: 3.0, 3: 9.0}, {0: 1.0, 3: 3.0, 4: 1.0}), [2, 3])

    def test_a_median_limit_is_judged_by_the_median(self):
        limit = Limit(1.02, at_most=True)
        self.assertEqual(ratios.verdict(limit, ratios.spread([1.0] * 7)), "held")
        self.assertEqual(ratios.verdict(limit, ratios.spread([1.1] * 7)), "not held")
        unsure = ratios.spread([0.9, 0.9, 1.0, 1.0, 1.0, 1.1, 1.1])
        self.assertEqual(ratios.verdict(limit, unsure), "held?")

    def test_an_interval_limit_is_broken_only_beyond_the_interval(self):
        most = Limit(1.0, at_most=True, by_interval=True)
        self.assertEqual(ratios.verdict(most, ratios.spread([0.9] * 7)), "held")
        self.assertEqual(ratios.verdict(most, ratios.spread([0.99] + [1.1] * 6)), "held?")
        self.assertEqual(ratios.verdict(most, ratios.spread([1.01] * 7)), "not held")
        least = Limit(1.0, at_most=False, by_interval=True)
        self.assertEqual(ratios.verdict(least, ratios.spread([0.9] * 6 + [1.01])), "held?")
        self.assertEqual(ratios.verdict(least, ratios.spread([0.9] * 7)), "not held")
        self.assertEqual(ratios.verdict(least, ratios.spread([1.2] * 5)), "too few rounds")


class Rounds(unittest.TestCase):
    def setUp(self):
        self.all = list(subjects.every_subject().values())

    def test_each_round_has_every_subject_once_and_groups_together(self):
        for number in range(5):
            order = rounds.order(self.all, 1, number)
            self.assertCountEqual([s.name for s in order], [s.name for s in self.all])
            groups = [s.group for s in order]
            starts = [g for i, g in enumerate(groups) if i == 0 or groups[i - 1] != g]
            self.assertEqual(len(starts), len(set(starts)))

    def test_the_order_is_that_of_its_seed_and_round(self):
        names = [[s.name for s in rounds.order(self.all, 1, n)] for n in (0, 0, 1)]
        self.assertEqual(names[0], names[1])
        self.assertNotEqual(names[0], names[2])

    def test_within_a_group_either_may_come_first(self):
        pair = [s for s in self.all if s.group == "unix busy"]
        first = {rounds.order(pair, 1, number)[0].name for number in range(20)}
        self.assertEqual(first, {"wiregauge unix busy", "bare unix busy"})

    def test_a_subject_that_never_worked_is_given_up(self):
        tried = []

        def fail(subject):
            tried.append(subject.name)
            raise process.NotMeasured("no")

        one = self.all[:1]
        measured, elsewhere = rounds.run(one, 4, 1, fail, lambda _: None)
        self.assertEqual(len(tried), rounds.MOST_FAILURES)
        self.assertEqual(measured[one[0].name].reason, "no")
        self.assertEqual(len(elsewhere), 4)


class Rows(unittest.TestCase):
    ROW = rows.Row("x p50", "a", ("b", "c"), Limit(1.0, at_most=True, by_interval=True))

    def test_every_row_names_subjects_that_exist(self):
        known = {*OWN, *mpi.every_subject(), "clean build", "binary size"}
        for row in rows.every_row() + openloop.every_row() + mpi.every_row():
            self.assertLessEqual({row.ours, *row.against}, known, row.what)

    def test_figures_of_a_row_have_one_unit_and_one_group(self):
        known = {**OWN, **mpi.every_subject()}
        for row in rows.every_row() + openloop.every_row() + mpi.every_row():
            held = [known[name] for name in (row.ours, *row.against) if name in known]
            self.assertLessEqual(len({subject.unit for subject in held}), 1, row.what)
            self.assertLessEqual(len({subject.group for subject in held}), 1, row.what)

    def test_the_best_peer_is_the_one_with_the_best_median(self):
        seen = measured(a=[10.0] * 7, b=[20.0] * 7, c=[1.0, 1.0] + [40.0] * 5)
        result = rows.judge(self.ROW, seen)
        self.assertEqual((result.against, result.seen.median), ("b", 0.5))
        self.assertEqual(result.verdict, "held")

    def test_of_rates_the_best_is_the_highest(self):
        row = rows.Row("rate", "a", ("b", "c"), Limit(1.0, at_most=False, by_interval=True))
        result = rows.judge(row, measured(a=[10.0] * 7, b=[20.0] * 7, c=[5.0] * 7))
        self.assertEqual((result.against, result.verdict), ("b", "not held"))

    def test_a_ratio_is_of_one_round_and_not_of_medians(self):
        seen = measured(a=[1.0, 2.0, 9.0], b=[1.0, 4.0, 3.0], c=[99.0] * 3)
        self.assertEqual(rows.judge(self.ROW, seen).values, [1, 0.5, 3])

    def test_what_was_not_measured_has_its_reason(self):
        seen = measured(b=[1.0])
        seen["a"] = Measured(failures={0: "it is not built"})
        result = rows.judge(self.ROW, seen)
        self.assertEqual((result.verdict, result.reason), ("not measured", "it is not built"))

    def test_a_missing_candidate_is_named(self):
        result = rows.judge(self.ROW, measured(a=[1.0] * 7, b=[2.0] * 7))
        self.assertIn("without c", result.reason)

    def test_patterns_choose_rows(self):
        found = rows.chosen(rows.every_row(), "shm*bare")
        self.assertEqual([r.limit.value for r in found], [1.10, 0.8, 0.5])
        self.assertEqual(rows.chosen(rows.every_row(), "no such row"), [])


class Commands(unittest.TestCase):
    def site(self, **missing):
        programs = {"wiregauge": "/w", "bare": "/b", "stats": "/s"}
        return process.Site(programs, missing, 0, 1, quick=False)

    def test_every_command_is_filled_and_every_port_is_its_own(self):
        site = self.site()
        ports = []
        for subject in subjects.every_subject().values():
            pair = (site.free_port(), site.free_port())
            ports += pair
            for template in filter(None, (subject.client, subject.server)):
                words = site.fill(template, subject, pair)
                self.assertNotRegex(" ".join(words), "[{}]")
        self.assertEqual(len(ports), len(set(ports)))

    def test_peers_run_on_the_cpus_of_wiregauge(self):
        for subject in subjects.every_subject().values():
            if subject.server:
                self.assertTrue(subject.client.startswith("taskset -c {client} "), subject.name)
                self.assertTrue(subject.server.startswith("taskset -c {server} "), subject.name)

    def test_each_rank_of_netpipe_has_the_cpu_of_wiregauge_s(self):
        site = process.Site({"NPopenmpi": "/o", "NPmpich2": "/m"}, {}, 2, 5, quick=False)
        peers = [s for s in mpi.every_subject().values() if s.program == "netpipe"]
        self.assertEqual(len(peers), 4)
        for subject in peers:
            command = " ".join(site.fill(subject.client, subject, (1, 2)))
            self.assertRegex(command, "-n 1 taskset -c 2 .* : -n 1 taskset -c 5 ", subject.name)

    def test_addresses_are_loopback(self):
        for subject in subjects.every_subject().values():
            for address in re.findall(r"\d+\.\d+\.\d+\.\d+", subject.client):
                self.assertEqual(address, "127.0.0.1")

    def test_what_is_not_built_is_a_reason(self):
        subject = subjects.every_subject()["bare tcp busy"]
        with self.assertRaisesRegex(process.NotMeasured, "no compiler"):
            process.measure(subject, self.site(bare="no compiler"))

    def test_a_netpipe_that_is_not_installed_is_a_reason_and_names_its_package(self):
        with self.assertRaises(build.Failed) as failed:
            build.installed("NPmpich2-not-there", mpi.PACKAGES["NPmpich2"])
        site = self.site(NPmpich2=str(failed.exception))
        for name in ("latency", "stream"):
            subject = mpi.every_subject()[f"netpipe mpich {name}"]
            with self.assertRaisesRegex(process.NotMeasured, "apt-get install netpipe-mpich2"):
                process.measure(subject, site)

    def test_a_program_that_is_not_there_is_a_reason(self):
        subject = subjects.every_subject()["bare tcp busy"]
        with self.assertRaisesRegex(process.NotMeasured, "is not there"):
            process.measure(subject, self.site())

    def test_a_child_that_will_not_end_is_made_to(self):
        code = "import signal,time; signal.signal(15, signal.SIG_IGN); print(); time.sleep(60)"
        child = subprocess.Popen([sys.executable, "-uc", code], stdout=subprocess.PIPE)
        child.stdout.readline()
        process.end(child)
        child.stdout.close()
        self.assertEqual(child.returncode, -9)

    def test_a_listening_port_is_seen_without_a_connection(self):
        with socket.socket() as listener, socket.socket(type=socket.SOCK_DGRAM) as datagram:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            self.assertFalse(process.is_bound("tcp", port))
            listener.listen()
            self.assertTrue(process.is_bound("tcp", port))
            datagram.bind(("127.0.0.1", 0))
            self.assertTrue(process.is_bound("udp", datagram.getsockname()[1]))


@unittest.skipUnless(
    os.environ.get("BENCH_RUN"), "BENCH_RUN=1 compiles the bare loops and runs each once"
)
class BareLoops(unittest.TestCase):
    def test_each_runs_and_prints_its_figure(self):
        site = process.Site({"bare": str(build.bare())}, {}, 0, 1, quick=True)
        for subject in subjects.every_subject().values():
            if subject.program == "bare":
                with self.subTest(subject.name):
                    self.assertGreater(process.measure(subject, site).figure, 0)


if __name__ == "__main__":
    unittest.main()
