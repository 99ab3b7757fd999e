# SPDX-License-Identifier: Apache-2.0
"""The example notebook runs from top to bottom: by nbconvert where it is installed with a kernel, else cell by cell here."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs/examples/weft.ipynb"


def there(*modules):
    return all(importlib.util.find_spec(name) for name in modules)


@unittest.skipUnless(there("pandas", "matplotlib"), "pandas or matplotlib is missing")
class Notebook(unittest.TestCase):
    def test_it_holds_no_results(self):
        cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
        self.assertTrue(all(not cell.get("outputs") for cell in cells))

    def test_it_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            if there("nbconvert", "ipykernel"):
                run = subprocess.run([sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", NOTEBOOK, "--output-dir", folder],
                                     capture_output=True, text=True)
                self.assertEqual(run.returncode, 0, run.stderr[-3000:])
                cells = json.loads((Path(folder) / NOTEBOOK.name).read_text(encoding="utf-8"))["cells"]
                shown = json.dumps(cells)
                self.assertTrue("image/png" in shown, "there is no picture")
            else:
                cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
                code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
                run = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, MPLBACKEND="Agg"), capture_output=True, text=True)
                self.assertEqual(run.returncode, 0, run.stderr[-3000:])
                shown = run.stdout
        self.assertTrue("/fabric/use" in shown)


if __name__ == "__main__":
    unittest.main()
