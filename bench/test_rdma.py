#!/usr/bin/env python3
"""The comparison with perftest: its command lines, its counts, and the machine that it runs in."""

import argparse
import contextlib
import io
import re
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from sidebyside import device, rdma, report, rows, session, stall, testbed  # noqa: E402
from test_peers import Measured, rdma_subjects, record  # noqa: E402


class Rdma(unittest.TestCase):
    def test_every_row_names_subjects_of_one_unit_and_group(self):
        known = rdma_subjects()
        for row in rdma.every_row(software=True):
            held = [known[name] for name in (row.ours, *row.against)]
            self.assertEqual(len({(one.unit, one.group) for one in held}), 1, row.what)

    def test_both_programs_are_told_the_same(self):
        known = rdma_subjects()
        for row in rdma.every_row(software=True):
            ours, theirs = known[row.ours].client, known[row.against[0]].client
            pairs = [("--size", "-s"), ("--send-depth", "-t"), ("--receive-depth", "-r")]
            if "ib_atomic_lat" in theirs:
                # Which knows no other size than that of an atomic.
                self.assertIn(" --size 8 ", ours)
                pairs = pairs[1:]
            for mine, other in pairs + [("--burst", "-l"), ("--signal-every", "-Q")]:
                values = [
                    re.findall(rf" {flag} (\S+)", text) for flag, text in
                    ((mine, ours), (other, theirs))
                ]
                self.assertEqual(*values, f"{row.what}: {mine}")
            self.assertEqual("block" in ours, " -e" in theirs, row.what)
            for quick in (False, True):
                messages = {known[n].messages(quick) for n in (row.ours, *row.against)}
                self.assertEqual(len(messages), 1, row.what)
            self.assertTrue(theirs.startswith("taskset -c {client} "), row.what)

    def test_only_software_is_compared_with_a_peer_of_two_threads_too(self):
        threaded = {row.ours: row for row in rdma.every_row(software=True)
                    if row.against[0].endswith(", two threads")}
        busy = [f"wiregauge {service} {operation} busy"
                for service, operation, wait in rdma.LATENCIES if wait == "busy"]
        self.assertEqual(sorted(threaded), sorted(busy))
        plain = [row for row in rdma.every_row(software=True) if row not in threaded.values()]
        self.assertEqual(plain, rdma.every_row(software=False))
        known = rdma_subjects()
        for row in threaded.values():
            name = row.against[0].removesuffix(", two threads")
            for end in ("client", "server"):
                told, without = getattr(known[row.against[0]], end), getattr(known[name], end)
                self.assertEqual(told.replace(rdma.THREADED, "", 1), without)
                self.assertIn(rdma.THREADED, told)

    def test_a_quick_run_has_whole_lists_and_more_than_a_queue_holds(self):
        for counts in rdma.COUNTS.values():
            for subject in rdma.every_subject(counts, 0, software=True).values():
                messages = subject.messages(quick=True)
                self.assertLess(messages, max(subject.count, 4 * rdma.DEPTH + 1), subject.name)
                lists = re.findall(r" -l (\d+)", subject.client)
                if lists:
                    self.assertEqual(messages % int(lists[0]), 0, subject.name)
                if subject.group.endswith("bandwidth"):
                    self.assertGreater(messages, rdma.DEPTH, subject.name)

    def test_only_rows_that_sleep_have_their_switches_printed(self):
        known = rdma_subjects()
        sleeping = [row for row in rdma.every_row(software=True) if known[row.ours].sleeps]
        self.assertEqual([row.what for row in sleeping], ["rc send block half_rtt p50 64 B"])
        [row] = sleeping
        seen = {
            row.ours: Measured({0: 10.0, 1: 11.0}, switches={0: 2.0, 1: 2.5}),
            row.against[0]: Measured({0: 20.0}, switches={0: 4.0}),
        }
        text = report.switches([rows.judge(row, seen)], seen)
        self.assertRegex(text.splitlines()[-1], r"^rc send block .* 2\.25 +4\.00$")
        self.assertIsNone(report.switches([], seen))

    def test_an_inline_limit_is_told_to_both(self):
        known = rdma.every_subject(rdma.COUNTS["adapter"], 128, software=False)
        self.assertIn(" --inline 128", known["wiregauge rc send busy"].client)
        self.assertIn(" -I 128", known["ib_send_lat rc send busy"].client)

    def test_a_device_without_an_adapter_is_software(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "rxe0/ports/1").mkdir(parents=True)
            (Path(folder) / "rxe0/ports/1/state").write_text("4: ACTIVE\n")
            (Path(folder) / "mlx5_0/device").mkdir(parents=True)
            (Path(folder) / "mlx5_0/ports/1").mkdir(parents=True)
            (Path(folder) / "mlx5_0/ports/1/state").write_text("1: DOWN\n")
            self.assertTrue(device.is_software("rxe0", folder))
            self.assertFalse(device.is_software("mlx5_0", folder))
            self.assertEqual(device.first_device(folder), "rxe0")

    def test_deviation_divides_by_one_less(self):
        self.assertAlmostEqual(stall.deviation([1.0, 2.0, 3.0, 4.0]), (5 / 3) ** 0.5)
        # One stall of 5 ms (half of it a half round trip) in 1000 messages of 1 us: its own
        # distance, divided by the root of 1000.
        self.assertAlmostEqual(stall.deviation([1.0] * 999 + [2501.0]), 2500 / 1000**0.5)

    def test_wiregauge_spread_is_told_in_us(self):
        text = record(
            runs=[{"figures": [{"metric": "half_rtt", "summary": {"max": 2.5e6, "sd": 79_057}}]}]
        )
        told = stall.of_wiregauge(text)
        self.assertEqual((told.printed_max, told.printed_sd), ("2500.00", "79.06"))

    def test_the_server_is_the_descendant_on_its_cpu(self):
        with tempfile.TemporaryDirectory() as folder:
            of = {10: (1, "0-1"), 11: (10, "0"), 12: (11, "1"), 13: (1, "1"), 14: (10, "1")}
            for process_id, (parent, cpus) in of.items():
                (Path(folder) / str(process_id)).mkdir()
                state = "Z (zombie)" if process_id == 14 else "R (running)"
                (Path(folder) / str(process_id) / "status").write_text(
                    f"State:\t{state}\nPPid:\t{parent}\nCpus_allowed_list:\t{cpus}\n"
                )
            self.assertEqual(stall.pinned_below(10, 1, folder), [12])


class Testbed(unittest.TestCase):
    def test_processors_are_the_busiest_threads_of_the_emulator_below(self):
        with tempfile.TemporaryDirectory() as folder:

            def stat(path: str, name: str, parent: int, ticks: int = 0):
                (Path(folder) / path).mkdir(parents=True, exist_ok=True)
                text = f"1 ({name}) S {parent} " + "0 " * 9 + f"{ticks} 1 0\n"
                (Path(folder) / path / "stat").write_text(text)

            stat("5", "wire (gauge)", 1)
            stat("6", "qemu-system-x86", 5)
            stat("7", "qemu-system-x86", 1)
            for thread, ticks in ((6, 7), (8, 0), (9, 479), (10, 70)):
                stat(f"6/task/{thread}", "qemu-system-x86", 5, ticks)
            self.assertEqual(testbed.emulators_below(5, folder), [6])
            self.assertEqual(testbed.processors_of(6, folder), [9, 10])


    def test_the_program_goes_into_the_machine_and_the_results_come_out(self):
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder) / "results"

            def machine(command, environment):
                self.assertEqual(environment["WIREGAUGE"], "/w")
                self.assertEqual(command[1:3], ["--timeout", "24min"])
                out = Path(command[command.index("--out") + 1])
                out.mkdir()
                (out / "run.json").write_text("{}")
                self.assertEqual(command[command.index("--") + 1:], ["bench"])
                return 1

            with unittest.mock.patch.object(testbed, "_run_machine", machine):
                with contextlib.redirect_stdout(io.StringIO()):
                    code = testbed.run(["bench"], Path("/w"), results, testbed.minutes(7))
            self.assertEqual((code, (results / "run.json").read_text()), (1, "{}"))

    def test_options_that_were_typed_shorter_go_into_the_machine_whole(self):
        given = {"binary": Path("/w"), "rounds": 6, "rows": "rc*busy", "quick": True,
                 "no_stall": False, "cpus": "0,1", "seed": 1, "device": None, "out": None}
        words = session.words_inside(argparse.Namespace(**given), Path("/w"))
        self.assertEqual(" ".join(words), "--emulated --binary /w --out /out --rounds 6"
                         " --rows rc*busy --cpus 0,1 --seed 1 --quick")


if __name__ == "__main__":
    unittest.main()
