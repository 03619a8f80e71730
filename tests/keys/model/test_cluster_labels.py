"""Registrations of nodes from before they had labels."""

from keys.model.cluster import NodeRecord
from keys.value import StoredModel
from tests.keys.model.samples import NODE


def test_given_a_record_of_before_labels_then_it_has_none_and_is_stored_as_it_was() -> None:
    labelled = StoredModel.pack(NODE)
    before = StoredModel.pack(NODE.model_copy(update={"labels": {}}))

    assert b'"labels"' in labelled
    assert b'"labels"' not in before
    old = NodeRecord.model_validate_json(before)
    assert old.labels == {}
    assert StoredModel.pack(old) == before
