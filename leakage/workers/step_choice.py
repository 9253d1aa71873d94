"""The choice of LEAKAGE_STEP and LEAKAGE_COMPILE for a model: a formula differentiates its gradient, compiled or not, or autograd."""

from dataclasses import replace

from torch import nn

from leakage.engine.capabilities import capabilities_of, set_capabilities
from leakage.settings import FORMULA, settings
from leakage.workers.compiled_programs import find_program


def choose_step(model: nn.Module) -> nn.Module:
    """Let a formula differentiate the model's gradient, or autograd, as the settings say; return the model."""
    config, capabilities = settings(), capabilities_of(model)
    capabilities = replace(capabilities, formula=config.step == FORMULA)
    set_capabilities(model, replace(capabilities, programs=find_program) if config.compile else capabilities)
    return model
