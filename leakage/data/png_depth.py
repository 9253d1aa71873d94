"""How many bits of a PNG file count: scans of 10, 12 or 14 bits lie in files of 16."""

from dataclasses import dataclass

SIGNATURE = b"\x89PNG\r\n\x1a\n"
DEPTHS = (8, 10, 12, 14)  # of scanners and cameras, below 16


@dataclass(frozen=True)
class Depth:
    """The bits of one number in a file: as it stores them, and how many are significant as it says itself (sBIT); 0: it does not say."""

    stored: int = 8
    significant: int = 0

    @staticmethod
    def of(data: bytes) -> "Depth":
        """Those of a PNG; of another file 8."""
        if not data.startswith(SIGNATURE) or data[12:16] != b"IHDR":
            return Depth()
        at, significant = 8, 0
        while at + 8 <= len(data) and (kind := data[at + 4 : at + 8]) not in (b"IDAT", b"PLTE", b"IEND"):  # sBIT stands before these
            if kind == b"sBIT" and not significant:
                significant = data[at + 8] if at + 8 < len(data) else 0
            at += 12 + int.from_bytes(data[at : at + 4], "big")
        return Depth(data[24] if len(data) > 24 else 8, significant)

    def used_by(self, brightest: int) -> int:
        """The bits that a file of 16 uses whose largest number is this: white is 2^bits - 1.

        A file should spread its significant bits over all 16 (PNG, 11.3.2.7), and many a scanner's does not: then its largest number fits
        into them. Where it does not say how many they are, a picture without any pixel above a quarter of white is taken to be of the
        next smaller depth of DEPTHS.

        >>> [Depth(16).used_by(value) for value in (65535, 40000, 4095, 900)], Depth(16, 12).used_by(900), Depth(16, 12).used_by(65535)
        ([16, 16, 12, 10], 12, 16)
        """
        depths = (self.significant,) if 0 < self.significant < 16 else DEPTHS
        return next((bits for bits in depths if brightest < 2**bits), 16)
