// Prints what to launch for a size: program DEVICE N.
#include "tiles.hpp"
#include <cstdio>
#include <cstdlib>

int main(int, char **words)
{
    const launchwise::tiles::problem problem{std::atoll(words[2]), "float32", 2};
    const auto answer = launchwise::tiles::recommend(words[1], problem);
    if (!answer) return 1;
    const auto run = launchwise::tiles::launches_of(problem, answer->launch);
    const auto *block = run.kernels[0].block, *grid = run.kernels[0].grid;
    std::printf("block %ld %ld %ld grid %ld %ld %ld\n", block[0], block[1], block[2], grid[0],
                grid[1], grid[2]);
}
