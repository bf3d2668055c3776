"""The generator's flags, its report, and the choice between the two."""

import shutil

import pytest

from bench import generator
from bench.generator import Generator, GeneratorError, read_line
from bench.librdkafka_load import api_versions_request, read, summary


def test_both_generators_take_the_same_flags() -> None:
    arguments = Generator(("load",), "").arguments("produce", brokers="h:1", give_up_after="9s", linger="5ms", batch=7)
    assert arguments == ["load", "produce", "-brokers", "h:1", "-give-up-after", "9s", "-linger", "5ms", "-batch", "7"]
    given = read(arguments[1:])
    assert (given.brokers, given.give_up_after, given.linger, given.batch) == ("h:1", 9.0, 5.0, 7)


def test_report_is_the_last_line() -> None:
    assert read_line("first", ["waiting", '{"records": 3}'], 0, "") == {"records": 3}


def test_failure_carries_the_error_output_of_the_generator() -> None:
    with pytest.raises(GeneratorError, match="produce: load produce: 3 of 5 records were rejected"):
        read_line("produce", [], 1, "load produce: 3 of 5 records were rejected\n")


def test_without_go_librdkafka_is_used_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert "librdkafka" in generator.choose("auto").description
    assert "Go is not installed" in generator.choose("auto").description


def test_failed_build_falls_back_only_if_go_was_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Generator:
        raise GeneratorError("go build failed: no network")

    monkeypatch.setattr(generator, "go_generator", fail)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    assert "did not build: go build failed: no network" in generator.choose("auto").description
    with pytest.raises(GeneratorError):
        generator.choose("go")


def test_percentiles_are_of_the_sorted_delays() -> None:
    delays = [number / 1000 for number in range(1, 1001)]
    report = summary(read(["latency", "-size", "100"]), delays, 1000, 2.0)
    assert (report["p50_ms"], report["p99_ms"], report["max_ms"]) == (501.0, 991.0, 1000.0)
    assert report["records_per_s"] == 500.0


def test_idle_connections_send_a_well_formed_request() -> None:
    frame = api_versions_request()
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert frame[4:8] == bytes([0, 18, 0, 3])
