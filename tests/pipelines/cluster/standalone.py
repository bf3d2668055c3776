"""A real Spark cluster of the installed PySpark: a master and workers, each a process on ports of the kernel."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Self

import pyspark

from tests.pipelines.leashed import QUICK_JAVA, Leashed

HOME = Path(pyspark.__file__).parent
STARTED_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
REGISTERED = "Successfully registered with master"


class StandaloneCluster:
    """`with StandaloneCluster(folder, workers=2, cores=1) as cluster:`; `cluster.master` is Spark's master URL."""

    def __init__(self, folder: Path, workers: int, cores: int, memory: str = "1g") -> None:
        self.folder = folder
        self.master = ""
        self.workers: list[Leashed] = []
        self._master: Leashed | None = None
        self._count, self._cores, self._memory = workers, cores, memory

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def _start(self) -> None:
        master = self._master = self._launch("master.Master", "master", ["--port", "0"])
        self.master = master.until(lambda: STARTED_MASTER.search(master.text))[1]
        for number in range(self._count):
            size = ["--cores", str(self._cores), "--memory", self._memory]
            work = [*size, "--work-dir", str(self.work_of(number)), self.master]
            self.workers.append(self._launch("worker.Worker", f"worker-{number}", work))
        for worker in self.workers:
            worker.until_said(REGISTERED)

    def work_of(self, number: int) -> Path:
        return self.folder / f"work-{number}"

    def executors_of(self, number: int) -> int:
        return len(list(self.work_of(number).glob("app-*/*/stderr")))

    def _launch(self, program: str, name: str, arguments: list[str]) -> Leashed:
        environment = {
            **QUICK_JAVA,
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-Dspark.master.rest.enabled=false",
        }
        command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}"]
        address = ["--host", "127.0.0.1", "--webui-port", "0"]
        return Leashed([*command, *address, *arguments], self.folder / f"{name}.out", environment)

    def close(self) -> None:
        for process in [*self.workers, self._master]:
            if process is not None:
                process.kill()

    def __exit__(self, *_exception: object) -> None:
        self.close()
