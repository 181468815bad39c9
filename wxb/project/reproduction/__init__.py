"""`wxb compare`: compare results of two versions of the project.

The stage `compare` is another thing: it compares the experiments of one study.
"""
