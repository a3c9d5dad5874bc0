"""Control metrics: what a monitor is worth where few alarms can be looked at and the other side may choose.

Arrays in, typed results out. `rank` and `budget` choose a threshold that keeps an audit budget, `draws` and
`safety` say what that threshold leaves uncaught, `fit` extends the curve below the data, `selection` lets the
attacker choose, `steps` and `protocols` replay recorded steps, `front` sets safety against usefulness.
"""
