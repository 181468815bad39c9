"""Results beside those that a commit has: the same bytes, within noise, or beyond it.

The stage `compare` sets the experiments of one study side by side; this, one study at two times.
"""
