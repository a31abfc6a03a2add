"""Makes the font of receipts: Inter Regular without features, with the letters of Latin, Greek and Cyrillic scripts.

Takes Inter-Regular.otf of Inter 3.19 or later, and the file to write. Needs fonttools 4.68.
"""

import sys

from fontTools import subset
from fontTools.ttLib import TTFont

RANGES = [
    (0x20, 0x7E), (0xA0, 0x24F), (0x2BB, 0x2BD), (0x370, 0x52F), (0x1E00, 0x1FFF), (0x2010, 0x2015), (0x2018, 0x201E),
    (0x2020, 0x2022), (0x2026, 0x2026), (0x2030, 0x2030), (0x2032, 0x2033), (0x2039, 0x203A), (0x2044, 0x2044),
    (0x20A0, 0x20C0), (0x2116, 0x2116), (0x2122, 0x2122), (0x2190, 0x2193), (0x2212, 0x2212), (0xFFFD, 0xFFFD),
]  # fmt: skip

source, target = sys.argv[1:]
options = subset.Options()
options.layout_features = []
options.hinting = False
options.name_IDs = [0, 1, 2, 3, 4, 5, 6, 13, 14]
options.notdef_outline = True
font = TTFont(source)
subsetter = subset.Subsetter(options)
subsetter.populate(unicodes=[code for first, last in RANGES for code in range(first, last + 1)])
subsetter.subset(font)
for table in ["GDEF", "GPOS", "GSUB", "DSIG", "meta", "STAT", "VORG"]:
    if table in font:
        del font[table]
font.save(target)
