"""UpdateFeatures, versions 0 to 2: levels of features of the whole cluster (KIP-584), all or none.

Departure from Kafka: a feature with one behaviour has one level (`metadata/features`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.decisions.features import FeatureUpdate, UpgradeType
from odradek.controller.requests import UpdateFeatures
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.protocol.messages.update_features import FeatureUpdateKey

LAST_VERSION_WITH_RESULTS = 1


async def handle(request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse:
    if not context.allows_on_cluster(Operation.ALTER):
        return UpdateFeaturesResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="Cluster authorization failed."
        )
    refusal = await context.services.controller.ask(
        UpdateFeatures(
            [_update(each, context.api_version) for each in request.feature_updates],
            validate_only=request.validate_only,
            timeout_ms=request.timeout_ms,
        )
    )
    if refusal is not None:
        return UpdateFeaturesResponse(error_code=refusal.error, error_message=refusal.message)
    if context.api_version > LAST_VERSION_WITH_RESULTS:
        return UpdateFeaturesResponse(error_message=None)
    results = [
        UpdatableFeatureResult(feature=each.feature, error_message=ErrorCode.NONE.name)
        for each in request.feature_updates
    ]
    return UpdateFeaturesResponse(error_message=None, results=results)


def _update(update: FeatureUpdateKey, api_version: int) -> FeatureUpdate:
    upgrade_type = update.upgrade_type
    if api_version == 0 and update.allow_downgrade:
        upgrade_type = UpgradeType.SAFE_DOWNGRADE
    return FeatureUpdate(update.feature, update.max_version_level, upgrade_type)
