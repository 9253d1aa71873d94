"""The choice of LEAKAGE_STEP for a model: a formula differentiates its gradient, or autograd."""

from dataclasses import replace

from torch import nn

from leakage.engine.capabilities import capabilities_of, set_capabilities
from leakage.settings import FORMULA, settings


def choose_step(model: nn.Module) -> nn.Module:
    """Let a formula differentiate the model's gradient, or autograd, as the setting says; return the model."""
    set_capabilities(model, replace(capabilities_of(model), formula=settings().step == FORMULA))
    return model
