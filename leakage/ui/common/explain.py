"""Texts that several pages show: the glossary, and what happens to pictures."""

from urllib.parse import quote, urlencode

from leakage.settings import settings
from leakage.spec.tasks import Ranks
from leakage.ui.common.base_path import base
from leakage.ui.common.markdown import Markdown, escape

GLOSSARY = {
    "Gradient": "For every weight of the model, how much and in which direction it should change to do better on these pictures. "
    "In federated learning a phone sends this instead of its pictures.",
    "Batch": "The pictures that go into one gradient. Their gradients are averaged, and the average is sent.",
    "Local steps": "With FedAvg a phone sends no gradient: it trains for some steps by itself and sends how far its weights have "
    "moved. An attacker that knows how it trains can imitate every step.",
    "Added up with other phones (secure aggregation)": "Several phones mask their updates so that only the sum is "
    "readable. The server then faces one large batch: harder to take apart, and still no promise for any picture in it.",
    "Naive and adaptive": "A naive attacker takes what arrives for a plain gradient. An adaptive attacker knows how the phone trains "
    "and what protects it, and imitates both. A protection that stops only the naive attacker protects nobody.",
    "PSNR": "Peak signal-to-noise ratio, in decibels: how small the pixel errors are. Plain grey scores about 10 dB, 20 dB is clearly "
    "recognizable, from 30 dB on the eye hardly sees a difference.",
    "SSIM": "Structural similarity, up to 1: compares edges and contrast in small windows, closer to what an eye sees than PSNR.",
    "LPIPS": "Learned perceptual similarity, 0 for equal pictures: how different the two look to a network trained on photographs. "
    "It forgives small shifts and notices blur. It needs the weights of that network on this machine.",
    "Line-up": "The private picture stands among 99 others. Rank 1: of all 100 the attacker's picture is most like the private one, so it "
    "could be picked out. A guess made without the gradient can get any rank, on average 50.5 over the pictures of a data set. The "
    "pictures of the gallery are less alike: there, compare with the ranks of grey and of noise.",
    "Gradient distance": "How far the gradient of the attacker's picture is from the received gradient. "
    "DLG and iDLG square this distance, Inverting Gradients compares directions (cosine): compare runs of one attack only.",
    "Grey picture": "The baseline: the score of a plain grey picture, made without any gradient. A score near that of grey says little "
    "by itself.",
    "Label": "The class of a picture, for example 'cat'. For one picture it can be read from the gradient without any search.",
    "Random start (seed)": "The number that fixes all randomness in a run: the model's untrained weights and the attacker's first guess. "
    "Same seed, same run.",
}


def promise() -> Markdown:
    """Return the line below every page that says what happens to pictures."""
    life = escape(settings().upload_life)
    return Markdown(
        "Pictures go only to the machine that runs this page. A run with your own pictures is deleted with one click, at the latest "
        f"after {life}."
    )


def ranks_link(ranks: Ranks) -> str:
    """Return the address of the page Architecture that shows the network of the task `ranks`."""
    query = {"net": ranks.network, "size": str(ranks.size), "channels": str(ranks.channels)}
    query |= {} if ranks.outputs == 10 else {"outputs": str(ranks.outputs)}
    return f"{base()}/architecture?" + urlencode(query, quote_via=quote)
