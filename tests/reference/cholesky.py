import math


def factor(H):
    """The lower factor L of H = L Lᵀ, entry by entry; None if H is not positive definite."""
    n = len(H)
    L = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            rest = float(H[i][j]) - sum(L[i][k] * L[j][k] for k in range(j))
            if i > j:
                L[i][j] = rest / L[j][j]
            elif rest > 0:
                L[i][i] = math.sqrt(rest)
            else:
                return None
    return L


def divide_from_left(L, column):
    """L⁻¹ of a column, by forward substitution."""
    found = []
    for i, value in enumerate(column):
        found.append((float(value) - sum(L[i][k] * found[k] for k in range(i))) / L[i][i])
    return found


def divide_from_left_transposed(L, column):
    """L⁻ᵀ of a column, by backward substitution."""
    n = len(column)
    found = [0.0] * n
    for i in reversed(range(n)):
        rest = float(column[i]) - sum(L[k][i] * found[k] for k in range(i + 1, n))
        found[i] = rest / L[i][i]
    return found


def solve(L, column):
    return divide_from_left_transposed(L, divide_from_left(L, column))
