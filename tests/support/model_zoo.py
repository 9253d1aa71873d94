"""Tiny models as users write them: activations, norms, pools, heads, and recurrent, shared, wrapped or frozen networks."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, prune
from torch.nn.utils import spectral_norm as hooked_spectral_norm

CHANNELS, SIDE, CLASSES = 3, 8, 5
FLAT = CHANNELS * SIDE * SIDE
Make = Callable[[], nn.Module]


class By(nn.Module):
    """Parts by name, and a forward that uses them."""

    def __init__(self, forward: Callable[[Any, Tensor], Tensor], **parts: nn.Module) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.computed = forward

    def forward(self, x: Tensor) -> Tensor:
        return self.computed(self, x)


def flat(*layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), *layers)


def head(inputs: int) -> nn.Linear:
    return nn.Linear(inputs, CLASSES)


def behind(layer: nn.Module, features: int = 12) -> nn.Sequential:
    """Return a fully connected layer, the activation, and the head."""
    return flat(nn.Linear(FLAT, 12), layer, head(features))


def conv(*layers: nn.Module, features: int) -> nn.Sequential:
    """Return a convolution with six channels of 6 x 6, these layers, and the head."""
    return nn.Sequential(nn.Conv2d(CHANNELS, 6, 3), *layers, nn.Flatten(), head(features))


class Once(torch.autograd.Function):
    """A sigmoid with a derivative that cannot be differentiated."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        out = x.sigmoid()
        ctx.save_for_backward(out)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (out,) = ctx.saved_tensors
        return grad_output * out * (1 - out)


class Layer(nn.Module):
    """A function as a layer."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


ACTIVATIONS: dict[str, Make] = {
    name: lambda kind=kind, given=given: behind(getattr(nn, kind)(*given))
    for name, kind, given in [
        *((kind, kind, ()) for kind in ("CELU", "ELU", "GELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU")),
        *((kind, kind, ()) for kind in ("LogSigmoid", "Mish", "PReLU", "ReLU", "ReLU6", "RReLU", "SELU", "SiLU", "Sigmoid")),
        *((kind, kind, ()) for kind in ("Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink")),
        ("Threshold", "Threshold", (0.1, 0.0)),
        ("Softmax between layers", "Softmax", (1,)),
    ]
} | {
    "GLU": lambda: behind(nn.GLU(), 6),
    "ReLU in place": lambda: behind(nn.ReLU(inplace=True)),
    "Hardsigmoid by its function": lambda: behind(Layer(F.hardsigmoid)),
    "a sine": lambda: behind(Layer(torch.sin)),
    "x times a gate": lambda: behind(Layer(lambda z: z * torch.sigmoid(1.7 * z))),
    "a sigmoid that is differentiated once": lambda: behind(Layer(Once.apply)),
}


class StandardisedConv(nn.Conv2d):
    """A convolution with filters of mean 0 and deviation 1, computed from a view of the weight."""

    def forward(self, x: Tensor) -> Tensor:
        rows = self.weight.view(len(self.weight), -1)
        rows = (rows - rows.mean(1, keepdim=True)) / (rows.std(1, keepdim=True) + 1e-5)
        return F.conv2d(x, rows.view_as(self.weight), self.bias)


def tied_weight() -> nn.Module:
    net = flat(nn.Linear(FLAT, 12), nn.Tanh(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 12), nn.Tanh(), head(12))
    net[5].weight = net[3].weight
    return net


def pruned() -> nn.Module:
    net = behind(nn.Tanh())
    prune.l1_unstructured(net[1], "weight", 0.5)
    prune.random_unstructured(net[3], "weight", 0.3)
    return net


def euclidean(net: Any, x: Tensor) -> Tensor:
    return -torch.cdist(net.body(x), net.table.weight)


PARTS: dict[str, Make] = {
    "BatchNorm2d": lambda: conv(nn.BatchNorm2d(6), nn.Tanh(), features=216),
    "BatchNorm1d": lambda: flat(nn.Linear(FLAT, 12), nn.BatchNorm1d(12), nn.Tanh(), head(12)),
    "GroupNorm": lambda: conv(nn.GroupNorm(2, 6), nn.Tanh(), features=216),
    "InstanceNorm2d": lambda: conv(nn.InstanceNorm2d(6, affine=True), nn.Tanh(), features=216),
    "LayerNorm": lambda: flat(nn.Linear(FLAT, 12), nn.LayerNorm(12), nn.Tanh(), head(12)),
    "RMSNorm": lambda: flat(nn.Linear(FLAT, 12), nn.RMSNorm(12), nn.Tanh(), head(12)),
    "LocalResponseNorm": lambda: conv(nn.LocalResponseNorm(3), nn.Tanh(), features=216),
    "weight norm": lambda: conv(nn.Tanh(), parametrizations.weight_norm(nn.Conv2d(6, 6, 3)), features=96),
    "spectral norm": lambda: flat(parametrizations.spectral_norm(nn.Linear(FLAT, 12)), nn.Tanh(), head(12)),
    "spectral norm by a hook": lambda: flat(hooked_spectral_norm(nn.Linear(FLAT, 12)), nn.Tanh(), head(12)),
    "standardised filters": lambda: nn.Sequential(StandardisedConv(CHANNELS, 6, 3), nn.Tanh(), nn.Flatten(), head(216)),
    "MaxPool2d": lambda: conv(nn.MaxPool2d(2), features=54),
    "AvgPool2d": lambda: conv(nn.Tanh(), nn.AvgPool2d(2), features=54),
    "AdaptiveAvgPool2d": lambda: conv(nn.Tanh(), nn.AdaptiveAvgPool2d(1), features=6),
    "AdaptiveMaxPool2d": lambda: conv(nn.Tanh(), nn.AdaptiveMaxPool2d(2), features=24),
    "LPPool2d": lambda: conv(nn.Softplus(), nn.LPPool2d(2, 2), features=54),
    "a frozen head": lambda: flat(nn.Linear(FLAT, 12), nn.Tanh(), head(12).requires_grad_(False)),
    "a frozen bias of the head": lambda: frozen_bias(),
    "a head under weight norm": lambda: flat(nn.Linear(FLAT, 12), nn.Tanh(), parametrizations.weight_norm(head(12))),
    "pruned layers": pruned,
    "a cosine head": lambda: By(
        lambda net, x: 8 * F.linear(F.normalize(net.body(x)), F.normalize(net.table.weight)),
        body=flat(nn.Linear(FLAT, 12), nn.Tanh()),
        table=nn.Linear(12, CLASSES, bias=False),
    ),
    "prototypes": lambda: By(euclidean, body=flat(nn.Linear(FLAT, 12), nn.Tanh()), table=nn.Linear(12, CLASSES, bias=False)),
    "a convolution as head": lambda: nn.Sequential(
        nn.Conv2d(CHANNELS, 6, 3), nn.Tanh(), nn.Conv2d(6, CLASSES, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    ),
    "a head behind a temperature": lambda: By(
        lambda net, x: net.head(net.body(x)) / 2, body=flat(nn.Linear(FLAT, 12), nn.Tanh()), head=head(12)
    ),
    "log-probabilities": lambda: flat(nn.Linear(FLAT, 12), nn.Tanh(), head(12), nn.LogSoftmax(1)),
    "dropout": lambda: flat(nn.Linear(FLAT, 12), nn.Dropout(0.5), nn.Tanh(), head(12)),
    "a transposed convolution": lambda: conv(nn.Tanh(), nn.ConvTranspose2d(6, 2, 3), features=128),
    "a convolution with holes and groups": lambda: conv(nn.Tanh(), nn.Conv2d(6, 6, 3, dilation=2, groups=3), features=24),
    "enlarged": lambda: nn.Sequential(
        nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(3, 4, 5, 3), nn.Tanh(), nn.Flatten(), head(64)
    ),
    "a sum of embeddings": lambda: By(
        lambda net, x: net.head(x.flatten(1) @ net.table(torch.arange(FLAT))), table=nn.Embedding(FLAT, 12), head=head(12)
    ),
}


def frozen_bias() -> nn.Module:
    net = behind(nn.Tanh())
    net[3].bias.requires_grad_(False)
    return net


def rows(kind: str) -> nn.Module:
    """Return a picture's rows as a sequence."""
    return By(
        lambda net, x: net.head(net.rnn(x.permute(0, 2, 1, 3).flatten(2))[0][:, -1]),
        rnn=getattr(nn, kind)(CHANNELS * SIDE, 6, batch_first=True),
        head=head(6),
    )


def attended(net: Any, x: Tensor) -> Tensor:
    tokens = net.cut(x).flatten(2).transpose(1, 2)
    return net.head(net.mix(tokens).mean(1))


class Heads(nn.Module):
    """Multi-head attention of tokens on themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        return tokens + self.attention(tokens, tokens, tokens, need_weights=False)[0]


def viewed(net: Any, x: Tensor) -> Tensor:
    z = net.conv(x).sigmoid()
    return net.head(z.view(len(z), -1))


def one_block_thrice() -> nn.Module:
    block = nn.Sequential(nn.Linear(12, 12), nn.Sigmoid())
    return flat(nn.Linear(FLAT, 12), block, block, block, head(12))


def kept_twice() -> nn.Module:
    encoder = flat(nn.Linear(FLAT, 12), nn.Sigmoid())
    return By(lambda net, x: net.whole(x), encoder=encoder, whole=nn.Sequential(encoder, head(12)))


def shared_rnn() -> nn.Module:
    net = rows("GRU")
    net.again = net.rnn
    net.computed = lambda net, x: net.head(net.again(x.permute(0, 2, 1, 3).flatten(2))[0][:, -1])
    return net


def asking(net: Any, x: Tensor) -> Tensor:
    z = x.flatten(1)
    return net.head(z / 2 if z.mean().item() > 10 else z)


def hooked() -> nn.Module:
    net = behind(nn.Tanh())
    net[1].register_forward_hook(lambda _layer, _given, out: 2 * out)
    return net


def keeping(net: Any, x: Tensor) -> Tensor:
    net.kept = net.body(x)
    return net.head(net.kept)


def unused() -> nn.Module:
    net = behind(nn.Tanh())
    net.add_module("never", nn.Identity())
    return By(lambda net, x: net.body(x), body=net, never=nn.Linear(3, 3))


NETS: dict[str, Make] = {
    "RNN": lambda: rows("RNN"),
    "GRU": lambda: rows("GRU"),
    "LSTM": lambda: rows("LSTM"),
    "a shared GRU": shared_rnn,
    "multi-head attention": lambda: By(attended, cut=nn.Conv2d(3, 8, 4, stride=4), mix=Heads(), head=head(8)),
    "a transformer's layer": lambda: By(
        attended, cut=nn.Conv2d(3, 8, 4, stride=4), mix=nn.TransformerEncoderLayer(8, 2, 12, batch_first=True), head=head(8)
    ),
    "a view behind a convolution": lambda: By(viewed, conv=nn.Conv2d(CHANNELS, 6, 5, 2, 2), head=head(96)),
    "one block three times": one_block_thrice,
    "an encoder kept beside the whole": kept_twice,
    "a tied weight": tied_weight,
    "a frozen body": lambda: nn.Sequential(
        flat(nn.Linear(FLAT, 12), nn.Tanh()).requires_grad_(False), nn.Linear(12, 8), nn.Tanh(), head(8)
    ),
    "DataParallel": lambda: nn.DataParallel(behind(nn.Tanh())),
    "pictures changed in place": lambda: By(lambda net, x: net.body(x.sub_(0.5).div_(0.25)), body=behind(nn.Tanh())),
    "a question to the picture": lambda: By(asking, head=head(FLAT)),
    "a hook that changes an answer": hooked,
    "an answer that is kept": lambda: By(keeping, body=flat(nn.Linear(FLAT, 12), nn.Tanh()), head=head(12)),
    "a layer that is never used": unused,
    "a head defined first": lambda: By(lambda net, x: net.head(net.body(x)), head=head(12), body=flat(nn.Linear(FLAT, 12), nn.Tanh())),
    "a deep copy of a copy": lambda: copy.deepcopy(copy.deepcopy(behind(nn.Tanh()))),
}


def of_torchvision(name: str, *given: Any, **named: Any) -> Make:
    """Return a network class of torchvision, as small as its arguments allow, for pictures of 32 x 32."""

    def make() -> nn.Module:
        from torchvision import models

        net: nn.Module = getattr(models, name)(*given, **named, num_classes=CLASSES)
        return net

    return make


def mobile_v3() -> nn.Module:
    from torchvision.models.mobilenetv3 import InvertedResidualConfig, MobileNetV3

    rows = [(8, 3, 8, 8, True, "RE", 2, 1), (8, 3, 16, 12, False, "HS", 2, 1), (12, 5, 24, 12, True, "HS", 1, 1)]
    return MobileNetV3([InvertedResidualConfig(*row, width_mult=1) for row in rows], last_channel=24, num_classes=CLASSES)


def efficient() -> nn.Module:
    from torchvision.models.efficientnet import EfficientNet, FusedMBConvConfig, MBConvConfig

    return EfficientNet(
        [FusedMBConvConfig(1, 3, 2, 8, 8, 1), MBConvConfig(2, 3, 2, 8, 12, 1)], dropout=0.2, num_classes=CLASSES, last_channel=24
    )


def conv_next() -> nn.Module:
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    return ConvNeXt([CNBlockConfig(8, 16, 1), CNBlockConfig(16, None, 1)], num_classes=CLASSES)


def narrow_resnet() -> nn.Module:
    """Return torchvision's blocks with few filters."""
    from torchvision.models.resnet import BasicBlock

    skip = nn.Sequential(nn.Conv2d(8, 12, 1, 2, bias=False), nn.BatchNorm2d(12))
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1),
        nn.ReLU(inplace=True),
        BasicBlock(8, 8),
        BasicBlock(8, 12, 2, skip),
        nn.AdaptiveAvgPool2d(1),
        flat(head(12)),
    )


TORCHVISION: dict[str, Make] = {
    "ResNet's blocks": narrow_resnet,
    "MobileNetV2": of_torchvision("MobileNetV2", width_mult=0.1, round_nearest=4),
    "MobileNetV3": mobile_v3,
    "ShuffleNetV2": of_torchvision("ShuffleNetV2", [1, 1, 1], [8, 8, 12, 16, 24]),
    "MNASNet": of_torchvision("MNASNet", 0.1),
    "SqueezeNet": of_torchvision("SqueezeNet", "1_1"),
    "EfficientNet": efficient,
    "ConvNeXt": conv_next,
    "DenseNet": of_torchvision("DenseNet", growth_rate=4, block_config=(2, 2), num_init_features=8),
    "a vision transformer": of_torchvision(
        "VisionTransformer", image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=24
    ),
    "a Swin transformer": of_torchvision(
        "SwinTransformer", patch_size=[4, 4], embed_dim=8, depths=[1, 1], num_heads=[1, 2], window_size=[4, 4]
    ),
}
