"""What a reset and a backfill do, for each kind of end."""

from __future__ import annotations

from odradek.pipelines.definition.model import Start
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.operating.effects import backfill_effects, needs_whole_log, reset_effects
from tests.pipelines.planning.plans import sound_plan

TEXT = """
steps:
  paid: {sql: "select id, paid, paid_at from payments"}
  counted: {from: paid, by: [id], aggregate: {n: count(*)}}
sinks:
  out: {from: paid, topic: paid}
  rows: {from: paid, table: rows}
  latest: {from: paid, table: latest, key: [id], order_by: [paid_at, paid]}
  arrived: {from: paid, table: arrived, key: [id]}
  groups: {from: counted, table: groups, key: [id]}
  kept: {from: paid, table: kept, changes: {key: [id], sequence: paid_at}}
  archive: {from: paid, files: {path: archive, format: json}}
views:
  seen: {from: paid, key: [id]}
  newest: {from: paid, key: [id], order_by: paid_at}
  totals: {from: paid, by: [id], aggregate: {n: count(*)}}
"""


def test_a_reset_describes_each_end_of_its_flows() -> None:
    plan = sound_plan(TEXT)
    changes = "replayed changes take their place in the order of the sequence, so that nothing older replaces a row"
    assert sorted(reset_effects(plan.flows, None)) == [
        "files archive: the folder is renamed, and a new one is written",
        "table arrived: replayed rows replace those of the same key; it is outdated until the pipeline has caught up",
        "table groups: its groups are computed again, and incomplete until the pipeline has caught up",
        f"table kept: {changes}",
        "table latest: replayed rows replace those of the same key that have no greater paid_at, paid",
        "table rows: replayed rows are appended again; empty the table first to avoid duplicates",
        "topic paid: replayed records are written again, with the same odradek-id",
        "view newest: replayed rows replace those of the same key that have no greater paid_at",
        "view seen: replayed rows replace those of the same key; it is outdated until the pipeline has caught up",
        "view totals: its groups are computed again, and incomplete until the pipeline has caught up",
    ]
    later = reset_effects(plan.flows, Start(StartAt.LATEST))
    assert "view totals: its groups have only the records after the start (`rebuild` uses the whole log)" in later


def test_a_backfill_adds_files_and_cannot_update_views_by_a_part_of_the_log() -> None:
    plan = sound_plan(TEXT)
    assert any(each.startswith("files archive: new files are added; ") for each in backfill_effects(plan))
    assert [each.name for each in plan.ends if needs_whole_log(plan, each)] == ["seen", "totals"]
