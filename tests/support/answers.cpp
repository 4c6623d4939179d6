// Reads questions, parted by tabs, and prints answers as JSON, a line each: see answer_forms.py,
// which fills in words in capitals.
#include "STUDY.hpp"
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>
namespace study = launchwise::NAMESPACE;
template <class Sizes> static void print(const char *name, const Sizes &sizes) {
    const char *before = "[";
    std::cout << '"' << name << "\": ";
    for (const auto size : sizes) {
        std::cout << before << size;
        before = ", ";
    }
    std::cout << "], ";
}
int main() {
    std::cout << std::setprecision(17);
    for (std::string text; std::getline(std::cin, text);) {
        std::istringstream line(text);
        std::vector<std::string> words;
        for (std::string word; std::getline(line, word, '\t');)
            words.push_back(word);
        const study::problem asked{GIVEN};
        const auto found = study::recommend(words[0], asked);
        if (!found) {
            std::cout << "null\n";
            continue;
        }
        const auto &c = found->launch;
        std::cout << "{" << TUNABLES << ", \"problem\": {"
                  << PARAMETERS << "}, \"time_ms\": "
                  << found->time_ms << ", \"gain\": " << found->gain << ", \"basis\": \""
                  << found->basis << "\", \"interval_ms\": [" << found->time_low_ms << ", "
                  << found->time_high_ms << "], \"gain_interval\": [" << found->gain_low << ", "
                  << found->gain_high << "], \"outside\": " << found->outside
                  << ", \"launches\": [";
        const auto run = study::launches_of(asked, c);
        for (std::size_t i = 0; i < run.count; ++i) {
            const auto &one = run.kernels[i];
            std::cout << (i ? ", {" : "{");
            print("block", one.block);
            print("grid", one.grid);
            std::cout << "\"shared_bytes\": ";
            if (one.shared_bytes)
                std::cout << *one.shared_bytes << "}";
            else
                std::cout << "null}";
        }
        std::cout << "]}\n";
    }
}
