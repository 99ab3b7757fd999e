# SPDX-License-Identifier: Apache-2.0
"""The Python package: the same answers as the command line, errors with their places, threads, Ctrl-C.

Run by ctest with PYTHONPATH (the package) and WEFT (the program). Parts that need pandas are skipped without it.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import weft

WEFT = os.environ["WEFT"]
ROOT = Path(__file__).resolve().parents[2]
SMALL = {"fabric": {"use": "dgx1-v100"}, "fidelity": "fluid",
         "workload": {"collective": "all_reduce", "size": "64 MiB", "algorithm": "ring"}}
SWEEP = {"kind": "sweep", "name": "small", "scenario": {**SMALL, "fidelity": "analytic"},
         "axes": [{"pointer": "/workload/gpus", "values": [2, 4, 8]}, {"pointer": "/workload/size", "values": ["1 MiB", "1 GiB"]}],
         "outputs": {"time_s": "/time_s", "busbw_gbs": "/jobs/0/busbw_gbs", "none": "/none", "algorithm": "/jobs/0/algorithm"}}
# Long enough to be interrupted: minutes if nobody does.
ENDLESS = {"fabric": {"use": "hgx-h100+roce-400g", "set": {"/servers": 16}}, "fidelity": "packet",
           "workload": {"pattern": "all_to_all", "size": "64 MiB"}}


def command_line(*args):
    return json.loads(subprocess.run([WEFT, *args, "--json"], capture_output=True, check=True, text=True).stdout)


def variant(i):
    scenario = json.loads(json.dumps(SMALL))
    scenario["workload"]["size"] = f"{1 + i} MiB"
    scenario["workload"]["gpus"] = 2 + i % 7
    scenario["fidelity"] = ["analytic", "fluid"][i % 2]
    return scenario


class Runs(unittest.TestCase):
    def test_a_path_equals_the_command_line(self):
        path = ROOT / "scenarios/01-dgx1-algorithms.json"
        ours, theirs = weft.run(path), command_line("run", path)
        for key in ("time_s", "bound_s", "fingerprint", "events", "jobs", "evidence", "effective"):
            self.assertEqual(ours[key], theirs[key], key)
        self.assertEqual([dict(row) for row in ours["links"].rows()], theirs["links"])

    def test_a_dict_equals_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "s.json"
            path.write_text(json.dumps(SMALL))
            self.assertEqual(weft.run(SMALL).fingerprint, weft.run(path).fingerprint)
            self.assertEqual(weft.run(str(path)).time_s, command_line("run", str(path))["time_s"])

    def test_what_is_set_is_set(self):
        report = weft.run(SMALL, fidelity="analytic", seed=7, set={"/workload/gpus": 4, "/workload/size": "1 MiB"})
        self.assertEqual((report["fidelity"], report["seed"], report.jobs[0]["ranks"], report.jobs[0]["bytes"]),
                         ("analytic", 7, 4, 1 << 20))

    def test_tables_are_arrays(self):
        report = weft.run(SMALL)
        links = report["links"]
        self.assertIsInstance(links["utilisation"], np.ndarray)
        self.assertEqual(links["utilisation"].dtype, np.float64)
        self.assertEqual(len(links), len(links["id"]))
        self.assertIn("nvlink", set(links["class"]))
        self.assertEqual(len(report["flows"]), 0)

    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is missing")
        report = weft.run(SMALL)
        frame = report.to_pandas("links")
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(len(frame), len(report["links"]))
        self.assertEqual(report.to_pandas()["time_s"][0], report.jobs[0]["time_s"])

    def test_a_hundred_in_a_pool_have_the_fingerprints_of_the_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            def one(i):
                path = Path(folder) / f"{i}.json"
                path.write_text(json.dumps(variant(i)))
                return command_line("run", path)["fingerprint"]

            with ThreadPoolExecutor(8) as pool:
                ours = list(pool.map(lambda i: weft.run(variant(i)).fingerprint, range(100)))
                theirs = list(pool.map(one, range(100)))
        self.assertEqual(ours, theirs)
        self.assertGreater(len(set(ours)), 90)

    def test_other_threads_run_meanwhile(self):
        counted, stop = [0], threading.Event()

        def count():
            while not stop.is_set():
                counted[0] += 1
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        start = time.monotonic()
        weft.run(SMALL | {"workload": {"pattern": "all_to_all", "size": "4 MiB"}, "fidelity": "packet"}, quick=True)
        took = time.monotonic() - start
        stop.set()
        thread.join()
        self.assertGreater(counted[0], min(5, took / 0.02))


class Errors(unittest.TestCase):
    def test_a_bad_scenario_says_where(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bad.json"
            path.write_text('{"fabric": {"use": "dgx1-v100"},\n "workload": {"collective": "all_reduce", "size": "1 GiBi"}}\n')
            with self.assertRaises(weft.InputError) as caught:
                weft.run(path)
            error = caught.exception
            self.assertEqual((error.file, error.line, error.pointer), (str(path), 2, "/workload/size"))
            self.assertEqual(error.column, 51)
            self.assertIn("bad.json:2:51: error: /workload/size", str(error))
            self.assertTrue(error.problems[0].cure)

    def test_all_problems_at_once(self):
        with self.assertRaises(weft.InputError) as caught:
            weft.run({"fabric": {"use": "dgx1-v100"}, "seed": -1, "workload": {"colective": "all_reduce"}})
        self.assertGreaterEqual(len(caught.exception.problems), 2)
        self.assertIn("/workload/colective", [p.pointer for p in caught.exception.problems])

    def test_it_is_a_value_error_and_an_error_of_weft(self):
        for kind in (ValueError, weft.Error):
            with self.assertRaises(kind):
                weft.run("no/such/file.json")

    def test_flags_and_values_that_make_no_sense(self):
        with self.assertRaises(weft.InputError):
            weft.run(SMALL, fidelity="exact")
        with self.assertRaises(weft.InputError):
            weft.call("no-such-verb")
        with self.assertRaises(ValueError):
            weft.run(SMALL, set={"/seed": float("nan")})

    def test_limits(self):
        with self.assertRaises(weft.LimitReached) as caught:
            weft.plan("llama-3.1-405b", "hgx-h100", 8, global_batch=8, seq=8192)
        self.assertIn("does not fit", str(caught.exception))
        self.assertIn("does_not_fit", caught.exception.answer)

    def test_check(self):
        self.assertEqual(weft.check(SMALL), [])
        problems = weft.check({"fabric": {"use": "dgx1-v1oo"}, "workload": {}})
        self.assertEqual(problems[0].pointer, "/fabric/use")
        self.assertIn("dgx1-v100", problems[0].fact)
        self.assertFalse(problems[0].warning)


class Others(unittest.TestCase):
    def test_plan(self):
        found = weft.plan("llama-3-8b", "hgx-h100", 8, top=3, simulate=0, fix={"tp": 2})
        self.assertEqual(len(found["plans"]), 3)
        self.assertEqual({p["plan"]["tp"] for p in found["plans"]}, {2})
        theirs = command_line("plan", "--llm", "llama-3-8b", "--fabric", "hgx-h100", "--gpus", "8", "--top", "3", "--simulate", "0",
                              "--fix", "tp=2")
        self.assertEqual(found["plans"], theirs["plans"])

    def test_plan_for_inference(self):
        found = weft.plan("llama-3-8b", "hgx-h100", 2, mode="inference", job={"/requests/count": 32, "/requests/output": 16})
        self.assertEqual(len(found["plans"]), 3)  # two replicas, tp 2, pp 2
        self.assertGreater(found["plans"][0]["output_tokens_per_s"], found["plans"][-1]["output_tokens_per_s"])

    def test_sweep(self):
        table = weft.sweep(SWEEP)
        self.assertEqual(table.columns, ["point", "gpus", "size", "status", "time_s", "busbw_gbs", "none", "algorithm", "error"])
        self.assertEqual(table["gpus"].tolist(), [2, 2, 4, 4, 8, 8])
        self.assertEqual(set(table["status"]), {"ok"})
        one = weft.run(SWEEP["scenario"], set={"/workload/gpus": 4, "/workload/size": "1 GiB"})
        self.assertEqual(table["time_s"][3], one.time_s)
        self.assertTrue(np.isnan(table["none"]).all())

    def test_a_sweep_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            first = weft.sweep(SWEEP, folder, shard=(0, 2), jobs=2)
            self.assertEqual(len(first), 3)
            self.assertEqual(len(weft.sweep(SWEEP, folder, resume=True)), 6)
            with self.assertRaises(weft.InputError):
                weft.sweep(SWEEP, folder)

    def test_failed_points_are_rows(self):
        bad = {**SWEEP, "axes": [{"pointer": "/workload/gpus", "values": [8, 9]}]}
        with self.assertWarns(weft.Warning):
            table = weft.sweep(bad)
        self.assertEqual(table["status"].tolist(), ["ok", "failed"])
        self.assertIn("9 GPUs are wanted", table["error"][1])

    def test_fabric(self):
        fabric = weft.load_fabric("hgx-h100+ib-ndr", set={"/servers": 4})
        self.assertEqual(fabric["gpus"], 32)
        self.assertEqual(int((fabric.nodes["kind"] == "gpu").sum()), 32)
        self.assertEqual(fabric.document["servers"], 4)
        # A link's ends are rows of nodes.
        ends = fabric.nodes["name"][fabric.links["from"]] + ":" + fabric.nodes["name"][fabric.links["to"]]
        self.assertTrue(all(i.split("#")[0] == e for i, e in zip(fabric.links["id"], ends)))
        self.assertEqual(weft.load_fabric(fabric.document)["gpus"], 32)
        with self.assertRaises(weft.InputError) as caught:
            weft.load_fabric("hgx-h100+ib-ndr", set={"/server": 4})
        self.assertEqual(caught.exception.pointer, "/server")

    def test_validate_catalogue_and_call(self):
        ours, theirs = (which["sets"] for which in (weft.validate(only="p2p nvlink"), command_line("validate", "--only", "p2p nvlink")))
        self.assertEqual(ours, theirs)
        self.assertIn("dgx2", [entry["name"] for entry in weft.catalogue("servers")])
        rows = weft.call("nccl-tests", "all_reduce_perf", "--fabric", "dgx1-v100", "-b", "1M", "-e", "4M", "--json")["rows"]
        self.assertEqual([row["bytes"] for row in rows], [1 << 20, 1 << 21, 1 << 22])
        self.assertIn("weft", weft.call("--version"))


class Interrupts(unittest.TestCase):
    def interrupted(self, work):
        code = (f"import weft, sys, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nENDLESS = {ENDLESS!r}\n"
                f"print('ready', flush=True)\ntry:\n    {work}\n"
                "except KeyboardInterrupt:\n    print('interrupted', weft.run({'fabric': 'dgx2', 'workload':"
                " {'collective': 'all_reduce', 'size': '1 MiB'}}).time_s > 0)\n")
        job = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(job.stdout.readline().strip(), "ready")
        time.sleep(2)
        start = time.monotonic()
        job.send_signal(signal.SIGINT)
        out, err = job.communicate(timeout=120)
        self.assertEqual(out.strip(), "interrupted True", err)
        return time.monotonic() - start

    def test_a_run(self):
        self.assertLess(self.interrupted("weft.run(ENDLESS, quick=True)"), 20)

    def test_a_sweep(self):
        self.assertLess(self.interrupted("weft.sweep({'kind': 'sweep', 'scenario': ENDLESS, 'axes': [{'pointer': '/seed',"
                                         " 'values': list(range(50))}]})"), 20)


if __name__ == "__main__":
    warnings.simplefilter("error", weft.Warning)
    unittest.main()
