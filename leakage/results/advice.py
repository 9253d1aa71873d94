"""What to demand of a vendor, and which risk remains after any answer of the page Ask, each with the lesson that explains it."""

SUMS, ADVICE = "10-sums", "12-what-to-do"  # lessons
DEMANDS: tuple[tuple[str, str], ...] = (  # a demand, and the lesson that shows why
    ("Epsilon and delta after the whole training, not after one upload; and for what: one picture, or one patient with many.", ADVICE),
    ("Where the noise is added. If the server adds it, the server has seen the update without it.", ADVICE),
    ("How many phones are in a sum at least, and how the server is kept from inventing them.", SUMS),
    ("How you can check that the model which the server sends is the agreed model.", SUMS),
    ("The accuracy behind the protection, on pictures like yours.", ADVICE),
    ("A test like this one on the vendor's own network, with a control, and with the attacks named.", ADVICE),
)
RESIDUAL: tuple[tuple[str, str], ...] = (
    ("Labels can leak where pictures do not. A label may be a diagnosis.", ADVICE),
    ("A sum protects as far as its members are honest: phones that work with the server can be subtracted from it.", SUMS),
    ("Privacy budgets add up: each further upload takes a part.", ADVICE),
    ("The trained model itself may remember pictures. That is another attack, and was not tried here.", ADVICE),
)
TITLES = {SUMS: "lesson 10", ADVICE: "lesson 12"}
