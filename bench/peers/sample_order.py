"""The order in which `troupe train` uses the samples of a data set, so that a
peer trains on the same batches. Uses only the standard library.

Source of the generator: Nishimura, "Tables of 64-bit Mersenne twisters", ACM
TOMACS 10(4), 2000; C++ calls it std::mt19937_64.
"""
WORDS, MIDDLE = 312, 156
ALL_BITS = (1 << 64) - 1
UPPER_BITS = ALL_BITS ^ 0x7fffffff


def mersenne_twister_64(seed):
    """Yields whole numbers below 2^64 for ever."""
    words = [seed & ALL_BITS]
    for i in range(1, WORDS):
        mixed = words[-1] ^ (words[-1] >> 62)
        words.append((6364136223846793005 * mixed + i) & ALL_BITS)
    while True:
        for i in range(WORDS):
            x = (words[i] & UPPER_BITS) \
                | (words[(i + 1) % WORDS] & ~UPPER_BITS)
            words[i] = words[(i + MIDDLE) % WORDS] ^ (x >> 1) \
                ^ (0xb5026f5aa96619e9 if x & 1 else 0)
        for x in words:
            x ^= (x >> 29) & 0x5555555555555555
            x ^= (x << 17) & 0x71d67fffeda60000
            x ^= (x << 37) & 0xfff7eee000000000
            yield x ^ (x >> 43)


def sample_order(samples, seed, epoch):
    """The numbers 0 to samples - 1 in the order of that epoch."""
    draw = mersenne_twister_64(seed * 0x9e3779b97f4a7c15 + epoch)
    order = list(range(samples))
    for i in range(samples, 1, -1):
        j = next(draw) % i
        order[i - 1], order[j] = order[j], order[i - 1]
    return order
