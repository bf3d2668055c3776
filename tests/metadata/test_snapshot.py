"""Snapshots: an image as changes, and back."""

from hypothesis import given, settings

from odradek.metadata.image import MetadataImage
from odradek.metadata.snapshot import empty_image, image_as_changes, image_from_changes
from tests.metadata.random_changes import images


@settings(max_examples=30, deadline=None)
@given(images())
def test_image_comes_back_from_its_changes(image: MetadataImage) -> None:
    changes = image_as_changes(image)
    rebuilt = image_from_changes(empty_image(image.cluster_id), changes, image.version)
    assert rebuilt == image
    assert list(rebuilt.topics) == list(image.topics), "in the same order"


def test_empty_image_has_no_changes() -> None:
    assert image_as_changes(empty_image("c")) == []
