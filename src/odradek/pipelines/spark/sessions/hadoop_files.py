"""Small files on any storage that Spark can use for checkpoints, through Hadoop's FileSystem."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from py4j.protocol import Py4JJavaError

from odradek.pipelines.spark.sessions.failures import PipelineError, plain_message
from odradek.pipelines.spark.sessions.private_names import private

if TYPE_CHECKING:
    from collections.abc import Iterator

    from py4j.java_gateway import JVMView
    from pyspark.sql import SparkSession


class HadoopFiles:
    """Files below a URI such as hdfs://… or s3a://…."""

    def __init__(self, session: SparkSession, folder: str) -> None:
        self._gateway = cast("JVMView", private(session, "jvm"))
        self._folder = folder.rstrip("/")
        settings = private(private(session.sparkContext, "context"), "file systems")()
        with self._errors(""):
            self._storage: Any = self._path("").getFileSystem(settings)

    def read(self, name: str) -> str | None:
        with self._errors(name):
            if not self._storage.exists(self._path(name)):
                return None
            stream = self._storage.open(self._path(name))
            try:
                return str(self._gateway.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()

    def replace(self, name: str, text: str) -> None:
        """Replaces the file by one that is complete; for a moment there may be none."""
        unfinished = f"{name}.{uuid.uuid4().hex}.tmp"
        with self._errors(name):
            self._write(unfinished, text, is_new=True)
            self._storage.delete(self._path(name), False)
            if not self._storage.rename(self._path(unfinished), self._path(name)):
                self._write(name, text, is_new=False)  # another process has created it
                self._storage.delete(self._path(unfinished), False)

    def remove(self, name: str) -> None:
        with self._errors(name):
            self._storage.delete(self._path(name), False)

    def has(self, name: str) -> bool:
        with self._errors(name):
            return bool(self._storage.exists(self._path(name)))

    def _write(self, name: str, text: str, *, is_new: bool) -> None:
        stream = self._storage.create(self._path(name), not is_new)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def _path(self, name: str) -> Any:
        return self._gateway.org.apache.hadoop.fs.Path(f"{self._folder}/{name}" if name else self._folder)

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as error:
            place = f"{self._folder}/{name}" if name else self._folder
            raise PipelineError(f"{place}: {plain_message(error)}") from error
