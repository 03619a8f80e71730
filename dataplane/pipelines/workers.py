"""The process from which an executor forks its Python workers: all that jobs need is imported here.

A worker that imports it for itself takes a second of a processor before its first row, and Spark
ends workers that have had nothing to do for a minute. What is imported is taken out of the reach of
the garbage collector: a worker runs it after each task, and would look through all of it.
"""

import gc
import importlib
import os

from pyspark.daemon import manager

NO_THREADS = {"JE_ARROW_MALLOC_CONF": "background_thread:false", "OMP_NUM_THREADS": "1"}
"""A process that forks must have one thread: libraries start none when they are imported."""
JOBS = ("backfill", "check", "load", "move", "validate")

if __name__ == "__main__":
    os.environ.update(NO_THREADS)
    for job in JOBS:
        importlib.import_module(f"dataplane.pipelines.jobs.{job}")
    importlib.import_module("pyspark.worker")
    gc.freeze()
    manager()
