"""UpdateFeatures, and the levels in ApiVersions."""

from collections.abc import Iterator

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from odradek.security.authorizer import Operation
from tests.handlers.brokers import AnyBroker, SimulatedBroker
from tests.security.authorizers import AllowsOnly

ELIGIBLE = "eligible.leader.replicas.version"
UPGRADE, SAFE_DOWNGRADE = 1, 2


@pytest.fixture
def enabled_again(broker: AnyBroker) -> Iterator[None]:
    yield
    update(broker, UPGRADE, {ELIGIBLE: 1})


def update(
    broker: AnyBroker, upgrade_type: int, levels: dict[str, int], version: int = 2, *, validate_only: bool = False
) -> UpdateFeaturesResponse:
    updates = [
        FeatureUpdateKey(
            feature=name,
            max_version_level=level,
            upgrade_type=upgrade_type,
            allow_downgrade=upgrade_type == SAFE_DOWNGRADE,
        )
        for name, level in levels.items()
    ]
    request = UpdateFeaturesRequest(feature_updates=updates, validate_only=validate_only)
    return broker.call(request, UpdateFeaturesResponse, version)


def versions(broker: AnyBroker, version: int = 4) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    return broker.call(request, ApiVersionsResponse, version)


def levels_in_use(broker: AnyBroker) -> dict[str, int]:
    features = versions(broker).finalized_features
    assert all(each.min_version_level == each.max_version_level for each in features)
    return {each.name: each.max_version_level for each in features}


@pytest.mark.usefixtures("enabled_again")
def test_a_level_is_changed_and_shown_with_a_higher_epoch(broker: AnyBroker) -> None:
    before = versions(broker).finalized_features_epoch
    assert levels_in_use(broker)[ELIGIBLE] == 1
    response = update(broker, SAFE_DOWNGRADE, {ELIGIBLE: 0})
    assert (response.error_code, response.error_message, response.results) == (ErrorCode.NONE, None, [])
    broker.settle(lambda: levels_in_use(broker).get(ELIGIBLE, 0) == 0)
    assert versions(broker).finalized_features_epoch > before
    assert update(broker, UPGRADE, {ELIGIBLE: 1}).error_code == ErrorCode.NONE
    broker.settle(lambda: levels_in_use(broker).get(ELIGIBLE) == 1)


def test_validation_changes_nothing(broker: AnyBroker) -> None:
    assert update(broker, SAFE_DOWNGRADE, {ELIGIBLE: 0}, validate_only=True).error_code == ErrorCode.NONE
    assert levels_in_use(broker)[ELIGIBLE] == 1


@pytest.mark.parametrize("version", [1, 2])
def test_one_refused_level_refuses_all(broker: AnyBroker, version: int) -> None:
    response = update(broker, SAFE_DOWNGRADE, {ELIGIBLE: 0, "metadata.version": 1}, version)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert response.error_message is not None
    assert response.error_message.startswith(
        "The update failed for all features since the following feature had an error: "
        "Invalid update version 1 for feature metadata.version. Local controller "
    )
    assert response.results == []
    assert levels_in_use(broker)[ELIGIBLE] == 1


@pytest.mark.usefixtures("enabled_again")
def test_version_1_has_a_result_for_each_feature(broker: AnyBroker) -> None:
    (result,) = update(broker, SAFE_DOWNGRADE, {ELIGIBLE: 0}, version=1).results
    assert (result.feature, result.error_code, result.error_message) == (ELIGIBLE, ErrorCode.NONE, "NONE")


def test_version_0_allows_a_downgrade_by_its_flag(simulated: SimulatedBroker) -> None:
    """Not compared with Apache Kafka, whose controller (by the sources of 4.0) does not read the flag."""
    assert update(simulated, UPGRADE, {ELIGIBLE: 0}, version=0).error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert update(simulated, SAFE_DOWNGRADE, {ELIGIBLE: 0}, version=0).error_code == ErrorCode.NONE
    assert ELIGIBLE not in levels_in_use(simulated)


def test_a_request_without_updates_changes_nothing(broker: AnyBroker) -> None:
    assert update(broker, UPGRADE, {}).error_code == ErrorCode.NONE


def test_clients_that_cannot_read_level_0_do_not_see_features_that_support_it(broker: AnyBroker) -> None:
    """KAFKA-17492."""
    shown = {version: {each.name for each in versions(broker, version).supported_features} for version in (3, 4)}
    assert "metadata.version" in shown[3]
    assert shown[4] - shown[3] >= {ELIGIBLE}
    assert all(each.min_version > 0 for each in versions(broker, 3).supported_features)


def test_the_supported_levels_are_those_that_have_a_behaviour(simulated: SimulatedBroker) -> None:
    supported = {each.name: (each.min_version, each.max_version) for each in versions(simulated).supported_features}
    assert supported == {
        ELIGIBLE: (0, 1),
        "group.version": (1, 1),
        "metadata.version": (30, 30),
        "transaction.version": (2, 2),
    }


def test_a_client_without_the_right_to_alter_the_cluster_is_refused(simulated: SimulatedBroker) -> None:
    allowing = simulated.services.authorizer
    simulated.services.authorizer = AllowsOnly(Operation.DESCRIBE)
    response = update(simulated, SAFE_DOWNGRADE, {ELIGIBLE: 0})
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    simulated.services.authorizer = allowing
    assert levels_in_use(simulated)[ELIGIBLE] == 1
