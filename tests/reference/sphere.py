import math


def unit_rows(X, lift=0.0):
    result = []
    for row in X:
        lifted = [float(x) for x in row] + ([lift] if lift > 0 else [])
        length = math.hypot(*lifted)
        result.append([x / length if length > 0 else 0.0 for x in lifted])
    return result


def unlift(directions, lift):
    if lift == 0:
        return [list(row) for row in directions]
    return [[x * lift / row[-1] for x in row[:-1]] for row in directions]
