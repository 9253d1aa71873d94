"""What to demand of a vendor, and which risk remains after any answer of the page Ask, each with the lesson that explains it."""

SUMS, ADVICE = "10-sums", "12-what-to-do"  # lessons
DEMANDS: tuple[tuple[str, str], ...] = (  # a demand, and the lesson that shows why
    (
        "The privacy budget (epsilon and delta) after the whole training, not after one upload. Ask what it protects: "
        "one picture, or one patient with many.",
        ADVICE,
    ),
    ("Where the noise of the protection is added. If the server adds the noise, the server has seen the update without noise.", ADVICE),
    ("How many phones are in a sum of updates at least, and how the server is kept from inventing phones.", SUMS),
    ("How you can check that the model which the server sends is the agreed model.", SUMS),
    ("How accurate the model becomes with the protection, on pictures like yours.", ADVICE),
    (
        "A test like this test on the vendor's own network, also without protection (as a control), and with the names of the attacks.",
        ADVICE,
    ),
)
RESIDUAL: tuple[tuple[str, str], ...] = (
    ("The name of what is in a picture (its label) can leak even if the picture does not. A label may be a diagnosis.", ADVICE),
    ("A sum of updates protects as far as its members are honest: the server can subtract the updates of phones that work with it.", SUMS),
    ("The privacy budget grows with every upload: what each upload may show adds up.", ADVICE),
    ("The trained model itself may remember pictures. Attacks on the trained model were not tried here.", ADVICE),
)
TITLES = {SUMS: "lesson 10", ADVICE: "lesson 12"}
