def permutation(generator, problem):
    return {"index": generator.permutation(problem["num_rows"])}
