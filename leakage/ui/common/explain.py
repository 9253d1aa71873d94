"""Texts that several pages show: the glossary, and what happens to pictures."""

from urllib.parse import quote, urlencode

from leakage.settings import settings
from leakage.spec.tasks import Ranks
from leakage.ui.common.base_path import base
from leakage.ui.common.markdown import Markdown, escape

GLOSSARY = {
    "Gradient": "A list of numbers: for every weight of the model, how much it should go up or down to do better on these pictures. "
    "In federated learning a phone sends the gradient instead of its pictures.",
    "Batch": "The pictures that go into one gradient. Their gradients are averaged, and the average is sent.",
    "Local steps": "With several local steps (FedAvg) a phone sends no gradient. It trains for some steps by itself, and sends how "
    "far its weights have moved. An attacker that knows how the phone trains can imitate every step.",
    "Added up with other phones (secure aggregation)": "Several phones mask their updates so that only the sum of all updates is "
    "readable. To the server the sum looks like the update of one phone with many pictures. A sum is harder to take apart, and still "
    "no promise for any picture in it.",
    "Naive and adaptive": "A naive attacker treats what arrives as a plain gradient. An adaptive attacker knows how the phone trains "
    "and which protection it uses, and imitates both. A protection that stops only the naive attacker protects nobody.",
    "PSNR": "How close two pictures are, dot by dot, in decibels (peak signal-to-noise ratio). A plain grey picture scores about 10 "
    "dB, and a picture of 20 dB is clearly recognizable. From 30 dB on the eye hardly sees a difference.",
    "SSIM": "How alike edges and contrast in two pictures are, up to 1 (structural similarity). This likeness is closer to what an "
    "eye sees than a comparison dot by dot (PSNR).",
    "LPIPS": "How different two pictures look to a network trained on photographs, 0 for equal pictures (learned perceptual "
    "similarity). This measure forgives small shifts and notices blur. The measure needs the weights of that network on this machine.",
    "Line-up": "The private picture stands among 99 other pictures. Rank 1 means: of all 100, the attacker's picture is most like the "
    "private picture, so the private picture could be picked out. A guess made without the gradient can get any rank, on average 50.5 "
    "over the pictures of a data set. In the gallery the pictures are less alike: there, compare with the ranks of a grey picture and of "
    "a picture of random dots (noise).",
    "Gradient distance": "How far the gradient of the attacker's picture is from the received gradient. "
    "Each attack measures this distance in its own way (DLG and iDLG square it; Inverting Gradients compares only the proportions of the "
    "numbers, a measure called cosine), so compare only runs of the same attack.",
    "Grey picture": "The yardstick: the score of a plain grey picture, made without any gradient. If an attack scores little more "
    "than grey, its score says little by itself.",
    "Label": "The class of a picture, for example 'cat'. If the phone has one picture, its label can be read from the "
    "gradient without any search.",
    "Random start (seed)": "The number that fixes all randomness in a run: the model's untrained weights and the attacker's first guess. "
    "The same seed gives the same run.",
}


def promise() -> Markdown:
    """Return the line below every page that says what happens to pictures."""
    life = escape(settings().upload_life)
    return Markdown(
        "Pictures go only to the machine that runs this page. You can delete a run with your own pictures with one click; "
        f"otherwise it is deleted after {life} at the latest."
    )


def ranks_link(ranks: Ranks) -> str:
    """Return the address of the page Architecture that shows the network of the task `ranks`."""
    query = {"net": ranks.network, "size": str(ranks.size), "channels": str(ranks.channels)}
    query |= {} if ranks.outputs == 10 else {"outputs": str(ranks.outputs)}
    return f"{base()}/architecture?" + urlencode(query, quote_via=quote)
