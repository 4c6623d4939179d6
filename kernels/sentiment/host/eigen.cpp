/* The network by Eigen in float32, review by review, as the published C++ program has it: row-major
 * matrices, two products per review, then the layers on its mean.
 *
 * eigen.py compiles and loads it. Several reviews are shared out among OpenMP threads; a single one is
 * left to the threads of Eigen's own products. */
#include <Eigen/Core>
#include <cstdint>

namespace {

constexpr int EMBEDDING = 300, FIRST = 150, SECOND = 64, THIRD = 32, CLASSES = 2;

template <int ROWS, int COLUMNS>
using Layer = Eigen::Map<const Eigen::Matrix<float, ROWS, COLUMNS, Eigen::RowMajor>>;
template <int COLUMNS>
using Bias = Eigen::Map<const Eigen::Matrix<float, 1, COLUMNS>>;
template <int COLUMNS>
using Tokens = Eigen::Matrix<float, Eigen::Dynamic, COLUMNS, Eigen::RowMajor>;

struct Network {
    Layer<EMBEDDING, FIRST> w1;
    Bias<FIRST> b1;
    Layer<FIRST, SECOND> w2;
    Bias<SECOND> b2;
    Layer<SECOND, THIRD> w3;
    Bias<THIRD> b3;
    Layer<THIRD, CLASSES> w4;
    Bias<CLASSES> b4;

    void answer(
        const float *embeddings, int64_t tokens, int64_t length, Tokens<FIRST> &first,
        Tokens<SECOND> &second, float *logits) const {
        const Eigen::Map<const Tokens<EMBEDDING>> x(embeddings, tokens, EMBEDDING);
        first.noalias() = x * w1;
        first = (first.rowwise() + b1).cwiseMax(0.0f);
        second.noalias() = first * w2;
        second = (second.rowwise() + b2).cwiseMax(0.0f);
        const Eigen::Matrix<float, 1, SECOND> mean =
            second.topRows(length).colwise().sum() / static_cast<float>(length);
        const Eigen::Matrix<float, 1, THIRD> third = (mean * w3 + b3).cwiseMax(0.0f);
        Eigen::Map<Eigen::Matrix<float, 1, CLASSES>> answered(logits);
        answered = third * w4 + b4;
    }
};

}  // namespace

/* logits: (cases, 2). embeddings: (cases, tokens, 300), all of them are worked on; the first lengths[i]
 * of a review count. weights: w1, b1, ..., w4, b4. */
extern "C" void eigen_logits(
    int64_t cases, int64_t tokens, const float *embeddings, const int32_t *lengths,
    const float *const *weights, float *logits, int32_t threads) {
    const Network network{
        Layer<EMBEDDING, FIRST>(weights[0]), Bias<FIRST>(weights[1]),
        Layer<FIRST, SECOND>(weights[2]),    Bias<SECOND>(weights[3]),
        Layer<SECOND, THIRD>(weights[4]),    Bias<THIRD>(weights[5]),
        Layer<THIRD, CLASSES>(weights[6]),   Bias<CLASSES>(weights[7])};
    Eigen::setNbThreads(threads);
#pragma omp parallel num_threads(threads) if (cases > 1)
    {
        Tokens<FIRST> first(tokens, FIRST);
        Tokens<SECOND> second(tokens, SECOND);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < cases; ++i)
            network.answer(
                embeddings + i * tokens * EMBEDDING, tokens, lengths[i], first, second,
                logits + i * CLASSES);
    }
}

extern "C" int32_t eigen_version() {
    return EIGEN_WORLD_VERSION * 10000 + EIGEN_MAJOR_VERSION * 100 + EIGEN_MINOR_VERSION;
}
