def mask(src, thresh):
    return (src > thresh) * 255
