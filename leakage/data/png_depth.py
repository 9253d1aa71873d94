"""The number of significant bits in a PNG file: files with 16 bits often contain scans with 10, 12 or 14."""

from dataclasses import dataclass

SIGNATURE = b"\x89PNG\r\n\x1a\n"
DEPTHS = (8, 10, 12, 14)  # of scanners and cameras, below 16


@dataclass(frozen=True)
class Depth:
    """The bit depth of the values in a picture file."""

    stored: int = 8
    """Bits with which the file stores each value."""
    significant: int = 0
    """Significant bits of each value, as the file states them (sBIT); 0 if it states none."""

    @staticmethod
    def of(data: bytes) -> "Depth":
        """Return the bit depth of a PNG file; 8 for every other file."""
        if not data.startswith(SIGNATURE) or data[12:16] != b"IHDR":
            return Depth()
        offset, significant = 8, 0
        while offset + 8 <= len(data) and (kind := data[offset + 4 : offset + 8]) not in (b"IDAT", b"PLTE", b"IEND"):  # sBIT comes before
            if kind == b"sBIT" and not significant:
                significant = data[offset + 8] if offset + 8 < len(data) else 0
            offset += 12 + int.from_bytes(data[offset : offset + 4], "big")
        return Depth(data[24] if len(data) > 24 else 8, significant)

    def used_by(self, brightest: int) -> int:
        """Return the bits that a file with 16 stored bits uses, given its largest value; white is then 2^bits - 1.

        A file should scale its significant bits to all 16 (PNG, 11.3.2.7), but many scanners do not: then the largest value fits into the
        significant bits. If the file does not state their number, it is the smallest of DEPTHS into which the largest value fits, or 16.

        >>> [Depth(16).used_by(value) for value in (65535, 40000, 4095, 900)]
        [16, 16, 12, 10]
        >>> Depth(16, 12).used_by(900), Depth(16, 12).used_by(65535)
        (12, 16)
        """
        depths = (self.significant,) if 0 < self.significant < 16 else DEPTHS
        return next((bits for bits in depths if brightest < 2**bits), 16)
