# SPDX-License-Identifier: Apache-2.0
"""weft: a discrete-event simulator of GPU interconnect fabrics.

    >>> import weft
    >>> report = weft.run({"fabric": {"use": "dgx2"}, "workload": {"collective": "all_reduce", "size": "1 GiB"}})
    >>> report["jobs"][0]["busbw_gbs"], report.fingerprint
    >>> report.to_pandas("links").sort_values("utilisation")

Scenarios, sweeps and fabrics are dicts as in their JSON files, or paths. What `weft` prints as JSON comes back as dicts; its long
lists are tables of numpy arrays. Numbers are SI unless the key says otherwise. Calls run in C++ without the interpreter's lock, so a
thread pool uses all cores, and Ctrl-C ends them.
"""
from __future__ import annotations

import json as _json
import os as _os
import tempfile as _tempfile
import warnings as _warnings
from pathlib import Path as _Path
from typing import TYPE_CHECKING, Any, Iterator, Mapping, NamedTuple, Optional, Sequence, Union

from . import _weft
from ._weft import Problem

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__version__: str = _weft.version
__all__ = ["Bug", "CheckedProblem", "Error", "Fabric", "InputError", "LimitReached", "Missing", "Problem", "Report", "Table", "Warning", "call",
           "catalogue", "check", "load_fabric", "plan", "run", "sweep", "sweep_table", "validate"]

#: A JSON object, or the path of a file that holds one.
Document = Union[Mapping[str, Any], str, "_os.PathLike[str]"]

_TABLES = ["flows", "links", "critical_path", "bottlenecks"]


class Error(Exception):
    """Base of what weft raises. The message is what the command line would print."""


class InputError(Error, ValueError):
    """The input cannot be used.

    `problems` lists all of them; `file`, `line`, `column` and `pointer` are those of the first (line 0: no place).
    """

    def __init__(self, text: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(text.rstrip())
        self.problems = list(problems)
        first = next((p for p in self.problems if not p.warning), None)
        self.file: str = first.file if first else ""
        self.line: int = first.line if first else 0
        self.column: int = first.column if first else 0
        self.pointer: str = first.pointer if first else ""


class Missing(Error):
    """A file of weft's own, a library or a tool is not there."""


class LimitReached(Error):
    """Too long, too large, or it does not fit. `answer` is the JSON that there is all the same, or None."""

    answer: Optional[dict] = None


class Bug(Error):
    """A mistake of weft's own."""


class Warning(UserWarning):  # noqa: A001 - the name that people look for
    """What weft would have warned of on a terminal."""


class CheckedProblem(NamedTuple):
    """A problem as check() lists it: the attributes of Problem."""

    file: str
    line: int
    column: int
    warning: bool
    pointer: str
    fact: str
    cure: str


class Table(Mapping[str, "np.ndarray"]):
    """Columns of one length by name, as numpy arrays. len() counts rows."""

    def __init__(self, columns: Mapping[str, "np.ndarray"]) -> None:
        self._columns = dict(columns)

    def __getitem__(self, name: str) -> "np.ndarray":
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __bool__(self) -> bool:
        return len(self) > 0

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Row by row, as dicts."""
        for i in range(len(self)):
            yield {name: values[i] for name, values in self._columns.items()}

    def to_pandas(self) -> "pd.DataFrame":
        """A pandas.DataFrame of all columns."""
        import pandas
        return pandas.DataFrame(self._columns)

    def __repr__(self) -> str:
        return f"<weft.Table of {len(self)} rows: {', '.join(self._columns)}>"


class Report(dict):
    """The report of a run: a dict with the keys of report.json.

    The lists flows, links, critical_path and bottlenecks are Tables.
    """

    @property
    def time_s(self) -> float:
        """How long it took, simulated seconds."""
        return self["time_s"]

    @property
    def bound_s(self) -> float:
        """What no schedule can beat on this fabric."""
        return self["bound_s"]

    @property
    def fingerprint(self) -> str:
        """Equal fingerprints: the same things happened in the same order."""
        return self["fingerprint"]

    @property
    def jobs(self) -> list[dict[str, Any]]:
        """One dict per job."""
        return self["jobs"]

    def to_pandas(self, table: str = "jobs") -> "pd.DataFrame":
        """A table of the report (jobs, links, flows, critical_path, bottlenecks) as a pandas.DataFrame."""
        found = self[table]
        if isinstance(found, Table):
            return found.to_pandas()
        import pandas
        return pandas.json_normalize(found)

    def __repr__(self) -> str:
        return f"<weft.Report {self.get('scenario') or 'of a scenario'}: {self['time_s']:.6g} s, fingerprint {self['fingerprint']}>"


class Fabric(dict):
    """A fabric as `weft topo --json` describes it, with `nodes` and `links` as Tables and the resolved `document`."""

    nodes: Table
    links: Table
    document: dict[str, Any]

    def __repr__(self) -> str:
        return f"<weft.Fabric {self.get('fabric')}: {self.get('gpus')} GPUs, {len(self.nodes)} nodes, {len(self.links)} links>"


def _name(document: Document, kind: str, documents: dict[str, str]) -> str:
    """How the command line refers to a document; a dict becomes a file in memory."""
    if isinstance(document, Mapping):
        name = f"<{kind}>.json"
        documents[name] = _json.dumps(document, allow_nan=False)
        return name
    return _os.fspath(document)


def _sets(values: Optional[Mapping[str, Any]]) -> list[str]:
    return [f"{pointer}={_json.dumps(value, allow_nan=False)}" for pointer, value in (values or {}).items()]


def _flags(**values: Any) -> list[str]:
    out = []
    for name, value in values.items():
        if value is not None:
            out += ["--" + name.replace("_", "-"), str(value)]
    return out


def _result(answer: "_weft.Answer", stacklevel: int = 3) -> str:
    """The output of a command that went well; else what it said is raised."""
    if answer.code == 2:
        raise InputError(answer.err or answer.out, answer.problems)
    if answer.code == 3:
        raise Missing(answer.err.strip())
    if answer.code == 4:
        error = LimitReached(answer.err.strip() or answer.out.strip())
        if answer.out.startswith("{"):
            error.answer = _weft.read(answer.out, [])
        raise error
    if answer.code != 0:
        raise Bug(answer.err.strip())
    if answer.err.strip():
        _warnings.warn(answer.err.strip(), Warning, stacklevel=stacklevel + 1)
    return answer.out


def run(scenario: Document, *, fidelity: Optional[str] = None, seed: Optional[int] = None,
        set: Optional[Mapping[str, Any]] = None, top: Optional[int] = None, quick: bool = False) -> Report:  # noqa: A002
    """Simulates a scenario.

    scenario: a dict, or the path of a file. Paths inside a dict are relative to the current folder.
    fidelity: "analytic", "fluid" or "packet"; beats the scenario's own, as do the others.
    set: JSON pointer -> value: {"/fabric/servers": 128}.
    top: most rows of links and flows. quick: without the second runs that show what limits the time.
    """
    documents: dict[str, str] = {}
    args = ["run", _name(scenario, "scenario", documents), "--json", *_flags(fidelity=fidelity, seed=seed, top=top)]
    for value in _sets(set):
        args += ["--set", value]
    if quick:
        args.append("--quick")
    found = _weft.read(_result(_weft.call(args, documents)), _TABLES)
    return Report({key: Table(value) if key in _TABLES else value for key, value in found.items()})


def check(document: Document) -> "list[CheckedProblem]":
    """All problems of a weft file of any kind, without running anything; an empty list when it is fine."""
    documents: dict[str, str] = {}
    answer = _weft.call(["check", _name(document, "document", documents), "--json"], documents)
    if not answer.out:
        _result(answer)
    return [CheckedProblem(warning=problem["severity"] == "warning", **{k: v for k, v in problem.items() if k != "severity"})
            for file in _weft.read(answer.out, [])["files"] for problem in file["problems"]]


def plan(llm: Document, fabric: Document, gpus: int, *, mode: Optional[str] = None, global_batch: Optional[int] = None,
         seq: Optional[int] = None, top: Optional[int] = None, simulate: Optional[int] = None, fix: Optional[Mapping[str, Any]] = None,
         job: Optional[Mapping[str, Any]] = None, set: Optional[Mapping[str, Any]] = None) -> dict[str, Any]:  # noqa: A002
    """Searches parallel plans of a language model that fit memory, fastest first in `plans`.

    mode: "training" (the default) or "inference". fix: keys of the plan that are not searched: {"tp": 8}. job: pointer -> value of the training job: {"/dtype/compute": "fp8"}.
    set: pointer -> value of the fabric. Raises LimitReached when no plan fits.
    """
    documents: dict[str, str] = {}
    args = ["plan", "--llm", _name(llm, "llm", documents), "--fabric", _name(fabric, "fabric", documents), "--gpus", str(gpus),
            "--json", *_flags(mode=mode, global_batch=global_batch, seq=seq, top=top, simulate=simulate)]
    for key, value in (fix or {}).items():
        args += ["--fix", f"{key}={value if isinstance(value, str) else _json.dumps(value)}"]
    for value in _sets(job):
        args += ["--job", value]
    for value in _sets(set):
        args += ["--set", value]
    return _weft.read(_result(_weft.call(args, documents)), [])


def sweep(sweep: Document, out: Union[str, "_os.PathLike[str]", None] = None, *, jobs: Optional[int] = None,
          shard: Optional[tuple[int, int]] = None, resume: bool = False, retry_failed: bool = False) -> Table:
    """Runs a sweep and returns its table: a row per finished point, with its axes, status, outputs and error.

    out: the folder that keeps what is finished, to resume or share; a temporary one by default.
    jobs: threads, one per core by default. shard: (index, count), counted from 0.
    """
    if out is None:
        with _tempfile.TemporaryDirectory(prefix="weft-") as folder:
            return globals()["sweep"](sweep, folder, jobs=jobs, shard=shard)
    documents: dict[str, str] = {}
    args = ["sweep", _name(sweep, "sweep", documents), "--out", _os.fspath(out), "--json", *_flags(jobs=jobs)]
    if shard is not None:
        args += ["--shard", f"{shard[0]}/{shard[1]}"]
    args += ["--resume"] * resume + ["--retry-failed"] * retry_failed
    answer = _weft.call(args, documents)
    if answer.code != 2 or not answer.out:  # when every point failed the table says so
        _result(answer)
    return sweep_table(out)


def sweep_table(store: Union[str, "_os.PathLike[str]"]) -> Table:
    """The finished points of a store that `weft sweep`, weft-mpi or sweep() fill."""
    answer, found = _weft.sweep_table(_os.fspath(store))
    _result(answer)
    return Table(found)


def validate(only: Optional[str] = None, dataset: Union[str, "_os.PathLike[str]", None] = None) -> dict[str, Any]:
    """Replays measured records of real machines: error per row and per set, as `weft validate --json`."""
    args = ["validate", "--json", *_flags(only=only, dataset=None if dataset is None else _os.fspath(dataset))]
    answer = _weft.call(args, {})
    return _weft.read(answer.out if answer.code == 4 and answer.out else _result(answer), [])


def load_fabric(fabric: Document, *, set: Optional[Mapping[str, Any]] = None) -> Fabric:  # noqa: A002
    """Builds a fabric or server by its name in the catalogue, from a path or a dict."""
    documents: dict[str, str] = {}
    name, sets = _name(fabric, "fabric", documents), _sets(set)
    answer, found = _weft.load(name, sets, documents)
    _result(answer)
    args = ["topo", name, "--json"]
    for value in sets:
        args += ["--set", value]
    out = Fabric(_weft.read(_result(_weft.call(args, documents)), []))
    out.nodes, out.links, out.document = Table(found["nodes"]), Table(found["links"]), found["document"]
    return out


def catalogue(kind: Optional[str] = None) -> "list[dict[str, Any]]":
    """Name, kind and summary of every component: gpus, links, switches, nics, servers, fabrics, llms, collectives ..."""
    return _weft.read(_result(_weft.call(["list", *([kind] if kind else []), "--json"], {})), [])["entries"]


def call(*args: Any, documents: Optional[Mapping[str, Mapping[str, Any]]] = None) -> Any:
    """Any other command, as on the command line: call("nccl-tests", "all_reduce_perf", "--fabric", "dgx2", "--json").

    Its JSON as Python objects, else its text. documents: name ending in .json -> dict, for files that are on no disk.
    """
    texts = {name: _json.dumps(document) for name, document in (documents or {}).items()}
    out = _result(_weft.call([_os.fspath(a) if isinstance(a, _os.PathLike) else str(a) for a in args], texts))
    return _weft.read(out, []) if "--json" in args else out


def _find_catalogue() -> None:
    here = _Path(__file__).resolve()
    for folder in (here.parent / "share" / "configs", *(parent / "share" / "weft" / "configs" for parent in here.parents[1:6])):
        if folder.is_dir():
            _weft.set_configs_root(str(folder))
            return


_find_catalogue()
