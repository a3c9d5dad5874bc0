"""A monitor frozen with its anchors, and judged anew: does it still do what was promised?"""
