"""`python -m kmeans_kernel.report.reproduction JOB`: run one job and print its row as JSON."""

from kmeans_kernel.report._records import answer
from kmeans_kernel.report.reproduction import measure

if __name__ == "__main__":
    answer(measure)
