"""Wx+b: train and compare models reproducibly, from raw records to a table of results."""

import os

# Nothing phones home; a model or data set is fetched only where params.yaml names one on the hub.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_UPDATE_CHECK", "1")
