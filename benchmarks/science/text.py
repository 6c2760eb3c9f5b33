"""Texts as arrays of codes."""

import numpy as np

from .registry import program

WORDS = b"3.14 + alpha*(x1 - 42) / beta_2 >= 7 ; count = count + 1 ; y = f(z, 0.5)"


def source(r, n):
    text = np.frombuffer(WORDS, dtype=np.uint8)
    return (np.concatenate([np.roll(text, int(k)) for k in r.integers(0, len(text), n)]),)


@program(source, 20)
def tokenize(codes):
    """Cut a text into names, numbers and signs."""
    tokens = []
    i = 0
    n = len(codes)
    while i < n:
        c = codes[i]
        if c == 32:
            i += 1
            continue
        start = i
        if 48 <= c <= 57:
            dots = 0
            while i < n and (48 <= codes[i] <= 57 or codes[i] == 46):
                if codes[i] == 46:
                    dots += 1
                    if dots > 1:
                        break
                i += 1
            tokens.append(("number", start, i))
        elif 97 <= c <= 122 or c == 95:
            while i < n and (97 <= codes[i] <= 122 or 48 <= codes[i] <= 57 or codes[i] == 95):
                i += 1
            tokens.append(("name", start, i))
        else:
            i += 1
            if c in (60, 62) and i < n and codes[i] == 61:
                i += 1
            tokens.append(("sign", start, i))
    return tokens


def crc_table():
    table = []
    for byte in range(256):
        c = byte
        for _ in range(8):
            if c & 1:
                c = 0xEDB88320 ^ (c >> 1)
            else:
                c >>= 1
        table.append(c)
    return table


TABLE = crc_table()


@program(lambda r, n: (r.integers(0, 256, n).astype(np.uint8),), 5000)
def crc32(data):
    """Compute the usual checksum of bytes."""
    c = 0xFFFFFFFF
    for byte in data:
        c = TABLE[(c ^ int(byte)) & 0xFF] ^ (c >> 8)
    return c ^ 0xFFFFFFFF


@program(lambda r, n: (np.repeat(r.integers(0, 5, n), r.integers(1, 12, n)), 9), 500)
def run_lengths(values, most):
    """Code runs of equal values by value and length, and decode them again."""
    codes = []
    i = 0
    while i < len(values):
        j = i + 1
        while j < len(values) and values[j] == values[i] and j - i < most:
            j += 1
        codes.append((int(values[i]), j - i))
        i = j
    back = np.zeros(len(values), dtype=values.dtype)
    at = 0
    for value, count in codes:
        back[at : at + count] = value
        at += count
    ok = bool(np.all(back == values))
    return codes, ok, len(values) / len(codes)


@program(lambda r, n: (np.minimum(r.geometric(0.3, n), 12), 3), 3000)
def ngram_counts(codes, n):
    """Count sequences of n codes, and list the five most frequent."""
    counts = {}
    for i in range(len(codes) - n + 1):
        key = tuple(int(c) for c in codes[i : i + n])
        if key in counts:
            counts[key] += 1
        else:
            counts[key] = 1
    singles = 0
    for v in counts.values():
        if v == 1:
            singles += 1
    top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:5]
    return top, singles, len(counts)


@program(lambda r, n: (np.tile(r.integers(0, 6, 40), n // 40 + 1)[:n] ^ (r.random(n) < 0.1), 24, 3), 150)
def lz77(data, window, shortest):
    """Compress by references to what came shortly before."""
    out = []
    i = 0
    saved = 0
    while i < len(data):
        best_length = 0
        best_distance = 0
        for j in range(max(0, i - window), i):
            length = 0
            while i + length < len(data) and data[j + length] == data[i + length] and length < 15:
                length += 1
            if length > best_length:
                best_length = length
                best_distance = i - j
        if best_length >= shortest:
            out.append((best_distance, best_length))
            saved += best_length - 2
            i += best_length
        else:
            out.append((0, int(data[i])))
            i += 1
    return out, saved


def brackets(r, n):
    return np.array([40, 41, 91, 93, 97])[r.choice(5, n, p=[0.22, 0.2, 0.12, 0.1, 0.36])], {41: 40, 93: 91}


@program(brackets, 3000)
def match_brackets(codes, pairs):
    """Match brackets with a stack: the partner of each, the deepest level and the mistakes."""
    partner = np.full(len(codes), -1)
    stack = []
    deepest = 0
    mistakes = 0
    for i in range(len(codes)):
        c = int(codes[i])
        if c == 40 or c == 91:
            stack.append(i)
            if len(stack) > deepest:
                deepest = len(stack)
        elif c in pairs:
            if not stack:
                mistakes += 1
            elif codes[stack[-1]] != pairs[c]:
                mistakes += 1
                stack.pop()
            else:
                j = stack.pop()
                partner[i] = j
                partner[j] = i
    return partner, deepest, mistakes + len(stack)
