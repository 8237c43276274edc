"""`python -m kmeans_kernel.reproduction JOB`: one run in this process, its row as JSON."""

from kmeans_kernel.records import answer
from kmeans_kernel.reproduction import measure

if __name__ == "__main__":
    answer(measure)
