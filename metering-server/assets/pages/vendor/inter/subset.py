"""Makes the font of the pages from the variable font of the package: the weights and the features that the pages use.

Takes the file of the package, and the file to write. Needs fonttools 4.68 with brotli.
"""

import sys
from io import BytesIO

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer

WEIGHTS = (400, 700)
FEATURES = ["ccmp", "kern", "locl", "mark", "mkmk", "tnum"]

source, target = sys.argv[1:]
limited = BytesIO()
font = instancer.instantiateVariableFont(TTFont(source), {"wght": WEIGHTS})
font.flavor = None
font.save(limited)
limited.seek(0)
font = TTFont(limited)
options = subset.Options()
options.layout_features = FEATURES
options.hinting = False
options.name_IDs = [0, 1, 2, 3, 4, 5, 6, 13, 14]
options.notdef_outline = True
subsetter = subset.Subsetter(options)
subsetter.populate(unicodes=font.getBestCmap())
subsetter.subset(font)
font.flavor = "woff2"
font.save(target)
