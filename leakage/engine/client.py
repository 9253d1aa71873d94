"""The honest client's arithmetic: one gradient, and the gradients of single pictures."""

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

from leakage.engine.core import Client, Memory, Params, Update


def weights_of(model: nn.Module) -> Params:
    """The model's parameters, detached, ready to be differentiated."""
    return {name: value.detach().requires_grad_() for name, value in model.named_parameters()}


def gradient_client(model: nn.Module) -> Client:
    """A client that sends dL/dw of the mean cross-entropy; differentiable in x and in probabilities y."""

    def send(weights: Params, x: Tensor, y: Tensor, memory: Memory) -> Update:
        loss = F.cross_entropy(functional_call(model, weights, (x,)), y)
        follow = torch.is_grad_enabled() and (x.requires_grad or y.requires_grad)
        gradient = torch.autograd.grad(loss, list(weights.values()), create_graph=follow)
        return dict(zip(weights, gradient, strict=True)), memory

    return send


def single_gradients(model: nn.Module, weights: Params, x: Tensor, y: Tensor) -> Params:
    """The gradient of every picture alone: name -> (B, ...). What the client computes and never sends."""

    def loss(values: Params, picture: Tensor, label: Tensor) -> Tensor:
        return F.cross_entropy(functional_call(model, values, (picture[None],)), label[None])

    values = {name: value.detach() for name, value in weights.items()}
    gradients: Params = vmap(grad(loss), in_dims=(None, 0, 0))(values, x, y)
    return gradients
