"""The alarms in deploy/, as Prometheus reads them, and the metrics that they are about."""

import re
import subprocess

from .process import ROOT, World, eventually, free_port, get, tool
from .tidegate import Tidegate

FOLDER = ROOT / "deploy/prometheus"


class Prometheus(World):
    def promtool(self, *arguments: str):
        done = subprocess.run([tool("promtool"), *arguments], cwd=FOLDER, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_alarms_are_valid(self):
        self.promtool("check", "rules", "alerts.yaml")

    def test_the_alarms_ring_when_they_should(self):
        self.promtool("test", "rules", "alerts_test.yaml")

    def test_every_metric_of_an_alarm_is_on_the_page(self):
        redis = free_port()
        command = [tool("redis-server"), "--bind", "127.0.0.1", "--port", str(redis), "--save", "", "--maxmemory", "1gb"]
        self.start(*command, "--dir", str(self.folder), port=redis, name="redis")
        tidegate = Tidegate(self, "--store", f"redis://127.0.0.1:{redis}")
        series = set()
        for expression in re.findall(r"^ *expr: (.*)$", (FOLDER / "alerts.yaml").read_text(), re.M):
            series.update(re.findall(r"(tidegate_\w+)(?:\{(.*?)\})?", expression))
        self.assertGreater(len(series), 15)

        def missing():
            lines = get(tidegate.admin, "/metrics").body.splitlines()
            is_there = lambda name, label: any(re.match(rf"{name}[{{ ]", line) and label in line for line in lines)
            return [it for it in series if not is_there(*it)]

        # Redis is asked about itself every ten seconds.
        eventually(f"all of {series} are there", lambda: not missing())
