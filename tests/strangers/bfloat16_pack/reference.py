def packed(src):
    return src
