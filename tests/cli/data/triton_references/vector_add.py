def expected(x_ptr, y_ptr):
    return x_ptr + y_ptr
