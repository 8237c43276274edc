"""The order of columns by their values, with Python's integers, one value after the other."""

MASK = (1 << 64) - 1


def mixed(key):
    key = ((key ^ key >> 30) * 0xBF58476D1CE4E5B9) & MASK
    key = ((key ^ key >> 27) * 0x94D049BB133111EB) & MASK
    return key ^ key >> 31


def order_of_columns(X, codes):
    n, d = len(X), len(X[0])
    pairs = []
    for j in range(d):
        known = sorted({row[j] for row in X if row[j] == row[j]})
        rank = {value: place for place, value in enumerate(known)}
        pairs.append(
            [
                mixed(rank.get(row[j], len(known)) + (int(k) << 40))
                for row, k in zip(X, codes, strict=True)
            ]
        )
    keys = [mixed(sum(pair) & MASK) for pair in pairs]
    rows = [sum(mixed(pairs[j][i] ^ keys[j]) for j in range(d)) & MASK for i in range(n)]
    last = [sum(mixed((pairs[j][i] + rows[i]) & MASK) for i in range(n)) & MASK for j in range(d)]
    return sorted(range(d), key=last.__getitem__)
