"""Signals, sample by sample."""

from bisect import bisect_left, insort

import numpy as np

from .registry import program


def noisy(r, n):
    t = np.arange(n) / 50.0
    return np.sin(t) + 0.5 * np.sin(2.7 * t) + 0.2 * r.normal(size=n)


@program(lambda r, n: (noisy(r, n), 0.5, 20), 4000)
def find_peaks(x, height, distance):
    """Find maxima above a height; of two that are too near, keep the higher one."""
    peaks = []
    i = 1
    n = len(x)
    while i < n - 1:
        if x[i] > height and x[i] > x[i - 1]:
            j = i
            while j + 1 < n and x[j + 1] == x[i]:
                j += 1
            if j + 1 < n and x[j + 1] < x[i]:
                middle = (i + j) // 2
                if peaks and middle - peaks[-1] < distance:
                    if x[middle] > x[peaks[-1]]:
                        peaks[-1] = middle
                else:
                    peaks.append(middle)
            i = j
        i += 1
    return np.array(peaks, dtype=int)


@program(lambda r, n: (noisy(r, n), 0.8, 0.2, 5), 5000)
def schmitt_trigger_events(x, high, low, shortest):
    """List the begin, end and largest value of events between two thresholds."""
    events = []
    active = False
    start = 0
    largest = 0.0
    for i, v in enumerate(x):
        if not active:
            if v > high:
                active = True
                start = i
                largest = v
        else:
            if v > largest:
                largest = v
            if v < low:
                active = False
                if i - start >= shortest:
                    events.append((start, i, float(largest)))
    if active:
        events.append((start, len(x), float(largest)))
    return events


@program(lambda r, n: (r.normal(size=n), 15), 1500)
def moving_median(x, width):
    """Take medians over a window that is kept sorted."""
    window = []
    out = np.full(len(x), np.nan)
    for i in range(len(x)):
        insort(window, x[i])
        if i >= width:
            del window[bisect_left(window, x[i - width])]
        m = len(window)
        if m % 2 == 1:
            out[i] = window[m // 2]
        else:
            out[i] = 0.5 * (window[m // 2 - 1] + window[m // 2])
    return out


def echoes(r, n):
    far = r.normal(size=n)
    return far, 0.6 * np.roll(far, 3) - 0.3 * np.roll(far, 7) + 0.01 * r.normal(size=n), 16, 0.5


@program(echoes, 800)
def echo_canceller(far, near, taps, mu):
    """Cancel an echo by normalised least mean squares, held while the error bursts."""
    w = np.zeros(taps)
    error = np.zeros(len(far))
    held = 0
    power = 1.0
    for n in range(taps, len(far)):
        x = far[n - taps + 1 : n + 1][::-1]
        e = near[n] - np.dot(w, x)
        power = 0.99 * power + 0.01 * e * e
        if e * e > 9 * power:
            held += 1
        else:
            w = w + mu * e * x / (np.dot(x, x) + 1e-6)
        error[n] = e
    return w, error, held


@program(lambda r, n: (noisy(r, n) * 2.0, -10.0, 4.0, 0.9, 0.999), 2500)
def compressor(x, threshold, ratio, attack, release):
    """Compress the loud parts of a sound, with attack and release."""
    envelope = 0.0
    gain_reduction = 0.0
    most = 0.0
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        level = abs(x[i])
        coefficient = attack if level > envelope else release
        envelope = coefficient * envelope + (1 - coefficient) * level
        db = 20.0 * np.log10(envelope + 1e-9)
        over = db - threshold
        if over > 0:
            gain_reduction = over * (1.0 - 1.0 / ratio)
        else:
            gain_reduction = 0.0
        if gain_reduction > most:
            most = gain_reduction
        y[i] = x[i] * 10.0 ** (-gain_reduction / 20.0)
    return y, most


def tones(r, n):
    digits = r.integers(0, 4, 5)
    tone = np.array([0.05, 0.08, 0.11, 0.17])
    t = np.arange(n)
    return np.concatenate([np.sin(2 * np.pi * tone[d] * t) + 0.3 * r.normal(size=n) for d in digits]), tone, n


@program(tones, 200)
def goertzel_tones(x, frequencies, block):
    """Tell which tone sounds in each block, or -1."""
    found = []
    for begin in range(0, len(x) - block + 1, block):
        powers = []
        for f in frequencies:
            c = 2.0 * np.cos(2.0 * np.pi * f)
            s1 = s2 = 0.0
            for k in range(block):
                s0 = x[begin + k] + c * s1 - s2
                s2 = s1
                s1 = s0
            powers.append(s1 * s1 + s2 * s2 - c * s1 * s2)
        best = int(np.argmax(powers))
        found.append(best if powers[best] > 3 * np.median(powers) else -1)
    return found


def heart(r, n):
    x = 0.05 * r.normal(size=n)
    x[20 :: int(r.integers(70, 90))] += 1.0
    return x, 200.0


@program(heart, 3000)
def heart_rate(ecg, rate):
    """Detect beats in an ECG by an adaptive threshold with a refractory period."""
    signal_level, noise_level = 0.5, 0.05
    last = -1000
    beats = []
    irregular = 0
    rr_mean = None
    for i in range(1, len(ecg) - 1):
        if ecg[i] <= ecg[i - 1] or ecg[i] < ecg[i + 1]:
            continue
        threshold = noise_level + 0.25 * (signal_level - noise_level)
        if ecg[i] > threshold and i - last > 0.2 * rate:
            signal_level = 0.125 * ecg[i] + 0.875 * signal_level
            if beats:
                rr = (i - last) / rate
                if rr_mean is None:
                    rr_mean = rr
                elif abs(rr - rr_mean) > 0.2 * rr_mean:
                    irregular += 1
                else:
                    rr_mean = 0.9 * rr_mean + 0.1 * rr
            last = i
            beats.append(i)
        else:
            noise_level = 0.125 * ecg[i] + 0.875 * noise_level
    bpm = 60.0 / rr_mean if rr_mean else 0.0
    return np.array(beats), bpm, irregular
